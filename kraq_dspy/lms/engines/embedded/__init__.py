"""A language model without weights: every step of this library by classic means."""

from kraq_dspy.lms.engines.embedded.engine import EmbeddedEngine

__all__ = ["EmbeddedEngine"]
