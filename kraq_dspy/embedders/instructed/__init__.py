"""Loads encoders of passages as seen from a question, E(d|q). Heavy packages are imported when one is made."""

from typing import Any

from kraq_dspy.config import InstructedSettings
from kraq_dspy.embedders.instructed.inbedder import InBedder
from kraq_dspy.embedders.instructed.pair import PairEmbedder
from kraq_dspy.embedders.instructed.prefix import FAMILIES, PrefixInstructed
from kraq_dspy.errors import ConfigError
from kraq_dspy.ports import InstructedEmbedder

__all__ = ["FAMILIES", "InBedder", "PairEmbedder", "PrefixInstructed", "load_instructed_embedder"]


def load_instructed_embedder(settings: InstructedSettings) -> InstructedEmbedder:
    """The encoder that `[instructed]` of kraq.toml names. Raises ConfigError for an unknown kind."""
    options: dict[str, Any] = {"batch_size": settings.batch_size, "threads": settings.threads, "dtype": settings.dtype}
    if settings.max_tokens is not None:
        options["max_tokens"] = settings.max_tokens
    if settings.kind == "pair":
        return PairEmbedder(settings.name, **options)
    if settings.kind == "inbedder":
        return InBedder(settings.name, **options)
    if settings.kind in FAMILIES:
        return PrefixInstructed(settings.kind, settings.name, **options)
    known = ", ".join(("pair", "inbedder", *FAMILIES))
    raise ConfigError(f"instructed.kind is {settings.kind!r}; known: {known}.")
