"""Keeps which passages answer human questions, as a person marks them one question after another.

    labeling = Labeling(space, read_questions("log.csv"), "few.jsonl", n=10)
    while (question := labeling.next()) is not None:
        passages = labeling.passages(question)
        labeling.label(question, passages[:1])  # none: the documents do not answer it

Every label is in the file when `label` returns, so a killed process loses none, and the same call goes on. Retrievers
that are unlike each other pool the passages, so that no single one decides what can be marked. The terminal and the
explorer's page are two faces of this.
"""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from pathlib import Path
from time import monotonic

import numpy as np

from kraq_dspy.errors import EvaluationError, counted
from kraq_dspy.eval.datasets import Example
from kraq_dspy.language.text import sentences
from kraq_dspy.ports import Embedder
from kraq_dspy.records import APPROVED, Chunk, Entity, GoldPassage, TestsetRow, content_id
from kraq_dspy.testset.difficulty import overlap
from kraq_dspy.testset.gold import gold_passage
from kraq_dspy.testset.gold_finder import UNLIKE, GoldFinder, Pool, nearness
from kraq_dspy.testset.testset import Testset
from kraq_dspy.workspace import Workspace

PERSON = "a person"
"""What stands in `model` of a row that a person labeled."""
MARKED, TWIN = "person", "twin"
LABELED, UNANSWERABLE = "labeled", "unanswerable"
NOTHING_TO_UNDO = "There is no label to take back."


class Labeling:
    """The questions that are to be labeled, and the file that their labels go to.

    `n` questions are drawn in all, unlike ones first (`unlike_first`); those that the file has count. Rows of the file
    that nobody labeled here stay as they are; what another process wrote to it meanwhile is kept. Raises
    EvaluationError for a file that is no test set.
    """

    def __init__(self, space: Workspace, examples: Sequence[Example], out: str | Path, *, n: int) -> None:
        self.out = Path(out)
        self._space = space
        self._pools: dict[str, Pool] = {}
        self._later: list[str] = []
        names = [name for name in UNLIKE if name != "pagerank" or space.index.count(Entity)]
        retrievers = {name: space.retriever(name) for name in names}
        self._finder = GoldFinder(retrievers, space.index.chunk_vectors, space.index)

        by_id = {id_of(example.question): example for example in examples}
        done = [row.id for row in self._testset() if row.model == PERSON and row.id in by_id]
        first = [by_id[id] for id in done]
        self.questions = unlike_first(list(by_id.values()), n, space.embedder, first=first)

    @property
    def labeled(self) -> list[TestsetRow]:
        """The rows of these questions that have a label, in the order in which they were labeled."""
        ids = {id_of(each.question) for each in self.questions}
        return [row for row in self._testset() if row.id in ids]

    @property
    def left(self) -> list[Example]:
        """The questions without a label; those that were put off come last."""
        done = {row.id for row in self._testset()}
        by_id = {id_of(each.question): each for each in self.questions}
        order = [*(id for id in by_id if id not in self._later), *self._later]
        return [by_id[id] for id in order if id not in done]

    def next(self) -> Example | None:
        """The question to be labeled now; None if all are."""
        return next(iter(self.left), None)

    def put_off(self, example: Example) -> None:
        """Ask the others first."""
        id = id_of(example.question)
        self._later = [each for each in self._later if each != id] + [id]

    def passages(self, example: Example) -> list[Chunk]:
        """What the retrievers bring: the first of each, then the second, and so on, each passage once."""
        pool = self._pool(example)
        in_turn = chain.from_iterable(zip_longest(*pool.rankings.values()))
        return [pool.chunks[id] for id in dict.fromkeys(id for id in in_turn if id is not None)]

    def label(self, example: Example, marked: Sequence[Chunk]) -> TestsetRow:
        """Keep that the marked passages, and those of nearly the same text, answer the question. None marked: the
        documents do not answer it, and the row's type is "unanswerable"."""
        gold: dict[str, GoldPassage] = {chunk.id: gold_passage(chunk, (MARKED,)) for chunk in marked}
        for chunk in marked:
            for twin in self._finder.twins(chunk):
                gold.setdefault(twin.id, gold_passage(twin, (TWIN,)))
        documents = tuple(dict.fromkeys(passage.document_id for passage in gold.values()))
        row = TestsetRow(
            id=id_of(example.question),
            question=example.question,
            type=(example.type or LABELED) if marked else UNANSWERABLE,
            answers=example.answers if marked else (),
            answer_items=example.answer_items if marked else (),
            supporting_ids=documents,
            passages=tuple(gold.values()),
            overlap=round(overlap(example.question, [chunk.passage for chunk in marked]), 3),
            solved_by=self._pool(example).solved_by(documents),
            model=PERSON,
            status=APPROVED,
        )
        self._testset().with_row(row).save(self.out)
        return row

    def undo(self) -> Example | None:
        """Take the last label back, and return its question; None if there is none."""
        labeled = self.labeled
        if not labeled:
            return None
        last = labeled[-1].id
        testset = self._testset()
        dataclasses.replace(testset, rows=tuple(row for row in testset if row.id != last)).save(self.out)
        self._later = [id for id in self._later if id != last]
        return next(each for each in self.questions if id_of(each.question) == last)

    def _pool(self, example: Example) -> Pool:
        if example.question not in self._pools:
            self._pools[example.question] = self._finder.pool(example.question)
        return self._pools[example.question]

    def _testset(self) -> Testset:
        return Testset.load(self.out) if self.out.exists() else Testset(())


@dataclass
class Sitting:
    """What one person did in one go, and how long it took: from the first question shown to the last label."""

    n_labeled: int = 0
    _began: float | None = None
    _ended: float = 0.0

    def show(self) -> None:
        """The clock starts when the first question is shown."""
        if self._began is None:
            self._began = self._ended = monotonic()

    def label(self, labeling: Labeling, example: Example, marked: Sequence[Chunk]) -> None:
        """Keep a label, and count it."""
        labeling.label(example, marked)
        self._count(1)

    def undo(self, labeling: Labeling) -> Example | None:
        """Take the last label back, and count one less. Return its question; None if there is none."""
        example = labeling.undo()
        if example is not None:
            self._count(-1)
        return example

    def _count(self, n: int) -> None:
        self.n_labeled = max(0, self.n_labeled + n)
        self._ended = monotonic()

    @property
    def seconds(self) -> float:
        return 0.0 if self._began is None else self._ended - self._began

    def summary(self, labeling: Labeling) -> str:
        """What is labeled, what of it now, and how long that took."""
        labeled = labeling.labeled
        unanswerable = sum(not row.is_answerable for row in labeled)
        took = f"{self.n_labeled} of them now, in {in_minutes(self.seconds)}"
        each = f" ({self.seconds / self.n_labeled:.0f} s each)" if self.n_labeled else ""
        return (
            f"{counted(len(labeled), 'question')}, {unanswerable} of them unanswerable; {took}{each}. "
            f"{counted(len(labeling.left), 'question')} left."
        )


def excerpt(question: str, chunk: Chunk) -> str:
    """The passage from the sentence on that has most of the question's words."""
    parts = sentences(chunk.text) or [chunk.text]
    best = max(range(len(parts)), key=lambda place: (nearness(question, parts[place]), -place))
    before = "… " if best else ""
    return before + " ".join(parts[best:])


def in_minutes(seconds: float) -> str:
    """Write a duration in words.

    >>> in_minutes(252), in_minutes(9)
    ('4 min 12 s', '9 s')
    """
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def unlike_first(
    examples: Sequence[Example], n: int, embedder: Embedder, *, first: Sequence[Example] = ()
) -> list[Example]:
    """Draw up to `n` questions so that each is as far as can be from those before it (Gonzalez, 1985).

    It begins with those of `first`, or with the question that is nearest to all others on average. Distances are
    cosines of their embeddings. Raises EvaluationError for no question.
    """
    if not examples:
        raise EvaluationError("There are no questions to label.")
    vectors = embedder.encode_queries([example.question for example in examples]).astype(np.float64)
    places = {example.question: place for place, example in enumerate(examples)}
    chosen = [places[example.question] for example in first]
    if not chosen:
        chosen = [int(np.argmax(vectors @ vectors.mean(axis=0)))]

    nearest = (vectors @ vectors[chosen].T).max(axis=1)
    while len(chosen) < min(n, len(examples)):
        nearest[chosen] = np.inf
        place = int(np.argmin(nearest))
        chosen.append(place)
        nearest = np.maximum(nearest, vectors @ vectors[place])
    return [examples[place] for place in chosen]


def id_of(question: str) -> str:
    """The id of a question's label, by its text, without regard to case, spaces and the mark at its end: a log may grow
    and be sorted anew."""
    words = " ".join(question.split()).casefold()
    return f"asked-{content_id('asked', words.rstrip('?.! ') or words)[:12]}"
