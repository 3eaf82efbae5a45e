"""Draws rows so that they share as many words with their passages as human questions do, and search by words and
search by meaning find equally many."""

import math
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kraq_dspy.language.text import content_words
from kraq_dspy.records import TestsetRow
from kraq_dspy.testset import kinds

BINS = (0.4, 0.6, 0.75, 0.9)
"""Upper ends of all bins of the overlap but the last, which ends at 1."""
PEOPLE: tuple[float, ...] = (0.05, 0.18, 0.23, 0.23, 0.31)
"""Shares of human questions in each bin: the mean of hotpotqa, squad and clapnq, measured on half of the documents
of each (benchmarks/results/testsets.md)."""

WORDS, MEANING = "bm25", "dense"
"""Pooling retrievers of which neither is to find more of a set."""
MOST_EVENED = 10.0
"""By how much at most a row becomes more or less frequent for that."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A row that may be drawn. Of those of one `source` at most one is: they are wordings of one question."""

    row: TestsetRow
    source: str

    @property
    def question(self) -> str:
        """The question without regard to case."""
        return self.row.question.casefold()


def overlap(question: str, passages: Sequence[str]) -> float:
    """Share of the question's telling words that its passages have, 0 to 1.

    >>> overlap("Where did Ada Lovelace dwell?", ["Ada Lovelace lived in London."])
    0.6666666666666666
    """
    question_words = set(content_words(question))
    passage_words = {word for passage in passages for word in content_words(passage)}
    return len(question_words & passage_words) / len(question_words) if question_words else 0.0


def bin_of(share: float) -> int:
    return sum(share > end for end in BINS)


def weight_of(candidate: Candidate, present: Mapping[int, int]) -> float:
    """Tell how often a row should be drawn, relative to others: more where human questions have
    its overlap and few rows do. `present` counts rows by bin."""
    place = bin_of(candidate.row.overlap)
    return PEOPLE[place] / present[place]


def evened(candidates: Sequence[Candidate], weights: Sequence[float]) -> list[float]:
    """Return the weights so that rows which only search by words solved weigh as much as those which only search by
    meaning solved.

    Questions that a text gave repeat its names, which favors words; nobody knows beforehand which of the two people's
    questions favor. So a set does not tell these two apart, and what combines them is not judged by the one alone.

    >>> row = TestsetRow("t1", "Who met Ada?", "fact", supporting_ids=("ada",), solved_by=("bm25",))
    >>> other = TestsetRow("t2", "Who met Eve?", "fact", supporting_ids=("eve",), solved_by=("dense",))
    >>> evened([Candidate(row, "a"), Candidate(row, "b"), Candidate(other, "c")], [2.0, 2.0, 1.0])
    [1.0, 1.0, 2.0]
    """
    favors = [(WORDS in each.row.solved_by) - (MEANING in each.row.solved_by) for each in candidates]
    by_words = sum(weight for weight, favor in zip(weights, favors, strict=True) if favor > 0)
    by_meaning = sum(weight for weight, favor in zip(weights, favors, strict=True) if favor < 0)
    if not by_words and not by_meaning:
        return list(weights)

    ratio = math.sqrt(by_words / by_meaning) if by_meaning else MOST_EVENED
    factor = min(max(ratio, 1 / MOST_EVENED), MOST_EVENED)
    return [weight / factor**favor for weight, favor in zip(weights, favors, strict=True)]


def draw(candidates: Sequence[Candidate], n: int, shares: Mapping[str, float], *, seed: int) -> list[TestsetRow]:
    """Return up to `n` of the rows, in their order, each kind by its share. If a kind has too
    few rows, the others fill in by their shares, those with an answer first."""
    chance = random.Random(seed)
    counts = quotas(n, shares)
    chosen_ids: set[str] = set()
    turns_of_others: list[tuple[bool, float, str]] = []

    for kind, share in shares.items():
        of_kind = [candidate for candidate in candidates if candidate.row.type == kind]
        ids = [candidate.row.id for candidate in _ranked(of_kind, chance)]
        quota = counts[kind]
        chosen_ids.update(ids[:quota])

        has_no_answer = kind in kinds.WITHOUT_ANSWER
        for place, row_id in enumerate(ids[quota:], start=1):
            turns_of_others.append((has_no_answer, place / share, row_id))

    n_lacking = max(0, n - len(chosen_ids))
    for _, _, row_id in sorted(turns_of_others)[:n_lacking]:
        chosen_ids.add(row_id)
    return [candidate.row for candidate in candidates if candidate.row.id in chosen_ids]


def _ranked(of_kind: Sequence[Candidate], chance: random.Random) -> list[Candidate]:
    """Draw an order by weight, each waiting the shorter the more it weighs; the first wording of each question is in
    it."""
    present = Counter(bin_of(candidate.row.overlap) for candidate in of_kind)
    weights = evened(of_kind, [weight_of(candidate, present) for candidate in of_kind])
    waits: dict[str, float] = {}
    for candidate, weight in zip(of_kind, weights, strict=True):
        waits[candidate.row.id] = chance.expovariate(weight)

    first_wordings: dict[str, Candidate] = {}
    for candidate in sorted(of_kind, key=lambda candidate: (waits[candidate.row.id], candidate.row.id)):
        first_wordings.setdefault(candidate.source, candidate)
    return list(first_wordings.values())


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
    answerable = [row for row in rows if row.is_answerable]
    if not answerable:
        return 0.0, 0.0
    every = sum(len(row.solved_by) == n_retrievers for row in answerable)
    none = sum(not row.solved_by for row in answerable)
    return every / len(answerable), none / len(answerable)
