"""Runs sentence encoders in this process, on a GPU where there is one."""

import ctypes
import logging
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import torch
from torch import Tensor

from kraq_dspy.copies import SharedByCopies
from kraq_dspy.embedders import bert
from kraq_dspy.embedders.device import device_named
from kraq_dspy.embedders.model_folder import ModelFolder, packaged_folder, read_model_folder
from kraq_dspy.errors import ConfigError, MissingExtraError, ModelError, needs
from kraq_dspy.ports import Vectors

logger = logging.getLogger(__name__)

PACKAGED = "minilm"

_STEP = 16  # tokens; texts are padded to a multiple of it
_SLICE = 2048  # texts whose tokens are in memory at once
_HUB_FILES = ["*.json", "*.txt", "*.model", "*.safetensors"]  # no pickles

Encode = Callable[[Sequence[str], str], Vectors]


class SentenceEmbedder(SharedByCopies):
    """The packaged MiniLM ("minilm"), or a sentence-transformers model by its hub name or its folder.

    Vectors equal those of the sentence-transformers library, whose prompts, pooling and length limit are read from the
    model's folder; explicit prefixes take the place of its prompts. A text has the same vector whatever the texts it is
    encoded with, so a build that was interrupted and resumed gives what an uninterrupted one gives.

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
        place = device_named(device, torch)
        folder = read_model_folder(_folder_of(model))
        self._query_prefix = query_prefix or folder.query_prompt
        self._passage_prefix = passage_prefix or folder.passage_prompt
        self.precision = precision_of(precision)
        if max_tokens is not None and not 3 <= max_tokens <= folder.config.get("max_position_embeddings", max_tokens):
            raise ConfigError(
                f"max_tokens is {max_tokens}; {model!r} takes 3 to {folder.config['max_position_embeddings']}."
            )
        limit = max_tokens or folder.max_tokens
        torch.set_num_threads(threads or _free_cores())
        load = _through_library if folder.pooling is None else _PlainEncoder
        self.device = place
        self._encode: Encode = load(folder, limit, self.precision, batch_size, threading.Lock(), place)
        self.name = _name(model, folder, self.precision, max_tokens, self._query_prefix, self._passage_prefix)
        self.dimension = self._encode(["dimension"], "").shape[1]

    def encode_queries(self, texts: Sequence[str]) -> Vectors:
        return self._vectors(texts, self._query_prefix)

    def encode_passages(self, texts: Sequence[str]) -> Vectors:
        return self._vectors(texts, self._passage_prefix)

    def _vectors(self, texts: Sequence[str], prefix: str) -> Vectors:
        if isinstance(texts, str):
            raise TypeError("Expected a list of texts, got one text.")
        if not texts:
            return np.zeros((0, self.dimension), np.float32)
        vectors = self._encode(texts, prefix)
        if not np.isfinite(vectors).all():
            raise ModelError(f'{self.name!r} made a vector that is not finite. Try precision = "fp32".')
        return vectors

    def __repr__(self) -> str:
        return f"SentenceEmbedder({self.name!r})"


def precision_of(precision: str) -> str:
    """What "auto" means on this machine; "fp32" and "bf16" themselves. Without support in hardware bf16 is slower."""
    if precision not in ("auto", "fp32", "bf16"):
        raise ConfigError(f'precision is {precision!r}; it must be "auto", "fp32" or "bf16".')
    if precision != "auto":
        return precision
    able: dict[str, Any] = getattr(torch.cpu, "get_capabilities", dict)()
    return "bf16" if able.get("avx512_bf16") or able.get("amx_bf16") else "fp32"


class _PlainEncoder:
    """A transformer, its mean or first token, and nothing else."""

    def __init__(
        self,
        folder: ModelFolder,
        max_tokens: int | None,
        precision: str,
        batch_size: int,
        lock: threading.Lock,
        device: str,
    ) -> None:
        self._pooling = folder.pooling
        self._lower_case = folder.lower_case
        self._max_tokens = max_tokens
        self._batch_size = batch_size
        self._lock = lock
        self._device = device
        dtype = torch.bfloat16 if precision == "bf16" else torch.float32
        with _clear_errors(folder.path):
            if bert.can_load(folder.path, folder.config):
                self._forward: Callable[[Tensor, Tensor], Tensor] = bert.Bert(folder.path, folder.config, dtype, device)
                self._tokenize, self._padding = _fast_tokenizer(folder.path, max_tokens)
            else:
                self._forward = _through_transformers(folder.path, dtype, device)
                self._tokenize, self._padding = _any_tokenizer(folder.path, max_tokens)

    def __call__(self, texts: Sequence[str], prefix: str) -> Vectors:
        rows = []
        for start in range(0, len(texts), _SLICE):
            some = [self._clean(prefix + text) for text in texts[start : start + _SLICE]]
            rows.append(self._encode_ids([ids or [self._padding] for ids in self._tokenize(some)]))
            if len(some) > self._batch_size:
                _give_back_memory()
        return np.concatenate(rows)

    def _clean(self, text: str) -> str:
        text = text.encode("utf-8", "replace").decode("utf-8")  # the tokenizer takes no lone surrogates
        return text.lower() if self._lower_case else text

    def _encode_ids(self, ids: list[list[int]]) -> Vectors:
        """Batches of one padded length each: with padding that depends on the text alone, so does its vector."""
        by_length: dict[int, list[int]] = {}
        for row, tokens in enumerate(ids):
            length = -(-len(tokens) // _STEP) * _STEP
            by_length.setdefault(min(length, self._max_tokens or length), []).append(row)
        vectors: Vectors | None = None
        for length in sorted(by_length, reverse=True):
            members = by_length[length]
            for start in range(0, len(members), self._batch_size):
                batch = members[start : start + self._batch_size]
                with self._lock, torch.inference_mode():
                    made = self._pooled([ids[row] for row in batch], length)
                if vectors is None:
                    vectors = np.empty((len(ids), made.shape[1]), np.float32)
                vectors[batch] = made.numpy()
        assert vectors is not None
        return vectors

    def _pooled(self, batch: list[list[int]], length: int) -> Tensor:
        rows = [tokens + [self._padding] * (length - len(tokens)) for tokens in batch]
        ids = torch.tensor(rows, device=self._device)
        mask = torch.tensor([[1] * len(row) + [0] * (length - len(row)) for row in batch], device=self._device)
        hidden = self._forward(ids, mask).float()
        if self._pooling == "cls":
            pooled = hidden[:, 0]
        else:
            pooled = (hidden * mask.unsqueeze(2)).sum(1) / mask.sum(1, keepdim=True)
        return torch.nn.functional.normalize(pooled, dim=1).cpu()


def _give_back_memory() -> None:
    """glibc keeps what batches of many shapes leave behind: 800 MB after 3,000 passages. Elsewhere there is no need."""
    if sys.platform == "linux" and (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)):
        trim(0)


def _fast_tokenizer(path: Path, max_tokens: int | None) -> tuple[Callable[[list[str]], list[list[int]]], int]:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(path / "tokenizer.json"))
    tokenizer.no_padding()
    if max_tokens is None:
        tokenizer.no_truncation()
    else:
        tokenizer.enable_truncation(max_tokens)
    return lambda texts: [encoding.ids for encoding in tokenizer.encode_batch(texts)], 0


def _any_tokenizer(path: Path, max_tokens: int | None) -> tuple[Callable[[list[str]], list[list[int]]], int]:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(str(path), local_files_only=True, trust_remote_code=False)

    def tokenize(texts: list[str]) -> list[list[int]]:
        cut = {"truncation": True, "max_length": max_tokens} if max_tokens else {}
        ids: list[list[int]] = tokenizer(texts, return_attention_mask=False, **cut)["input_ids"]
        return ids

    return tokenize, tokenizer.pad_token_id or 0


def _through_transformers(path: Path, dtype: torch.dtype, device: str) -> Callable[[Tensor, Tensor], Tensor]:
    from transformers import AutoModel

    with quiet_transformers():
        model = (
            AutoModel.from_pretrained(
                str(path), local_files_only=True, use_safetensors=True, trust_remote_code=False, dtype=torch.float32
            )
            .to(device)
            .eval()
        )

    def forward(ids: Tensor, mask: Tensor) -> Tensor:
        with torch.autocast(device, torch.bfloat16, enabled=dtype == torch.bfloat16):
            hidden: Tensor = model(input_ids=ids, attention_mask=mask).last_hidden_state
        return hidden

    return forward


def _through_library(
    folder: ModelFolder, max_tokens: int | None, precision: str, batch_size: int, lock: threading.Lock, device: str
) -> Encode:
    """Models with other steps than a transformer and its mean or first token."""
    purpose = f"The encoder {folder.path.name!r}, with its own pooling or further layers,"
    with needs("sentence-transformers", "encoders", purpose):
        from sentence_transformers import SentenceTransformer
    with _clear_errors(folder.path), quiet_transformers():
        model = SentenceTransformer(
            str(folder.path), device=device, local_files_only=True, model_kwargs={"use_safetensors": True}
        )
    if max_tokens is not None:
        model.max_seq_length = max_tokens

    def encode(texts: Sequence[str], prefix: str) -> Vectors:
        clean = [text.encode("utf-8", "replace").decode("utf-8") for text in texts]
        with lock, torch.autocast(device, torch.bfloat16, enabled=precision == "bf16"):
            made: Any = model.encode(
                clean, prompt=prefix, batch_size=batch_size, convert_to_tensor=True, show_progress_bar=False
            )
        vectors: Vectors = torch.nn.functional.normalize(made.float(), dim=1).cpu().numpy()
        return vectors

    return encode


def _folder_of(model: str) -> Path:
    if model == PACKAGED:
        return packaged_folder()
    path = Path(model).expanduser()
    if path.is_dir():
        return path
    if path.is_absolute() or model.startswith((".", "~")) or model.count("/") > 1:
        raise ModelError(f"There is no folder {model!r} to load a sentence encoder from.")
    return _downloaded(model)


def _downloaded(model: str) -> Path:
    """From the hub's cache on this machine, or from the hub."""
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
        raise ModelError(
            f"The sentence encoder {model!r} is neither a folder nor in the cache of this machine, and the model hub "
            f"did not give it ({reason}). Check the name and the connection; or use {PACKAGED!r}, which is packaged, "
            "the folder of a saved model, or an endpoint ([encoder] api_base)."
        ) from error


def _name(
    model: str, folder: ModelFolder, precision: str, max_tokens: int | None, query_prefix: str, passage_prefix: str
) -> str:
    if model == PACKAGED:
        known = "all-MiniLM-L6-v2"
    else:
        known = f"{folder.path.name}#{folder.fingerprint()}" if Path(model).expanduser().is_dir() else model
    parts = [known, precision]
    if max_tokens is not None and max_tokens != folder.max_tokens:
        parts.append(f"max_tokens={max_tokens}")
    parts += [f"query={query_prefix!r}"] if query_prefix else []
    parts += [f"passage={passage_prefix!r}"] if passage_prefix else []
    return " ".join(parts)


def _free_cores() -> int:
    """No more than torch itself would take, which heeds OMP_NUM_THREADS, nor than this process may run on."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(torch.get_num_threads(), allowed)


@contextmanager
def _clear_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        raise MissingExtraError(error.name or "transformers", "embedded", f"The encoder {path.name!r}") from error
    except Exception as error:  # tokenizers and safetensors raise nothing more precise
        raise ModelError(
            f"The sentence encoder in {str(path)!r} cannot be loaded: {error} Weights must be in safetensors files, "
            "and models that bring their own code are not run: serve such a model and use [encoder] api_base."
        ) from error


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Without progress bars and reports of unused weights."""
    from transformers.utils import logging

    reports: Any = logging  # partly untyped
    bars, level = reports.is_progress_bar_enabled(), reports.get_verbosity()
    reports.disable_progress_bar()
    reports.set_verbosity_error()
    try:
        yield
    finally:
        reports.set_verbosity(level)
        if bars:
            reports.enable_progress_bar()
