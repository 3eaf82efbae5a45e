"""Does every step of this library by classic means, as a language model without weights."""

from kraq_dspy.embedded.engine import EmbeddedEngine

__all__ = ["EmbeddedEngine"]
