"""Runs BERT (Devlin et al., 2019) forward in plain torch, for sentence encoders such as MiniLM, BGE and E5.

The same numbers as `transformers.BertModel`, whose import alone costs 2.5 s of processor time: half of what answering a
question from the command line may take. Models of another architecture go through transformers.
"""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import embedding, gelu, layer_norm, linear, scaled_dot_product_attention

from kraq_dspy.embedders.bert_folder import WEIGHTS


class Bert:
    """Token ids to token vectors.

    With `dtype` bfloat16 the matrix products are made in it; sums, norms and the result stay in float32.
    """

    def __init__(self, folder: Path, config: Any, dtype: torch.dtype, device: str = "cpu") -> None:
        from safetensors.torch import load_file

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
