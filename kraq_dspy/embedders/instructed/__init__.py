"""Loads encoders of passages as seen from a question, E(d|q). Heavy packages are imported when one is made."""

from typing import Any

from kraq_dspy.config import EncoderSettings, InstructedSettings
from kraq_dspy.embedders import load_embedder
from kraq_dspy.embedders.instructed.decoder import Decoder
from kraq_dspy.embedders.instructed.inbedder import InBedder
from kraq_dspy.embedders.instructed.pair import PairEmbedder
from kraq_dspy.embedders.instructed.prefix import FAMILIES, PrefixInstructed
from kraq_dspy.embedders.instructed.weighted_sentences import WeightedSentences
from kraq_dspy.errors import ConfigError
from kraq_dspy.ports import InstructedEmbedder

__all__ = [
    "FAMILIES",
    "Decoder",
    "InBedder",
    "PairEmbedder",
    "PrefixInstructed",
    "WeightedSentences",
    "load_instructed_embedder",
]


def load_instructed_embedder(settings: InstructedSettings) -> InstructedEmbedder:
    """The encoder that `[instructed]` of kraq.toml names. Raises ConfigError for an unknown kind."""
    if settings.kind == "sentences":
        sentences = EncoderSettings(
            name=settings.name,
            batch_size=settings.batch_size,
            threads=settings.threads,
            precision="bf16" if settings.dtype == "bfloat16" else "fp32",
            device=settings.device,
        )
        return WeightedSentences(load_embedder(sentences), sharpness=settings.sharpness)
    options: dict[str, Any] = {
        "batch_size": settings.batch_size,
        "threads": settings.threads,
        "dtype": settings.dtype,
        "device": settings.device,
    }
    if settings.max_tokens is not None:
        options["max_tokens"] = settings.max_tokens
    if settings.kind == "pair":
        return PairEmbedder(settings.name, **options)
    if settings.kind == "inbedder":
        return InBedder(settings.name, **options)
    if settings.kind == "decoder":
        return Decoder(settings.name, layers=settings.layers, **options)
    if settings.kind in FAMILIES:
        return PrefixInstructed(settings.kind, settings.name, **options)
    known = ", ".join(("sentences", "pair", "inbedder", "decoder", *FAMILIES))
    raise ConfigError(f"instructed.kind is {settings.kind!r}; known: {known}.")
