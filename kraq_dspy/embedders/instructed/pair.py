"""Embeds question and passage read as one pair by the packaged sentence encoder: the default E(d|q)."""

import functools
import json
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from kraq_dspy.copies import SharedByCopies
from kraq_dspy.embedders.instructed.transformer import PACKAGED, Transformer, mean, name_of
from kraq_dspy.embedders.model_folder import packaged_folder
from kraq_dspy.ports import Vectors


class PairEmbedder(SharedByCopies):
    """Mean of the token vectors of "[CLS] question [SEP] passage [SEP]".

    What it can do: run anywhere at once, and move passages about a question's words together, since every token of
    the passage attends to the question. What it cannot: follow an instruction. all-MiniLM-L6-v2 was trained on single
    texts, so the question acts as context, not as an order; two passages that answer differently but use the same
    words stay close. For the papers' behaviour use InBedder.

    `max_tokens` counts both texts; the passage is cut first. `name` says model, recipe and length, because vectors of
    different ones must not be mixed. The packaged weights are loaded for the first passage: a program that looks all of
    them up never needs them.
    """

    def __init__(self, name: str = PACKAGED, *, max_tokens: int = 256, dtype: str = "float32", **options: Any) -> None:
        self.max_tokens = max_tokens
        self._load: Callable[[], Transformer] = functools.partial(Transformer, name, dtype=dtype, **options)
        self._loading = threading.Lock()
        self._loaded: Transformer | None = None
        if name == PACKAGED:
            config = json.loads((packaged_folder() / "config.json").read_text("utf-8"))
            self.name, self.dimension = f"pair:{name_of(name, dtype)}@{max_tokens}", int(config["hidden_size"])
        else:
            self.name, self.dimension = f"pair:{self.transformer.name}@{max_tokens}", self.transformer.dimension

    @property
    def transformer(self) -> Transformer:
        with self._loading:
            if self._loaded is None:
                self._loaded = self._load()
            return self._loaded

    def encode(self, question: str, passages: Sequence[str]) -> Vectors:
        """float32 `[n_passages, dimension]`, rows L2-normalised."""
        if not passages:
            return np.zeros((0, self.dimension), dtype=np.float32)
        tokenizer = self.transformer.tokenizer
        # A question longer than half of the limit would leave nothing for the passage.
        question_tokens = tokenizer(
            question, add_special_tokens=False, truncation=True, max_length=self.max_tokens // 2
        )
        question = (
            question
            if len(question_tokens["input_ids"]) < self.max_tokens // 2
            else tokenizer.decode(question_tokens["input_ids"])
        )
        rows = [
            dict(tokenizer(question, passage, truncation="only_second", max_length=self.max_tokens))
            for passage in passages
        ]
        return self.transformer.encode(rows, mean)
