"""Embeds by what a masked language model would answer: InBedder (Peng et al., 2024), the papers' encoder."""

from collections.abc import Sequence
from typing import Any

from kraq_dspy.copies import SharedByCopies
from kraq_dspy.embedders.instructed.transformer import Transformer
from kraq_dspy.errors import ModelError
from kraq_dspy.ports import Vectors

PROMPT = "### Input:\n{passage}\n\n### Instruction:\n{question}\n\n### Response:"
N_MASKS = 3


class InBedder(SharedByCopies):
    """The mean of the last hidden layer over three masks that follow the prompt (InBedder-RoBERTa).

    Texts that are too long lose the beginning of the passage, never the question or the masks, unless the question
    alone fills `max_tokens`: that raises ModelError.
    """

    def __init__(self, name: str, *, max_tokens: int = 512, **options: Any) -> None:
        self.transformer = Transformer(name, truncation_side="left", **options)
        if self.transformer.tokenizer.mask_token is None:
            raise ModelError(f"{name!r} has no mask token; InBedder needs a masked language model such as RoBERTa.")
        self.max_tokens = max_tokens
        self.name = f"inbedder:{self.transformer.name}@{max_tokens}"
        self.dimension = self.transformer.dimension

    def encode(self, question: str, passages: Sequence[str]) -> Vectors:
        """float32 `[n_passages, dimension]`, rows L2-normalised."""
        tokenizer = self.transformer.tokenizer
        mask = tokenizer.mask_token
        texts = [
            # A mask in the text itself would be averaged too.
            PROMPT.format(passage=passage, question=question).replace(mask, " ") + mask * N_MASKS
            for passage in passages
        ]
        rows = [dict(tokenizer(text, truncation=True, max_length=self.max_tokens)) for text in texts]
        fixed = len(tokenizer(PROMPT.format(passage="", question=question).replace(mask, " "))["input_ids"]) + N_MASKS
        if fixed > self.max_tokens:
            raise ModelError(
                f"The question has {fixed} tokens with its prompt; {self.name} takes {self.max_tokens}. Shorten it."
            )
        for row in rows:
            if row["input_ids"].count(tokenizer.mask_token_id) != N_MASKS:
                raise ModelError(f"{self.name}: a prompt does not end in {N_MASKS} masks; its tokeniser does not fit.")
        return self.transformer.encode(rows, self._over_masks)

    def _over_masks(self, hidden: Any, mask: Any, ids: Any) -> Any:
        weights = (ids == self.transformer.tokenizer.mask_token_id).unsqueeze(-1).to(hidden.dtype)
        return (hidden * weights).sum(1) / N_MASKS
