"""Embeds by what a language model is about to answer: its hidden state where the answer would begin."""

from collections.abc import Sequence
from typing import Any

from kraq_dspy.copies import SharedByCopies
from kraq_dspy.embedders.instructed.transformer import Transformer, last
from kraq_dspy.errors import ConfigError
from kraq_dspy.ports import Vectors

PROMPT = "{passage}\n\nQuestion: {question}\nAnswer:"
DEPTH = 1 / 3


class Decoder(SharedByCopies):
    """The last token's hidden state after passage and question, in an instructed language model: a folder, a hub name
    or a GGUF file. InBedder (Peng et al., 2024) found such states to follow the question.

    `layers` of the model are run, and no more are loaded: a third of them where it is None, for middle layers part
    passages by the question better than the last one does (docs/results/speculative.md). A passage that is too long
    loses its beginning.
    """

    def __init__(self, name: str, *, layers: int | None = None, max_tokens: int = 512, **options: Any) -> None:
        depth = Transformer.depth(name)
        if layers is not None and not 1 <= layers <= depth:
            raise ConfigError(f"instructed.layers is {layers}; {name!r} has {depth}.")
        self.layers = layers or max(1, round(depth * DEPTH))
        self.transformer = Transformer(name, truncation_side="left", layers=self.layers, **options)
        self.max_tokens = max_tokens
        self.name = f"decoder:{self.transformer.name}/{self.layers}@{max_tokens}"
        self.dimension = self.transformer.dimension

    def encode(self, question: str, passages: Sequence[str]) -> Vectors:
        """float32 `[n_passages, dimension]`, rows L2-normalised."""
        tokenizer = self.transformer.tokenizer
        texts = [PROMPT.format(passage=passage, question=question) for passage in passages]
        rows = [dict(tokenizer(text, truncation=True, max_length=self.max_tokens)) for text in texts]
        return self.transformer.encode(rows, last, side="left")
