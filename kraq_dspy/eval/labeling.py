"""Keeps which passages answer people's questions, as a person marks them one question after another.

    labeling = Labeling(space, read_questions("log.csv"), "few.jsonl", n=10)
    while (question := labeling.next()) is not None:
        passages = labeling.passages(question)
        labeling.label(question, passages[:1])  # none: the documents do not answer it

Every label is in the file when `label` returns, so a killed process loses none, and the same call goes on. Retrievers
that are unlike each other pool the passages, so that no single one decides what can be marked.
"""

import dataclasses
from collections.abc import Sequence
from itertools import chain, zip_longest
from pathlib import Path

import numpy as np

from kraq_dspy.errors import EvaluationError
from kraq_dspy.eval.datasets import Example
from kraq_dspy.exam.difficulty import overlap
from kraq_dspy.exam.gold import gold_passage
from kraq_dspy.exam.gold_finder import UNLIKE, GoldFinder, Pool
from kraq_dspy.exam.testset import Testset
from kraq_dspy.ports import Embedder
from kraq_dspy.records import APPROVED, Chunk, Entity, GoldPassage, TestsetRow, content_id
from kraq_dspy.workspace import Workspace

PERSON = "a person"
"""What stands in `model` of a row that a person labeled."""
MARKED, TWIN = "person", "twin"
LABELED, UNANSWERABLE = "labeled", "unanswerable"


class Labeling:
    """The questions that are to be labeled, and the file that their labels go to.

    `n` questions are drawn in all, unlike ones first (`unlike_first`); those that the file has count. Rows of the file
    that nobody labeled here stay as they are. Raises EvaluationError for a file that is no test set.
    """

    def __init__(self, space: Workspace, examples: Sequence[Example], out: str | Path, *, n: int) -> None:
        self.out = Path(out)
        self._testset = Testset.load(self.out) if self.out.exists() else Testset(())
        self._space = space
        self._pools: dict[str, Pool] = {}
        self._later: list[str] = []
        names = [name for name in UNLIKE if name != "pagerank" or space.index.count(Entity)]
        retrievers = {name: space.retriever(name) for name in names}
        self._finder = GoldFinder(retrievers, space.index.chunk_vectors, space.index)

        by_id = {_id_of(example.question): example for example in examples}
        done = [row.id for row in self._testset if row.model == PERSON and row.id in by_id]
        first = [by_id[id] for id in done]
        self.questions = unlike_first(list(by_id.values()), n, space.embedder, first=first)

    @property
    def labeled(self) -> list[TestsetRow]:
        """The rows of these questions that have a label, in the order in which they were labeled."""
        ids = {_id_of(each.question) for each in self.questions}
        return [row for row in self._testset if row.id in ids]

    @property
    def left(self) -> list[Example]:
        """The questions without a label; those that were put off come last."""
        done = {row.id for row in self._testset}
        open_ones = [each for each in self.questions if _id_of(each.question) not in done]
        return sorted(open_ones, key=lambda each: self._place_put_off(each))

    def next(self) -> Example | None:
        """The question to be labeled now; None if all are."""
        return next(iter(self.left), None)

    def put_off(self, example: Example) -> None:
        """Ask the others first."""
        id = _id_of(example.question)
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
            id=_id_of(example.question),
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
        others = tuple(each for each in self._testset if each.id != row.id)
        self._save((*others, row))
        return row

    def undo(self) -> Example | None:
        """Take the last label back, and return its question; None if there is none."""
        labeled = self.labeled
        if not labeled:
            return None
        last = labeled[-1].id
        self._save(tuple(row for row in self._testset if row.id != last))
        self._later = [id for id in self._later if id != last]
        return next(each for each in self.questions if _id_of(each.question) == last)

    def _pool(self, example: Example) -> Pool:
        if example.question not in self._pools:
            self._pools[example.question] = self._finder.pool(example.question)
        return self._pools[example.question]

    def _place_put_off(self, example: Example) -> int:
        id = _id_of(example.question)
        return self._later.index(id) + 1 if id in self._later else 0

    def _save(self, rows: tuple[TestsetRow, ...]) -> None:
        self._testset = dataclasses.replace(self._testset, rows=rows)
        self._testset.save(self.out)


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


def _id_of(question: str) -> str:
    """An id by the text, without regard to case, spaces and the mark at its end: a log may grow and be sorted anew."""
    words = " ".join(question.split()).casefold()
    return f"asked-{content_id('asked', words.rstrip('?.! ') or words)[:12]}"
