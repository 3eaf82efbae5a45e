"""Draws rows so that they are as hard as people's questions: by the words they share with their passages, and by how
many unlike retrievers solve them."""

import random
from collections import Counter
from collections.abc import Mapping, Sequence

from kraq_dspy.language.text import content_words
from kraq_dspy.programs.testset import kinds
from kraq_dspy.records import TestsetRow

BINS = (0.4, 0.6, 0.75, 0.9)
"""Upper ends of all bins of the overlap but the last, which ends at 1."""
PEOPLE: tuple[float, ...] = (0.05, 0.18, 0.23, 0.23, 0.31)
"""Shares of people's questions in each bin: the mean of hotpotqa, squad and clapnq, measured on half of the documents
of each (docs/results/testsets.md)."""
SATURATED = 0.35
"""How much less often a row is drawn that every unlike retriever solves, or that none does: it tells none of them
apart."""


def overlap(question: str, passages: Sequence[str]) -> float:
    """Share of the question's telling words that its passages have, 0 to 1.

    >>> overlap("Where did Ada Lovelace dwell?", ["Ada Lovelace lived in London."])
    0.6666666666666666
    """
    asked = set(content_words(question))
    said = {word for passage in passages for word in content_words(passage)}
    return len(asked & said) / len(asked) if asked else 0.0


def bin_of(share: float) -> int:
    return sum(share > end for end in BINS)


def weight_of(row: TestsetRow, present: Mapping[int, int], n_retrievers: int) -> float:
    """Tell how often a row should be drawn, relative to others: more where people's questions have
    its overlap and few rows do, less where it tells no retriever from another. `present` counts
    rows by bin."""
    place = bin_of(row.overlap)
    weight = PEOPLE[place] / present[place]
    tells_apart = not row.is_answerable or 0 < len(row.solved_by) < n_retrievers
    return weight if tells_apart else weight * SATURATED


def draw(
    rows: Sequence[TestsetRow], n: int, shares: Mapping[str, float], *, n_retrievers: int, seed: int
) -> list[TestsetRow]:
    """Return up to `n` of the rows, in their order, each kind by its share; what a kind lacks is
    drawn from the others."""
    chance = random.Random(seed)
    ranked: dict[str, list[TestsetRow]] = {}
    for kind in shares:
        of_kind = [row for row in rows if row.type == kind]
        present = Counter(bin_of(row.overlap) for row in of_kind)
        waits = {row.id: chance.expovariate(weight_of(row, present, n_retrievers)) for row in of_kind}
        ranked[kind] = sorted(of_kind, key=lambda row: (waits[row.id], row.id))

    counts = quotas(n, shares)
    chosen = {row.id for kind, some in ranked.items() for row in some[: counts[kind]]}
    others = [row for kind, some in ranked.items() for row in some[counts[kind] :]]
    chance.shuffle(others)
    others.sort(key=lambda row: row.type in kinds.WITHOUT_ANSWER)
    chosen |= {row.id for row in others[: max(0, n - len(chosen))]}
    return [row for row in rows if row.id in chosen]


def quotas(n: int, shares: Mapping[str, float]) -> dict[str, int]:
    """Whole numbers by kind that sum to `n`.

    >>> quotas(10, {"fact": 0.75, "bridge": 0.25})
    {'fact': 8, 'bridge': 2}
    """
    counts = {kind: int(n * share) for kind, share in shares.items()}
    rests = sorted(shares, key=lambda kind: (counts[kind] - n * shares[kind], list(shares).index(kind)))
    for kind in rests[: n - sum(counts.values())]:
        counts[kind] += 1
    return counts


def saturation(rows: Sequence[TestsetRow], n_retrievers: int) -> tuple[float, float]:
    """Shares of the answerable rows that every retriever solved, and that none did, when the rows were made."""
    asked = [row for row in rows if row.is_answerable]
    if not asked:
        return 0.0, 0.0
    every = sum(len(row.solved_by) == n_retrievers for row in asked)
    none = sum(not row.solved_by for row in asked)
    return every / len(asked), none / len(asked)
