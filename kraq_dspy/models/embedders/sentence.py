"""Runs sentence encoders in this process: a few texts in numpy, many in torch, on a GPU where there is one."""

import logging
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from kraq_dspy.errors import ConfigError, ModelError, needs
from kraq_dspy.models.embedders.model_folder import (
    ModelFolder,
    Tokenize,
    clear_errors,
    fast_tokenizer,
    local_folder,
    packaged_folder,
    read_model_folder,
)
from kraq_dspy.models.embedders.numpy_bert import NumpyBert
from kraq_dspy.models.embedders.short_names import KNOWN_ENCODERS
from kraq_dspy.models.embedders.text_encoder import TextEncoder
from kraq_dspy.models.lms.local_models import models_folder
from kraq_dspy.models.machine import device_named, precision_of
from kraq_dspy.ports import Vectors

logger = logging.getLogger(__name__)

PACKAGED = "minilm"

FEW = 4096
"""Tokens that an encoder makes in numpy: from there on torch, which is two to five times as fast, makes up for its
import."""

Encode = Callable[[Sequence[str], str], Vectors]

_HUB_FILES = ["*.json", "*.txt", "*.model", "*.safetensors"]  # no pickles


class SentenceEmbedder(TextEncoder):
    """The packaged MiniLM ("minilm"), one of `KNOWN_ENCODERS` ("bge-small"), or a sentence-transformers model by its
    hub name or its folder.

    Vectors equal those of the sentence-transformers library, whose prompts, pooling and length limit are read from the
    model's folder; explicit prefixes take the place of its prompts. A text's vector does not depend on the texts that
    it is encoded with.

    A BERT (MiniLM, BGE, E5) runs in numpy for its first `FEW` tokens, so that a process that asks a question does not
    wait for torch, which does everything from then on. Numpy computes in fp32 whatever the `precision` of torch is: a
    vector of the one differs from that of the other by 1e-6 in fp32, by about 1e-3 in bf16 (cosine .9999 or more).

    >>> SentenceEmbedder().encode_queries(["Who wrote the first program?"]).shape
    (1, 384)

    `max_tokens` cuts texts; None is the model's own limit. `threads` None takes every free core, and is a setting of
    torch for the whole process. `device` is "auto", "cpu", "cuda" or "mps". Safe for threads, which take turns. Raises
    ModelError when the model cannot be found or loaded, ConfigError for a device that is not there.
    """

    def __init__(
        self,
        model: str = PACKAGED,
        *,
        query_prefix: str = "",
        passage_prefix: str = "",
        precision: str = "auto",
        max_tokens: int | None = None,
        batch_size: int = 64,
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
        self._folder = folder
        self._max_tokens = max_tokens or folder.max_tokens
        self._batch_size, self._threads, self._device = batch_size, threads, device
        self._lock = threading.Lock()
        self._torch: Encode | None = None
        self._n_tokens = 0  # tokens
        self._numpy = self._load_numpy()
        if self._numpy is None:
            self._torch = self._load_torch()
        limits = [] if max_tokens in (None, folder.max_tokens) else [f"max_tokens={max_tokens}"]
        self.name = self._named(_weights_name(model, folder), self.precision, *limits)
        self._dimension = self._encode(["dimension"], "").shape[1] if self._numpy is None else self._numpy[1].dimension

    def encode(self, texts: Sequence[str], prefix: str) -> Vectors:
        vectors = self._encode(texts, prefix)
        if not np.isfinite(vectors).all():
            raise ModelError(f'{self.name!r} made a vector that is not finite. Try precision = "fp32".')
        return vectors

    def _encode(self, texts: Sequence[str], prefix: str) -> Vectors:
        if self._torch is None and self._numpy is not None and len(texts) <= FEW:
            tokenize, encode = self._numpy
            ids = [tokens or [0] for tokens in tokenize(self._folder.prepared(texts, prefix))]
            self._n_tokens += sum(map(len, ids))
            if self._n_tokens <= FEW:
                return encode(ids)
        with self._lock:
            if self._torch is None:
                self._torch = self._load_torch()
        return self._torch(texts, prefix)

    def _load_numpy(self) -> tuple[Tokenize, NumpyBert] | None:
        folder = self._folder
        if self._device not in ("auto", "cpu") or folder.pooling is None:
            return None
        with clear_errors(folder.path):
            encode = NumpyBert.open(folder.path, folder.config, folder.pooling)
            return None if encode is None else (fast_tokenizer(folder.path, self._max_tokens), encode)

    def _load_torch(self) -> Encode:
        with needs("torch", "embedded", "The sentence encoder"):
            import torch

            from kraq_dspy.models.embedders.torch_encoder import torch_encoder
        place = device_named(self._device, torch)
        return torch_encoder(self._folder, self._max_tokens, self.precision, self._batch_size, self._threads, place)


def _folder_of(model: str) -> ModelFolder:
    if model == PACKAGED:
        return read_model_folder(packaged_folder())
    if model in KNOWN_ENCODERS:
        known, kept = KNOWN_ENCODERS[model], models_folder() / model
        return known.described(read_model_folder(kept if kept.is_dir() else _downloaded(known.repository, kept)))
    return read_model_folder(local_folder(model, "sentence encoder") or _downloaded(model))


def _downloaded(model: str, kept: Path | None = None) -> Path:
    """From the hub's cache on this machine, or from the hub; `kept` is a folder where it was looked for before."""
    import httpx
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
        brought = f"; bring its files yourself, as the folder {str(kept)!r}" if kept else ""
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
