"""Reads a question and a passage as one text with the packaged encoder, without torch."""

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from kraq_dspy._internal.concurrency import SharedByCopies, run_all, usable_cores
from kraq_dspy.errors import ConfigError
from kraq_dspy.models.embedders.model_folder import clean_text
from kraq_dspy.models.embedders.packaged_embedder import MAX_TOKENS, MINILM, PACKAGED_MODELS, POSITIONS, LoadedModel
from kraq_dspy.ports import Vectors


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
        self.name = f"pair:{MINILM}[{PACKAGED_MODELS[MINILM].precision}]@{max_tokens}"
        self._threads = threads or usable_cores()

    @cached_property
    def _model(self) -> LoadedModel:
        return PACKAGED_MODELS[MINILM].loaded(cut_at=None)

    def encode(self, question: str, passages: Sequence[str]) -> Vectors:
        """float32 `[n_passages, 384]`, rows L2-normalised."""
        if not passages:
            return np.zeros((0, self.dimension), dtype=np.float32)

        texts = [clean_text(text) for text in (question, *passages)]
        question_tokens, *passages_tokens = self._model.tokenize(texts)  # each with its first and its last mark
        begin, *question_words, end = question_tokens
        # A longer question would leave no room for the passage.
        question_part = [begin, *question_words[: self.max_tokens // 2], end]

        def vector_of(tokens: list[int]) -> Vectors:
            words = tokens[1:-1]
            passage = [*words[: self.max_tokens - len(question_part) - 1], end]
            parts = [0] * len(question_part) + [1] * len(passage)
            return self._model.bert([[*question_part, *passage]], [parts])

        return np.concatenate(run_all(vector_of, passages_tokens, limit=self._threads))
