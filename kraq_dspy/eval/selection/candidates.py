"""Names the systems that `kraq select` tries: a retriever over chunks of one size, asked for k passages."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from kraq_dspy.errors import ConfigError
from kraq_dspy.settings import ChunkSettings
from kraq_dspy.workspace.choices import choose_retriever

CHUNK_SIZES = (300, 150, 600)
"""Tokens of a chunk that are tried."""
NUMBERS_OF_PASSAGES = (5, 10, 20)
"""Passages for a question that are tried."""
CONTEXT = 4000
"""Most tokens of passages that an answer may be read from, on average."""
MINUTES = 10.0
"""The time of one run."""

TRIED = ("dense", "bm25", "hybrid", "fusion", "sentence-window", "adaptive", "pagerank", "combined")
"""Retrievers that ask no model, tried unless others are named."""
BY_WORDS_ALONE = frozenset(("bm25",))
"""Those that know nothing but words: questions that copy their passages' words make them look better than they are."""
LEAST_TOKENS = 16
"""Fewest tokens of a chunk."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A retriever over chunks of at most `tokens` tokens, of which it hands on the `k` best.

    >>> Candidate("hybrid", 300, 10).name
    'hybrid, 300 tokens, k 10'
    """

    retriever: str
    tokens: int
    k: int

    @property
    def name(self) -> str:
        return f"{self.retriever}, {self.tokens} tokens, k {self.k}"

    @property
    def needs_graph(self) -> bool:
        return choose_retriever(self.retriever).spec.needs_graph


@dataclass(frozen=True, slots=True)
class SelectionPlan:
    """The candidates of `select`, and the limits of the trial.

    Args:
        retrievers: names of retrievers.
        chunk_tokens: sizes of chunks, in tokens.
        ks: numbers of passages.
        context: the most tokens of passages for an answer, on average.
        minutes: the time of one run.
        seed: the random seed of the order of the questions.
    """

    retrievers: tuple[str, ...] = TRIED
    chunk_tokens: tuple[int, ...] = CHUNK_SIZES
    ks: tuple[int, ...] = NUMBERS_OF_PASSAGES
    context: int = CONTEXT
    minutes: float = MINUTES
    seed: int = 0

    def __post_init__(self) -> None:
        for name in self.retrievers:
            choose_retriever(name)
        for what, values, least in (
            ("retrievers", [1] * len(self.retrievers), 1),
            ("chunk_tokens", self.chunk_tokens, LEAST_TOKENS),
            ("ks", self.ks, 1),
            ("context", [self.context], 1),
        ):
            if not values or min(values) < least:
                given = ", ".join(map(str, values)) or "empty"
                raise ConfigError(f"{what} is {given}; expected numbers from {least} on.")

        if not self.minutes > 0:
            raise ConfigError(f"minutes is {self.minutes}; expected more than 0.")

    def candidates(self, *, needs_graph: bool) -> list[Candidate]:
        """Those that need a graph, or those that do not: by chunk size, in the order in which the sizes are named."""
        every = [
            Candidate(retriever, tokens, k)
            for tokens in dict.fromkeys(self.chunk_tokens)
            for retriever in dict.fromkeys(self.retrievers)
            for k in dict.fromkeys(self.ks)
        ]
        return [candidate for candidate in every if candidate.needs_graph is needs_graph]


def chunks_of(tokens: int, usual: ChunkSettings) -> ChunkSettings:
    """Chunks of that size, which overlap by the same share as the `usual` ones.

    >>> chunks_of(150, ChunkSettings(tokens=300, overlap=50)).overlap
    25
    """
    return dataclasses.replace(usual, tokens=tokens, overlap=tokens * usual.overlap // usual.tokens)


def rungs(n_questions: int) -> list[int]:
    """How many questions each round of a race asks: a quarter, a half, all; at least `FEW` if there are so many.

    >>> rungs(200), rungs(30), rungs(12)
    ([50, 100, 200], [20, 30], [12])
    """
    counts = [max(FEW, n_questions // 4), max(FEW, n_questions // 2)]
    return [*sorted({count for count in counts if count < n_questions}), n_questions]


FEW = 20
"""Questions of a first round."""


def better_half(ranked: Sequence[Candidate]) -> list[Candidate]:
    """The first half of those that are ranked, two at least."""
    return list(ranked[: max(2, -(-len(ranked) // 2))])
