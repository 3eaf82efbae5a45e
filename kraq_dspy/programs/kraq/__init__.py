"""KRAQ: the pipeline from chunks to representative questions, and its steps."""

from kraq_dspy.programs.kraq.pipeline import KRAQ

__all__ = ["KRAQ"]
