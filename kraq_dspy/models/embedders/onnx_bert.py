"""Runs a BERT (Devlin et al., 2019) in ONNX Runtime: a text's tokens in, its vector or those of its tokens out."""

import mmap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kraq_dspy.errors import import_extra
from kraq_dspy.ports import Vectors

FOLDER = Path(__file__).parent / "packaged"
"""Graphs without weights, tokenizers, and where tensors lie in the packages that have them (README.md there)."""

Rows = Callable[[NDArray[np.int64]], Vectors]
"""Word numbers `[tokens]` to the rows of a table, float32 `[tokens, width]`."""


class OnnxBert:
    """A graph with the weights that it names, and the tables that it does not have.

    Each text is run by itself, without padding, so its vector depends on nothing else. A run has one thread: texts are
    spread over threads by the caller, which keeps them from waiting for each other at every layer. Safe for threads.
    """

    def __init__(
        self, graph: str, weights: Mapping[str, Vectors], words: Rows, positions: Vectors, second: Vectors
    ) -> None:
        """`positions` are those of tokens of the first kind; `second`, `[width]`, is what one of the second kind has
        more."""
        onnxruntime = import_extra("onnxruntime", "", "The packaged sentence encoder")
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        options.log_severity_level = 3  # errors: it warns of machines without a graphics card
        values = [onnxruntime.OrtValue.ortvalue_from_numpy(weight) for weight in weights.values()]
        options.add_external_initializers(list(weights), values)

        self._session: Any = onnxruntime.InferenceSession(
            str(FOLDER / graph), options, providers=["CPUExecutionProvider"]
        )
        self._vector, self._of_tokens = (output.name for output in self._session.get_outputs())
        self._words = words
        self._positions = positions
        self._second = second

    def __call__(self, texts: Sequence[Sequence[int]], kinds: Sequence[Sequence[int]] | None = None) -> Vectors:
        """float32 `[n_texts, width]`, rows L2-normalised, of the tokens of one text or more.

        `kinds` are 0 for tokens of the first part of a text and 1 for those of the second; without them, all are of the
        first.
        """
        vectors = []
        for number, tokens in enumerate(texts):
            rows = self._rows(tokens)
            if kinds is not None:
                rows = rows + np.asarray(kinds[number], np.float32)[:, None] * self._second
            [vector] = self._session.run([self._vector], {"rows": rows[None]})
            vectors.append(vector)
        return np.concatenate(vectors)

    def token_vectors(self, tokens: Sequence[int]) -> Vectors:
        """float32 `[n_tokens, width]`: what the last layer says of each token of one text, not normalised."""
        [[vectors]] = self._session.run([self._of_tokens], {"rows": self._rows(tokens)[None]})
        of_tokens: Vectors = vectors
        return of_tokens

    def _rows(self, tokens: Sequence[int]) -> Vectors:
        rows: Vectors = self._words(np.asarray(tokens)) + self._positions[: len(tokens)]
        return rows


class TensorFile:
    """Tensors in a file whose places in it are known; what is mapped is read when it is used.

    A tensor is float32, or int8 with scales that widen it.
    """

    def __init__(self, file: Path, places: Mapping[str, Any]) -> None:
        with open(file, "rb") as opened:
            self._content = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)
        self._places = places
        self.names = tuple(places)

    def tensor(self, name: str) -> Vectors:
        """Read a tensor in float32."""
        place = self._places[name]
        if "int8" not in place:
            floats: Vectors = self._numbers(place["float32"], place["shape"], np.float32)
            return floats
        numbers, scales = self.quantized(name)
        widened: Vectors = numbers * scales
        return widened

    def quantized(self, name: str) -> tuple[NDArray[np.int8], Vectors]:
        """A tensor in int8, not copied, and its scales."""
        place = self._places[name]
        numbers = self._numbers(place["int8"], place["shape"], np.int8)
        return numbers, self._numbers(place["scales"], place["scales_shape"], np.float32)

    def _numbers(self, begin: int, shape: Sequence[int], kind: type[np.generic]) -> Any:
        count = int(np.prod(shape))
        if kind is np.int8:
            return np.frombuffer(self._content, kind, count, begin).reshape(shape)
        # A copy: floats lie in the file where processors do not like to read them.
        return np.frombuffer(self._content[begin : begin + 4 * count], kind).reshape(shape)
