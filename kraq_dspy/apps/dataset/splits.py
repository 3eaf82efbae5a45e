"""Divides rows into splits that share no document."""

import random
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kraq_dspy.errors import ConfigError

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
