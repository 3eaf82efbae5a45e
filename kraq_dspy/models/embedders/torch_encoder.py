"""Runs sentence encoders in torch, on a GPU if there is one."""

import ctypes
import os
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

from kraq_dspy.errors import needs
from kraq_dspy.models.embedders.model_folder import ModelFolder, Tokenize, clear_errors, quiet_transformers
from kraq_dspy.ports import Vectors

_STEP = 16  # tokens; texts are padded to a multiple of it
_TOKENS = 4096  # of a batch, which are in memory in every width of a layer
_SLICE = 2048  # texts whose tokens are in memory at once

Encode = Callable[[Sequence[str], str], Vectors]


def torch_encoder(
    folder: ModelFolder, max_tokens: int | None, precision: str, batch_size: int, threads: int | None, device: str
) -> Encode:
    """Make the function that encodes texts with what goes before each of them. Raises ModelError
    for a model that cannot be loaded."""
    # No more threads than torch itself would take, which heeds OMP_NUM_THREADS, nor than this process may run on.
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    torch.set_num_threads(threads or min(torch.get_num_threads(), allowed))
    load = _through_library if folder.pooling is None else _PlainEncoder
    return load(folder, max_tokens, precision, batch_size, device)


class _PlainEncoder:
    """A transformer, its mean or first token, and nothing else."""

    def __init__(
        self, folder: ModelFolder, max_tokens: int | None, precision: str, batch_size: int, device: str
    ) -> None:
        with clear_errors(folder.path):
            self._forward, self._tokenize, self._padding = _through_transformers(folder.path, max_tokens, device)
        self._folder, self._max_tokens, self._batch_size, self._device = folder, max_tokens, batch_size, device
        self._autocast = torch.autocast(device, torch.bfloat16, enabled=precision == "bf16")
        self._lock = threading.Lock()

    def __call__(self, texts: Sequence[str], prefix: str) -> Vectors:
        rows = []
        for start in range(0, len(texts), _SLICE):
            some = self._folder.prepared(texts[start : start + _SLICE], prefix)
            with self._lock:
                ids = [tokens or [self._padding] for tokens in self._tokenize(some)]
            rows.append(self._encode_ids(ids))
            if len(some) > self._batch_size:
                _give_back_memory()
        return np.concatenate(rows)

    def _encode_ids(self, ids: list[list[int]]) -> Vectors:
        """Batches of one padded length each: with padding that depends on the text alone, so does
        its vector."""
        rows_by_length: dict[int, list[int]] = {}
        for row, tokens in enumerate(ids):
            padded = -(-len(tokens) // _STEP) * _STEP
            length = min(padded, self._max_tokens or padded)
            rows_by_length.setdefault(length, []).append(row)

        vectors = np.empty((len(ids), self._folder.config["hidden_size"]), np.float32)
        for length in sorted(rows_by_length, reverse=True):
            rows = rows_by_length[length]
            size = max(1, min(self._batch_size, _TOKENS // length))
            for start in range(0, len(rows), size):
                batch = rows[start : start + size]
                with self._lock, torch.inference_mode():
                    vectors[batch] = self._pooled([ids[row] for row in batch], length).numpy()
        return vectors

    def _pooled(self, batch: list[list[int]], length: int) -> Tensor:
        rows = [tokens + [self._padding] * (length - len(tokens)) for tokens in batch]
        mask = torch.tensor([[1] * len(row) + [0] * (length - len(row)) for row in batch], device=self._device)
        with self._autocast:
            hidden = self._forward(torch.tensor(rows, device=self._device), mask).float()
        if self._folder.pooling == "cls":
            pooled = hidden[:, 0]
        else:
            pooled = (hidden * mask.unsqueeze(2)).sum(1) / mask.sum(1, keepdim=True)
        return normalize(pooled, dim=1).cpu()


def _through_transformers(path: Path, max_tokens: int | None, device: str) -> tuple[Any, Tokenize, int]:
    """The forward pass, the tokenizer and the id of its padding, of a transformer of any kind."""
    from transformers import AutoModel, AutoTokenizer  # 2.5 s

    own: Any = {"local_files_only": True, "trust_remote_code": False}
    with quiet_transformers():
        tokenizer = AutoTokenizer.from_pretrained(str(path), **own)
        loaded: Any = AutoModel.from_pretrained(str(path), use_safetensors=True, dtype=torch.float32, **own)
    model = loaded.to(device).eval()
    cut = {"truncation": True, "max_length": max_tokens} if max_tokens else {}
    return (
        lambda ids, mask: model(input_ids=ids, attention_mask=mask).last_hidden_state,
        lambda texts: tokenizer(texts, return_attention_mask=False, **cut)["input_ids"],
        tokenizer.pad_token_id or 0,
    )


def _give_back_memory() -> None:
    """glibc keeps what batches of many shapes leave behind: 800 MB after 3,000 passages. Elsewhere there is no need."""
    if sys.platform == "linux" and (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)):
        trim(0)


def _through_library(
    folder: ModelFolder, max_tokens: int | None, precision: str, batch_size: int, device: str
) -> Encode:
    """Models with other steps than a transformer and its mean or first token."""
    purpose = f"The encoder {folder.path.name!r}, with its own pooling or further layers,"
    with needs("sentence-transformers", "encoders", purpose):
        from sentence_transformers import SentenceTransformer
    with clear_errors(folder.path), quiet_transformers():
        model = SentenceTransformer(
            str(folder.path), device=device, local_files_only=True, model_kwargs={"use_safetensors": True}
        )
    if max_tokens is not None:
        model.max_seq_length = max_tokens
    lock = threading.Lock()

    def encode(texts: Sequence[str], prefix: str) -> Vectors:
        clean = [text.encode("utf-8", "replace").decode("utf-8") for text in texts]
        with lock, torch.autocast(device, torch.bfloat16, enabled=precision == "bf16"):
            output: Any = model.encode(
                clean, prompt=prefix, batch_size=batch_size, convert_to_tensor=True, show_progress_bar=False
            )
        vectors: Vectors = normalize(output.float(), dim=1).cpu().numpy()
        return vectors

    return encode
