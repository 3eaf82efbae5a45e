"""Embeds passages after an instruction: the question stands where the encoder's task description goes."""

import importlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from kraq_dspy.copies import SharedByCopies
from kraq_dspy.embedders.instructed.transformer import Transformer, last, mean
from kraq_dspy.errors import ConfigError
from kraq_dspy.ports import Vectors


@dataclass(frozen=True, slots=True)
class Family:
    """How a family of encoders wants its input: `before` with `{question}`, then the passage.

    `pooling` "passage" averages the tokens after `before` only. `end` adds the end-of-text token where the tokeniser
    does not.
    """

    before: str
    pooling: Literal["last", "mean", "passage"]
    end: bool = False
    model_class: str = "AutoModel"


FAMILIES = {
    # Qwen3-Embedding and e5-mistral: model cards, "Instruct: {task}\nQuery: {text}", last token.
    "qwen3": Family("Instruct: {question}\nQuery:", "last", end=True),
    "e5-mistral": Family("Instruct: {question}\nQuery: ", "last", end=True),
    # nomic-embed-text knows tasks, not instructions: the question is read as the beginning of the text to cluster.
    "nomic": Family("clustering: {question} ", "mean"),
    # INSTRUCTOR (Su et al., 2023): the instruction is read but not averaged.
    "instructor": Family(
        "Represent the passage for the question {question}: ", "passage", model_class="T5EncoderModel"
    ),
}


class PrefixInstructed(SharedByCopies):
    """A sentence encoder of one of FAMILIES. A passage that is too long loses its end.

    Raises ConfigError for an unknown family, and a ValueError for a question that leaves nothing for a passage.
    """

    def __init__(self, family: str, name: str, *, max_tokens: int = 512, **options: Any) -> None:
        if family not in FAMILIES:
            raise ConfigError(f"Unknown family of instructed encoders {family!r}; known: {', '.join(FAMILIES)}.")
        self.family = FAMILIES[family]
        self.transformer = Transformer(name, model_class=self.family.model_class, **options)
        self.max_tokens = max_tokens
        self.name = f"{family}:{self.transformer.name}@{max_tokens}"
        self._dense = _projection(self.transformer.folder)
        self.dimension = len(self._dense) if self._dense is not None else self.transformer.dimension

    def encode(self, question: str, passages: Sequence[str]) -> Vectors:
        """float32 `[n_passages, dimension]`, rows L2-normalised."""
        tokenizer = self.transformer.tokenizer
        before = self.family.before.format(question=question)
        limit = self.max_tokens - self.family.end
        n_before = len(tokenizer(before, add_special_tokens=False)["input_ids"])
        if n_before + 8 > limit:
            raise ValueError(f"The question has {n_before} tokens; {self.name} takes {self.max_tokens} with a passage.")
        rows = []
        for passage in passages:
            row = dict(tokenizer(before + passage, truncation=True, max_length=limit))
            if self.family.end and row["input_ids"][-1] != tokenizer.eos_token_id:
                row["input_ids"] = [*row["input_ids"], tokenizer.eos_token_id]
                row["attention_mask"] = [*row["attention_mask"], 1]
            rows.append(row)
        if self.family.pooling == "last":
            return self._projected(self.transformer.encode(rows, last, side="left"))
        if self.family.pooling == "mean":
            return self._projected(self.transformer.encode(rows, mean))

        def mean_of_passage(hidden: Any, mask: Any, ids: Any) -> Any:
            kept = mask.clone()
            kept[:, :n_before] = 0
            return mean(hidden, kept, ids)

        return self._projected(self.transformer.encode(rows, mean_of_passage))

    def _projected(self, vectors: Vectors) -> Vectors:
        if self._dense is None:
            return vectors
        rows = vectors @ self._dense.T
        return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), dtype=np.float32)


def _projection(folder: str) -> Vectors | None:
    """The linear layer without bias that INSTRUCTOR has after pooling (`2_Dense`), `[out, in]`; None without one.

    Scaling commutes with it, so it may follow the normalisation.
    """
    beside = Path(folder) / "2_Dense"
    files = beside if beside.is_dir() else _from_hub(folder)
    if files is None:
        return None
    config = json.loads((files / "config.json").read_text("utf-8"))
    if config.get("bias") or not config["activation_function"].endswith("Identity"):
        raise ConfigError(f"{folder!r} has a 2_Dense layer with a bias or an activation, which is not supported.")
    if (files / "model.safetensors").exists():
        tensors = importlib.import_module("safetensors.numpy").load_file(files / "model.safetensors")
    else:
        torch = importlib.import_module("torch")
        tensors = torch.load(files / "pytorch_model.bin", map_location="cpu", weights_only=True)
    return np.asarray(tensors["linear.weight"], dtype=np.float32)


def _from_hub(name: str) -> Path | None:
    if Path(name).exists():
        return None
    hub = importlib.import_module("transformers.utils.hub")
    config = hub.cached_file(name, "2_Dense/config.json", _raise_exceptions_for_missing_entries=False)
    if config is None:
        return None
    for weights in ("2_Dense/model.safetensors", "2_Dense/pytorch_model.bin"):
        hub.cached_file(name, weights, _raise_exceptions_for_missing_entries=False)
    return Path(config).parent
