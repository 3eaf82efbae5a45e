"""Loads sentence encoders: packaged, from a folder or hub on this machine, or at an endpoint."""

import dataclasses

from kraq_dspy.asset.consent import own_key
from kraq_dspy.errors import ConfigError
from kraq_dspy.models.embedders.packaged_embedder import MINILM, PACKAGED_MODELS, PackagedEmbedder
from kraq_dspy.models.embedders.sentence import SentenceEmbedder
from kraq_dspy.models.machine import precision_of
from kraq_dspy.ports import Embedder
from kraq_dspy.settings import ENCODER_PRECISIONS, EncoderSettings


def load_embedder(settings: EncoderSettings) -> Embedder:
    """Load the encoder that the settings name.

    >>> load_embedder(EncoderSettings()).encode_passages(["Ada wrote notes.", "Mules pull carts."]).shape
    (2, 384)

    Raises MissingExtraError if a package is not installed, and ModelError if the model is unknown or does not answer.
    kraq calls an endpoint only for the first text.
    """
    if settings.api_base is not None:
        from kraq_dspy.models.embedders.endpoint import EndpointEmbedder  # brings httpx and dspy, .7 s

        return EndpointEmbedder(
            settings.name,
            settings.api_base,
            api_key=own_key(settings.api_base, settings.api_key_env),
            prefixes=(settings.query_prefix, settings.passage_prefix),
            batch_size=settings.batch_size,
            reply_mb=settings.reply_mb,
        )
    precision = _precision(settings)
    if precision in _PACKAGED_PRECISIONS:
        return PackagedEmbedder(
            settings.name,
            query_prefix=settings.query_prefix,
            passage_prefix=settings.passage_prefix,
            batch_size=settings.batch_size,
            threads=settings.threads,
        )
    return SentenceEmbedder(
        settings.name,
        query_prefix=settings.query_prefix,
        passage_prefix=settings.passage_prefix,
        precision=precision,
        batch_size=settings.batch_size,
        threads=settings.threads,
        device=settings.device,
    )


def resolve_encoder(settings: EncoderSettings, made_by: str = "") -> EncoderSettings:
    """The settings with the precision that "auto" means for this encoder, on this machine.

    An index keeps these, so that it is opened with the same precision on a machine with another processor. For an index
    that is there, `made_by` its encoder of that name, MiniLM's "auto" means the index's own precision.
    """
    if settings.precision != "auto" or settings.api_base is not None:
        return settings
    return dataclasses.replace(settings, precision=_kept_precision(settings, made_by) or _precision(settings))


def _kept_precision(settings: EncoderSettings, made_by: str) -> str:
    """The precision in the name of the encoder that made an index, if it is the encoder of the settings; else ""."""
    model, _, rest = made_by.partition(" ")
    precision = rest.partition(" ")[0]
    if settings.name != MINILM or model != PACKAGED_MODELS[MINILM].name or precision not in ENCODER_PRECISIONS:
        return ""
    return precision if _on_processor(settings) or precision not in _PACKAGED_PRECISIONS else ""


_PACKAGED_PRECISIONS = {model.precision: name for name, model in PACKAGED_MODELS.items()}


def _on_processor(settings: EncoderSettings) -> bool:
    return settings.device in ("auto", "cpu")


def _precision(settings: EncoderSettings) -> str:
    on_processor = _on_processor(settings)
    if settings.precision == "auto":
        packaged = PACKAGED_MODELS.get(settings.name)
        return packaged.precision if packaged and on_processor else precision_of("auto")

    its_model = _PACKAGED_PRECISIONS.get(settings.precision, settings.name)
    if settings.name != its_model or (settings.precision in _PACKAGED_PRECISIONS and not on_processor):
        raise ConfigError(
            f'precision is "{settings.precision}", which only {its_model!r} has, on the processor; the encoder is '
            f'{settings.name!r}, its device {settings.device!r}. Set [encoder] precision to "fp32" or "bf16", or leave '
            "it out."
        )
    return settings.precision
