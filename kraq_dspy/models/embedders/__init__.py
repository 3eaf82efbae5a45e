"""Loads sentence encoders: packaged, from a folder or hub on this machine, or at an endpoint."""

import dataclasses

from kraq_dspy.asset.consent import own_key
from kraq_dspy.errors import ConfigError
from kraq_dspy.models.embedders.packaged_embedder import PACKAGED_MODELS, PackagedEmbedder
from kraq_dspy.models.embedders.sentence import SentenceEmbedder
from kraq_dspy.models.machine import precision_of
from kraq_dspy.ports import Embedder
from kraq_dspy.settings import EncoderSettings


def load_embedder(settings: EncoderSettings) -> Embedder:
    """The encoder that the settings name, ready to use.

    >>> load_embedder(EncoderSettings()).encode_passages(["Ada wrote notes.", "Mules pull carts."]).shape
    (2, 384)

    Raises MissingExtraError when a package is absent, ModelError when the model is unknown or cannot be reached. An
    endpoint is not asked before its first text.
    """
    if settings.api_base is not None:
        from kraq_dspy.models.embedders.endpoint import EndpointEmbedder  # brings httpx and dspy, .7 s

        return EndpointEmbedder(
            settings.name,
            settings.api_base,
            api_key=own_key(settings.api_base, settings.api_key_env),
            prefixes=(settings.query_prefix, settings.passage_prefix),
            batch_size=settings.batch_size,
            reply_s=settings.reply_s,
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


def resolve_encoder(settings: EncoderSettings) -> EncoderSettings:
    """The settings with the precision that "auto" means for this encoder, on this machine.

    An index keeps these, so that it is opened with the same precision on a machine with another processor.
    """
    if settings.precision != "auto" or settings.api_base is not None:
        return settings
    return dataclasses.replace(settings, precision=_precision(settings))


_PACKAGED_PRECISIONS = {model.precision: name for name, model in PACKAGED_MODELS.items()}


def _precision(settings: EncoderSettings) -> str:
    on_processor = settings.device in ("auto", "cpu")
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
