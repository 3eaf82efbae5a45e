"""Runs sentence encoders in torch, on a GPU where there is one."""

import ctypes
import os
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file
from torch import Tensor
from torch.nn.functional import embedding, gelu, layer_norm, linear, normalize, scaled_dot_product_attention

from kraq_dspy.errors import needs
from kraq_dspy.models.embedders.model_folder import (
    WEIGHTS,
    ModelFolder,
    Tokenize,
    clear_errors,
    fast_tokenizer,
    is_plain_bert,
    quiet_transformers,
)
from kraq_dspy.ports import Vectors

_STEP = 16  # tokens; texts are padded to a multiple of it
_SLICE = 2048  # texts whose tokens are in memory at once

Encode = Callable[[Sequence[str], str], Vectors]


def torch_encoder(
    folder: ModelFolder, max_tokens: int | None, precision: str, batch_size: int, threads: int | None, device: str
) -> Encode:
    """From texts and what goes before each of them. Raises ModelError for a model that cannot be loaded."""
    torch.set_num_threads(threads or _free_cores())
    load = _through_library if folder.pooling is None else _PlainEncoder
    return load(folder, max_tokens, precision, batch_size, device)


class _PlainEncoder:
    """A transformer, its mean or first token, and nothing else."""

    def __init__(
        self, folder: ModelFolder, max_tokens: int | None, precision: str, batch_size: int, device: str
    ) -> None:
        self._folder = folder
        self._pooling = folder.pooling
        self._max_tokens = max_tokens
        self._batch_size = batch_size
        self._lock = threading.Lock()
        self._device = device
        dtype = torch.bfloat16 if precision == "bf16" else torch.float32
        with clear_errors(folder.path):
            if is_plain_bert(folder.path, folder.config):
                self._forward: Callable[[Tensor, Tensor], Tensor] = _Bert(folder.path, folder.config, dtype, device)
                self._tokenize, self._padding = fast_tokenizer(folder.path, max_tokens), 0
            else:
                self._forward = _through_transformers(folder.path, dtype, device)
                self._tokenize, self._padding = _any_tokenizer(folder.path, max_tokens)

    def __call__(self, texts: Sequence[str], prefix: str) -> Vectors:
        rows = []
        for start in range(0, len(texts), _SLICE):
            some = self._folder.prepared(texts[start : start + _SLICE], prefix)
            rows.append(self._encode_ids([ids or [self._padding] for ids in self._tokenize(some)]))
            if len(some) > self._batch_size:
                _give_back_memory()
        return np.concatenate(rows)

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
                    encoded = self._pooled([ids[row] for row in batch], length)
                if vectors is None:
                    vectors = np.empty((len(ids), encoded.shape[1]), np.float32)
                vectors[batch] = encoded.numpy()
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
        return normalize(pooled, dim=1).cpu()


class _Bert:
    """BERT's forward pass (Devlin et al., 2019) in plain torch: token ids to token vectors.

    The same numbers as `transformers.BertModel`, whose import alone costs 2.5 s of processor time. Models of another
    architecture go through transformers.

    With `dtype` bfloat16 the matrix products are made in it; sums, norms and the result stay in float32.
    """

    def __init__(self, folder: Path, config: Any, dtype: torch.dtype, device: str = "cpu") -> None:
        self._heads: int = config["num_attention_heads"]
        self._layers: int = config["num_hidden_layers"]
        self._epsilon: float = config.get("layer_norm_eps", 1e-12)
        self._dtype = dtype
        weights = {
            name.removeprefix("bert."): tensor for name, tensor in load_file(folder / WEIGHTS, device=device).items()
        }
        self._weights = {
            name: tensor.to(dtype if name.startswith("encoder.") and "LayerNorm" not in name else torch.float32)
            for name, tensor in weights.items()
            if name.startswith(("embeddings.", "encoder.")) and tensor.is_floating_point()
        }

    def __call__(self, ids: Tensor, mask: Tensor) -> Tensor:
        """float32 `[batch, length, width]` from int64 ids and a mask (1 for tokens, 0 for padding), both
        `[batch, length]`."""
        weights = self._weights
        hidden = (
            embedding(ids, weights["embeddings.word_embeddings.weight"])
            + weights["embeddings.position_embeddings.weight"][: ids.shape[1]]
            + weights["embeddings.token_type_embeddings.weight"][0]
        )
        hidden = self._norm(hidden, "embeddings.LayerNorm")
        visible = mask.bool()[:, None, None, :]
        for number in range(self._layers):
            hidden = self._layer(hidden, visible, f"encoder.layer.{number}")
        return hidden

    def _layer(self, hidden: Tensor, visible: Tensor, name: str) -> Tensor:
        reduced = hidden.to(self._dtype)
        query, key, value = (
            self._linear(reduced, f"{name}.attention.self.{part}")
            .view(*hidden.shape[:2], self._heads, -1)
            .transpose(1, 2)
            for part in ("query", "key", "value")
        )
        mixed = scaled_dot_product_attention(query, key, value, attn_mask=visible).transpose(1, 2).flatten(2)
        attended = self._linear(mixed, f"{name}.attention.output.dense")
        hidden = self._norm(hidden + attended, f"{name}.attention.output.LayerNorm")
        inner = gelu(self._linear(hidden.to(self._dtype), f"{name}.intermediate.dense"))
        return self._norm(hidden + self._linear(inner, f"{name}.output.dense"), f"{name}.output.LayerNorm")

    def _linear(self, hidden: Tensor, name: str) -> Tensor:
        return linear(hidden, self._weights[f"{name}.weight"], self._weights[f"{name}.bias"])

    def _norm(self, hidden: Tensor, name: str) -> Tensor:
        weight, bias = self._weights[f"{name}.weight"], self._weights[f"{name}.bias"]
        return layer_norm(hidden, weight.shape, weight, bias, self._epsilon)


def _give_back_memory() -> None:
    """glibc keeps what batches of many shapes leave behind: 800 MB after 3,000 passages. Elsewhere there is no need."""
    if sys.platform == "linux" and (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)):
        trim(0)


def _any_tokenizer(path: Path, max_tokens: int | None) -> tuple[Tokenize, int]:
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


def _free_cores() -> int:
    """No more than torch itself would take, which heeds OMP_NUM_THREADS, nor than this process may run on."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(torch.get_num_threads(), allowed)
