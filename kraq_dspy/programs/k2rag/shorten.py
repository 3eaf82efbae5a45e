"""Summarises documents before K2RAG indexes them, and what it found for a question."""

from typing import Any, ClassVar

import dspy

from kraq_dspy._internal.both_ways import call
from kraq_dspy._internal.step import FittingPredict
from kraq_dspy.asset.corpus.chunk import chunk_document
from kraq_dspy.asset.corpus.tokens import count_tokens
from kraq_dspy.ports import Summariser
from kraq_dspy.records import Document
from kraq_dspy.settings import ChunkSettings, K2RAGSettings
from kraq_dspy.signatures import ShortenText
from kraq_dspy.state import SavableModule

PIECE_TOKENS = 8000  # what one call of a language model reads; a sequence-to-sequence model knows its own limit
_WORDS_PER_TOKEN = 0.75


class Shorten(SavableModule):
    """Shortens a text (K2RAG paper). A text of at most `least_tokens` tokens does not change.

    Args:
        summariser: shortens a piece of text; by default the language model of the module.
        share: the length of the result as a share of the text, in (0, 1]. The paper's Longformer came to 0.11.
        least_tokens: the least length of the result, in tokens.

    Raises:
        ValueError: for an option out of range, or when called, if the result is empty.

    The module shortens a long text piece by piece. If the result is longer than the text, the module returns the text
    unchanged.

    >>> from dspy.utils import DummyLM
    >>> with dspy.context(lm=DummyLM([{"shortened": "Ada lived in London."}])):
    ...     Shorten(share=0.5, least_tokens=5)(text="Ada lived in London, which is a city in England.").shortened
    'Ada lived in London.'
    """

    outputs: ClassVar[dict[str, Any]] = {"shortened": str}

    def __init__(
        self,
        summariser: Summariser | None = None,
        *,
        share: float = K2RAGSettings.share,
        least_tokens: int = K2RAGSettings.least_tokens,
    ) -> None:
        super().__init__()
        if not 0 <= share <= 1 or least_tokens < 1:
            raise ValueError(f"share is {share}, from 0 to 1, and least_tokens {least_tokens}, 1 or more.")

        self.summariser = summariser
        self.summariser_name = summariser.name if summariser else ""  # a result depends on it
        self.share = share
        self.least_tokens = least_tokens
        if summariser is None:
            self.shorten = FittingPredict(ShortenText, shorten="text")

    async def aforward(self, text: str) -> dspy.Prediction:
        tokens = count_tokens(text)
        limit = max(self.least_tokens, round(self.share * tokens))
        if tokens <= limit:
            return dspy.Prediction(shortened=text)
        words = max(1, round(limit * _WORDS_PER_TOKEN))
        if self.summariser is not None:
            return _checked(text, await call(self.summariser, text, words))
        pieces = [text] if tokens <= PIECE_TOKENS else split(text, PIECE_TOKENS, 0)
        share = max(1, words // len(pieces))
        replies = [await call(self.shorten, text=piece, words=share) for piece in pieces]
        return _checked(text, "\n".join(reply.shortened.strip() for reply in replies))


def split(text: str, tokens: int, overlap: int) -> list[str]:
    """The paper's chunking of a text (equation 1), but cut at sentences if it can be, and with the rest that the
    equation drops."""
    document = Document(id="", title="", text=text)
    return [chunk.text for chunk in chunk_document(document, ChunkSettings(tokens=tokens, overlap=overlap))]


def _checked(text: str, shortened: str) -> dspy.Prediction:
    if not shortened.strip():
        raise ValueError("The summary is empty.")
    shorter = shortened.strip() if count_tokens(shortened) < count_tokens(text) else text
    return dspy.Prediction(shortened=shorter)
