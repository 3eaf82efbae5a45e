"""Collects the rows of a data set: the index's questions with the catalogue's answers and the passages behind them."""

import random
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from kraq_dspy.asset.store.catalogue import question_key
from kraq_dspy.asset.store.index import Index
from kraq_dspy.errors import ConfigError
from kraq_dspy.records import CatalogueEntry, Chunk, Document, Question


@dataclass(frozen=True, slots=True)
class Row:
    """A question; its answer, or None where nobody gave one; its evidence, and all documents that this comes from.

    The documents of a KRAQ question are those of its community. The sources of its answer do not count among them: they
    are all that a program saw, used or not, and would tie a whole corpus together.

    `level` and `community_id` are those of a KRAQ question, None for another. `difficulty` is read off the level, not
    measured: "hard" for the broadest, whose evidence lies far apart, "easy" for the narrowest and for what one passage
    answers, "medium" between. `origin` is "kraq" or the catalogue's word for where the question came from.
    """

    id: str
    question: str
    answer: str | None
    evidence: tuple[Chunk, ...]
    document_ids: tuple[str, ...]
    community_id: str | None
    level: int | None
    difficulty: str
    origin: str
    model: str


def collect_rows(
    index: Index, entries: Sequence[CatalogueEntry], *, unanswered: bool, passages: int, left_out: Counter[str]
) -> Iterator[Row]:
    """KRAQ questions first, then what the catalogue has besides; at most `passages` of evidence each.

    `entries` are those that may be used. A question without an answer among them is left out unless `unanswered`, one
    without a document always; `left_out` counts the reasons.
    """
    answers = {question_key(entry.question): entry for entry in entries if entry.answer}
    deepest = index.deepest_level()
    for question in index.questions(source="kraq"):
        entry = answers.pop(question_key(question.text), None)
        if entry is None and not unanswered:
            left_out["without an answer"] += 1
        elif not question.chunk_ids:
            left_out["without evidence"] += 1
        else:
            yield _of_question(index, question, entry, deepest, passages)
    present = set(index.ids(Document))
    for entry in answers.values():
        document_ids = [source.document_id for source in entry.sources if source.document_id in present]
        if document_ids:
            yield _of_entry(index, entry, document_ids, passages)
        else:
            left_out["without evidence"] += 1


def _of_question(index: Index, question: Question, entry: CatalogueEntry | None, deepest: int, passages: int) -> Row:
    return Row(
        id=question.id,
        question=question.text,
        answer=entry.answer if entry else None,
        evidence=tuple(index.chunks_by_id(question.chunk_ids[:passages])),
        document_ids=tuple(sorted(question.document_ids)),
        community_id=question.community_id,
        level=question.level,
        difficulty=difficulty_of(question.level, deepest),
        origin="kraq",
        model=question.model,
    )


def _of_entry(index: Index, entry: CatalogueEntry, document_ids: Collection[str], passages: int) -> Row:
    """Its evidence is what holds the answer word for word; else the documents from their beginning."""
    chunks = [chunk for each in document_ids for chunk in index.all(Chunk, document_id=each)]
    holding = [chunk for chunk in chunks if entry.answer.casefold() in chunk.text.casefold()]
    return Row(
        id=f"catalogue-{entry.number}",
        question=entry.question,
        answer=entry.answer,
        evidence=tuple((holding or chunks)[:passages]),
        document_ids=tuple(sorted(document_ids)),
        community_id=None,
        level=None,
        difficulty="easy",
        origin=entry.origin,
        model="",
    )


def difficulty_of(level: int, deepest: int) -> str:
    """ "medium" where there is but one level."""
    if deepest <= 0:
        return "medium"
    return "hard" if level == 0 else "easy" if level == deepest else "medium"


SPLITS = ("train", "validation", "test")
LARGEST = 0.1
"""Documents are kept together as long as no more than this share of the rows hangs on one group of them."""


@dataclass(frozen=True, slots=True)
class Split:
    """The split of each row by its place, or None for one that was dropped, and of each document that a row names."""

    of_rows: tuple[str | None, ...]
    of_documents: Mapping[str, str]


def split_by_document(
    rows: Sequence[Sequence[str]], shares: Sequence[float] = (0.8, 0.1, 0.1), *, seed: int = 0
) -> Split:
    """`rows` are the document ids of each row; `shares` those of SPLITS in the rows.

    Documents that share a row are kept together, narrow rows first. A broad row that would tie too many together (more
    than LARGEST of the rows) does not count in this: it stays if its documents fall into one split all the same, and is
    dropped otherwise. So every document is in one split, and so are all documents of a row. Raises ConfigError for
    shares that are not positive numbers with the sum 1.
    """
    if len(shares) != len(SPLITS) or min(shares) < 0 or abs(sum(shares) - 1) > 1e-6:
        raise ConfigError(f"The shares are {tuple(shares)}; expected three, of {', '.join(SPLITS)}, with the sum 1.")
    groups = _Groups(max(1, int(LARGEST * len(rows))))
    for place in sorted(range(len(rows)), key=lambda place: (len(rows[place]), place)):
        groups.tie(rows[place])
    split_of_group = _dealt(groups.weights(), shares, seed)
    of_documents = {document_id: split_of_group[groups.root(document_id)] for document_id in groups.parents}
    splits_of = [{of_documents[document_id] for document_id in row} for row in rows]
    return Split(tuple(splits.pop() if len(splits) == 1 else None for splits in splits_of), of_documents)


class _Groups:
    """Documents tied by rows (union-find); no group gets more than `most` rows by being tied."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.parents: dict[str, str] = {}
        self._rows: Counter[str] = Counter()

    def tie(self, document_ids: Sequence[str]) -> None:
        roots = {self.root(document_id) for document_id in document_ids}
        if len(roots) > 1 and sum(self._rows[root] for root in roots) + 1 > self.most:
            return
        first, *others = sorted(roots)
        for other in others:
            self.parents[other] = first
            self._rows[first] += self._rows.pop(other, 0)
        self._rows[first] += 1

    def root(self, document_id: str) -> str:
        root = document_id
        while (parent := self.parents.setdefault(root, root)) != root:
            root = parent
        while (parent := self.parents[document_id]) != root:
            self.parents[document_id], document_id = root, parent
        return root

    def weights(self) -> dict[str, int]:
        """Rows by group; groups without one, of documents that only broad rows name, too."""
        return {root: self._rows[root] for root in sorted({self.root(each) for each in list(self.parents)})}


def _dealt(weights: Mapping[str, int], shares: Sequence[float], seed: int) -> dict[str, str]:
    """Each group, the heaviest first and equals by chance, to the split that lacks most of its share."""
    order = list(weights)
    random.Random(seed).shuffle(order)
    order.sort(key=lambda root: -weights[root])
    total = max(1, sum(weights.values()))
    filled: defaultdict[str, int] = defaultdict(int)
    dealt = {}
    for root in order:
        split = max(SPLITS, key=lambda name: shares[SPLITS.index(name)] - filled[name] / total)
        dealt[root] = split
        filled[split] += weights[root]
    return dealt
