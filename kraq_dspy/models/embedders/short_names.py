"""Short names of small encoders that retrieve well, with what each of them was trained to be given.

    kraq index docs/ --out docs.kraq --encoder bge-small

Their makers' weights are taken from a folder of that name beside the models of `kraq lm get`, else from the hub.
"""

import dataclasses
from dataclasses import dataclass

from kraq_dspy.models.embedders.model_folder import ModelFolder

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
