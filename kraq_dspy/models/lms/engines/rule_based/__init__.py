"""Does every step of this library by classic means, as a language model without weights."""

from kraq_dspy.models.lms.engines.rule_based.engine import EmbeddedEngine

__all__ = ["EmbeddedEngine"]
