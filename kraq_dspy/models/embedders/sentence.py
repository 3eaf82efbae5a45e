"""Runs sentence encoders in this process in torch, on a GPU if there is one."""

import logging
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from kraq_dspy.errors import ConfigError, ModelError, needs
from kraq_dspy.models.embedders.model_folder import ModelFolder, local_folder, packaged_folder, read_model_folder
from kraq_dspy.models.embedders.short_names import KNOWN_ENCODERS
from kraq_dspy.models.embedders.text_encoder import TextEncoder
from kraq_dspy.models.lms.local_models import models_folder
from kraq_dspy.models.machine import device_named, precision_of
from kraq_dspy.ports import Vectors
from kraq_dspy.settings import EncoderSettings

logger = logging.getLogger(__name__)

PACKAGED = "minilm"

Encode = Callable[[Sequence[str], str], Vectors]

_HUB_FILES = ["*.json", "*.txt", "*.model", "*.safetensors"]  # no pickles


class SentenceEmbedder(TextEncoder):
    """MiniLM ("minilm") in the precision of its authors, one of `KNOWN_ENCODERS` ("bge-small"), or a
    sentence-transformers model by its hub name or its folder.

    Vectors equal those of the sentence-transformers library, whose prompts, pooling and length limit are read from the
    model's folder; explicit prefixes take the place of its prompts. A text's vector does not depend on the texts that
    it is encoded with.

    >>> SentenceEmbedder().encode_queries(["Who wrote the first program?"]).shape
    (1, 384)

    `max_tokens` cuts texts; None is the model's own limit. `threads` None takes every free core, and is a setting of
    torch for the whole process. `device` is "auto", "cpu", "cuda" or "mps". Safe for threads, which take turns. Raises
    MissingExtraError without torch, ModelError when the model cannot be found or loaded, ConfigError for a device that
    is not there.
    """

    def __init__(
        self,
        model: str = PACKAGED,
        *,
        query_prefix: str = "",
        passage_prefix: str = "",
        precision: str = "auto",
        max_tokens: int | None = None,
        batch_size: int = EncoderSettings.batch_size,
        threads: int | None = None,
        device: str = "auto",
    ) -> None:
        folder = _folder_of(model)
        self.query_prefix = query_prefix or folder.query_prompt
        self.passage_prefix = passage_prefix or folder.passage_prompt
        self.precision = precision_of(precision)
        if max_tokens is not None and not 3 <= max_tokens <= folder.config.get("max_position_embeddings", max_tokens):
            raise ConfigError(
                f"max_tokens is {max_tokens}; {model!r} takes 3 to {folder.config['max_position_embeddings']}."
            )

        limit = max_tokens or folder.max_tokens
        self._encode = _load_torch(folder, limit, self.precision, batch_size, threads, device)
        limits = [] if max_tokens in (None, folder.max_tokens) else [f"max_tokens={max_tokens}"]
        self.name = self._named(_weights_name(model, folder), self.precision, *limits)
        self._dimension = self._encode(["dimension"], "").shape[1]

    def encode(self, texts: Sequence[str], prefix: str) -> Vectors:
        vectors = self._encode(texts, prefix)
        if not np.isfinite(vectors).all():
            raise ModelError(f'{self.name!r} made a vector that is not finite. Try precision = "fp32".')
        return vectors


def _load_torch(
    folder: ModelFolder, max_tokens: int | None, precision: str, batch_size: int, threads: int | None, device: str
) -> Encode:
    with needs("torch", "transformers", f"The encoder {folder.path.name!r} in torch"):
        import torch

        from kraq_dspy.models.embedders.torch_encoder import torch_encoder
    return torch_encoder(folder, max_tokens, precision, batch_size, threads, device_named(device, torch))


def _folder_of(model: str) -> ModelFolder:
    if model == PACKAGED:
        return read_model_folder(packaged_folder())
    if model in KNOWN_ENCODERS:
        known, downloaded = KNOWN_ENCODERS[model], models_folder() / model
        folder = downloaded if downloaded.is_dir() else _downloaded(known.repository, downloaded)
        return known.described(read_model_folder(folder))
    return read_model_folder(local_folder(model, "sentence encoder") or _downloaded(model))


def _downloaded(model: str, looked_in: Path | None = None) -> Path:
    """Find the model in the hub's cache on this machine, or download it; `looked_in` is a folder if
    it was looked for before."""
    import httpx

    with needs("huggingface_hub", "transformers", "An encoder from the hub"):
        from huggingface_hub import snapshot_download

    repository = model if "/" in model else f"sentence-transformers/{model}"
    try:
        return Path(snapshot_download(repository, allow_patterns=_HUB_FILES, local_files_only=True))
    except (OSError, ValueError):
        logger.info("Downloading the sentence encoder %s", repository)
    try:
        return Path(snapshot_download(repository, allow_patterns=_HUB_FILES))
    except (OSError, ValueError, httpx.HTTPError) as error:
        reason = str(error).strip().splitlines()[0]
        brought = f"; bring its files yourself, as the folder {str(looked_in)!r}" if looked_in else ""
        raise ModelError(
            f"The sentence encoder {model!r} is neither a folder nor in the cache of this machine, and the model hub "
            f"did not give it ({reason}). Check the name and the connection{brought}; or use {PACKAGED!r}, which is "
            "packaged, the folder of a saved model, or an endpoint ([encoder] api_base)."
        ) from error


def _weights_name(model: str, folder: ModelFolder) -> str:
    if model == PACKAGED:
        return "all-MiniLM-L6-v2"
    if model in KNOWN_ENCODERS:
        return KNOWN_ENCODERS[model].repository
    return f"{folder.path.name}#{folder.fingerprint()}" if Path(model).expanduser().is_dir() else model
