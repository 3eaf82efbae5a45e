"""The default E(d|q): question and passage read as one pair by the packaged sentence encoder."""

from collections.abc import Sequence
from typing import Any

from kraq_dspy.embedders.instructed.transformer import PACKAGED, Transformer, mean
from kraq_dspy.ports import Vectors


class PairEmbedder:
    """Mean of the token vectors of "[CLS] question [SEP] passage [SEP]".

    What it can do: run anywhere at once, and move passages about a question's words together, since every token of
    the passage attends to the question. What it cannot: follow an instruction. all-MiniLM-L6-v2 was trained on single
    texts, so the question acts as context, not as an order; two passages that answer differently but use the same
    words stay close. For the papers' behaviour use InBedder.

    `max_tokens` counts both texts; the passage is cut first. `name` says model, recipe and length, because vectors of
    different ones must not be mixed.
    """

    def __init__(self, name: str = PACKAGED, *, max_tokens: int = 256, **options: Any) -> None:
        self.transformer = Transformer(name, **options)
        self.max_tokens = max_tokens
        self.name = f"pair:{self.transformer.name}@{max_tokens}"
        self.dimension = self.transformer.dimension

    def __deepcopy__(self, memo: dict[int, Any]) -> "PairEmbedder":
        return self

    def encode(self, question: str, passages: Sequence[str]) -> Vectors:
        """float32 `[n_passages, dimension]`, rows L2-normalised."""
        tokenizer = self.transformer.tokenizer
        # A question longer than half of the room would leave none for the passage.
        asked = tokenizer(question, add_special_tokens=False, truncation=True, max_length=self.max_tokens // 2)
        question = question if len(asked["input_ids"]) < self.max_tokens // 2 else tokenizer.decode(asked["input_ids"])
        rows = [
            dict(tokenizer(question, passage, truncation="only_second", max_length=self.max_tokens))
            for passage in passages
        ]
        return self.transformer.encode(rows, mean)
