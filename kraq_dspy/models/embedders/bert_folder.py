"""Reads the folder of a BERT: whether its kind is known here, its tokenizer, and its weights, mapped and not copied."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

WEIGHTS, TOKENIZER = "model.safetensors", "tokenizer.json"

Tokenize = Callable[[list[str]], list[list[int]]]


def is_plain_bert(folder: Path, config: Any) -> bool:
    """Whether the folder holds a BERT of the usual kind, in one safetensors file."""
    return (
        config.get("model_type") == "bert"
        and config.get("hidden_act") == "gelu"
        and config.get("position_embedding_type", "absolute") == "absolute"
        and not config.get("is_decoder", False)
        and (folder / TOKENIZER).is_file()
        and (folder / WEIGHTS).is_file()
        and "encoder.layer.0.attention.output.LayerNorm.weight" in _header(folder / WEIGHTS)[0]
    )


def fast_tokenizer(folder: Path, max_tokens: int | None) -> Tokenize:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / TOKENIZER))
    tokenizer.no_padding()
    if max_tokens is None:
        tokenizer.no_truncation()
    else:
        tokenizer.enable_truncation(max_tokens)
    return lambda texts: [encoding.ids for encoding in tokenizer.encode_batch(texts)]


def mapped_weights(folder: Path) -> dict[str, NDArray[np.float32]] | None:
    """By their names without "bert."; None where they are not all float32. Raises ValueError for a file cut short.

    What is mapped is read when it is used, and is in memory once for all processes.
    """
    tensors, start = _header(folder / WEIGHTS)
    if any(tensor["dtype"] != "F32" for tensor in tensors.values() if tensor["dtype"] != "I64"):
        return None
    file = np.memmap(folder / WEIGHTS, np.uint8, "r")
    weights = {}
    for name, tensor in tensors.items():
        if tensor["dtype"] == "F32":
            begin, end = tensor["data_offsets"]
            weights[name] = np.frombuffer(file, np.float32, (end - begin) // 4, start + begin).reshape(tensor["shape"])
    return weights


def _header(file: Path) -> tuple[dict[str, Any], int]:
    """The tensors' types, shapes and places, from the JSON at the head of a safetensors file; where the data begin."""
    with open(file, "rb") as weights:
        length = int.from_bytes(weights.read(8), "little")
        tensors = json.loads(weights.read(length))
    tensors.pop("__metadata__", None)
    return {name.removeprefix("bert."): tensor for name, tensor in tensors.items()}, 8 + length
