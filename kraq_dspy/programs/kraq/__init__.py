"""Leads from chunks to representative questions: the pipeline KRAQ and its steps."""

from kraq_dspy.programs.kraq.pipeline import KRAQ

__all__ = ["KRAQ"]
