"""Holds what extractions say as rows of numbers, from which a graph is made."""

import itertools
import re
from array import array
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from kraq_dspy.asset.graph.candidates import NameCount
from kraq_dspy.asset.graph.names import introduced_acronyms
from kraq_dspy.asset.graph.numbered_graph import collector_paused, distinct
from kraq_dspy.records import Extraction

Ints = NDArray[np.int64]
Rows = NDArray[np.int32]

_WORD = re.compile(r"\w+")


class Numbered(dict[str, int]):
    """Each distinct string once, with its number in the order of coming."""

    def __missing__(self, text: str) -> int:
        self[text] = number = len(self)
        return number


_WIDTHS = {
    "mentioned": 3,  # name, whether it is more than an end or a subject, chunk
    "types": 3,  # name, text, chunk
    "described": 3,  # name, text, chunk
    "links": 6,  # source, target, predicate as compared, predicate, description or -1, chunk
    "claims": 4,  # subject, object's text or -1, statement, chunk
}


class Mentions:
    """What the extractions say, by unresolved names, in reading order.

    Names and texts are held once, what is said as rows of their numbers: dictionaries of what is said of each pair took
    kilobytes a relationship.
    """

    def __init__(self) -> None:
        self.chunk_ids: list[str] = []
        self.spellings = Numbered()
        self.texts = Numbered()
        self._logs = {name: array("i") for name in _WIDTHS}

    @classmethod
    @collector_paused()
    def of(cls, extractions: Iterable[Extraction]) -> "Mentions":
        mentions = cls()
        for extraction in extractions:
            mentions.add(extraction)
        return mentions

    def add(self, extraction: Extraction) -> None:
        """The next extraction in reading order."""
        number, texts, logs = len(self.chunk_ids), self.texts, self._logs
        self.chunk_ids.append(extraction.chunk_id)

        for entity in extraction.entities:
            if not entity.name.strip():
                continue
            name = self._mention(entity.name, number, is_listed=True)
            if kind := entity.type.strip():
                logs["types"].extend((name, texts[kind], number))
            if text := entity.description.strip():
                logs["described"].extend((name, texts[text], number))

        for link in extraction.relationships:
            if not link.source.strip() or not link.target.strip():
                continue
            source, target = self._mention(link.source, number), self._mention(link.target, number)
            predicate = " ".join(link.predicate.split())
            compared = texts[comparable(predicate) if predicate else ""]
            description = link.description.strip()
            described = texts[description] if description else -1
            logs["links"].extend((source, target, compared, texts[predicate], described, number))

        for claim in extraction.claims:
            if claim.subject.strip() and claim.statement.strip():
                subject = self._mention(claim.subject, number)
                other = texts[claim.object] if claim.object.strip() else -1
                statement = texts[" ".join(claim.statement.split())]
                logs["claims"].extend((subject, other, statement, number))

    def rows(self, log: str) -> Rows:
        """The rows of "mentioned", "types", "described", "links" or "claims", which are not to be changed; as long as
        they are held, nothing may be added."""
        return np.frombuffer(self._logs[log], dtype=np.int32).reshape(-1, _WIDTHS[log])

    def names(self) -> list[NameCount]:
        """The distinct spellings, sorted, with their counts; blank ones left out."""
        counts = np.bincount(self.rows("mentioned")[:, 0], minlength=len(self.spellings)).tolist()
        types = majorities(self.rows("types"), list(self.texts))
        return [NameCount(name, types.get(n, ""), counts[n]) for name, n in sorted(self.spellings.items())]

    def introduced_acronyms(self) -> frozenset[tuple[str, str]]:
        """Acronyms with their names, as keys, that a name, a description or a statement introduces."""
        return introduced_acronyms(itertools.chain(self.spellings, self.texts))

    def descriptions(self, names: Collection[str]) -> dict[str, str]:
        """The first description of each of `names` that has one."""
        texts, chosen = list(self.texts), {self.spellings[name]: name for name in names if name in self.spellings}
        first: dict[str, str] = {}
        for name, text, _ in self.rows("described").tolist():
            if name in chosen:
                first.setdefault(chosen[name], texts[text])
        return first

    def _mention(self, name: str, chunk: int, *, is_listed: bool = False) -> int:
        number = self.spellings[name]
        self._logs["mentioned"].extend((number, is_listed, chunk))
        return number


def majorities(rows: Ints | Rows, texts: Sequence[str]) -> dict[int, str]:
    """The text that the second column names most often, by the first column; ties alphabetically."""
    if not len(rows):
        return {}
    pairs, counts = np.unique(rows[:, 0].astype(np.int64) * len(texts) + rows[:, 1], return_counts=True)
    owners, chosen = pairs // len(texts), pairs % len(texts)
    used = distinct(chosen).tolist()
    alphabetical = np.empty(len(texts), dtype=np.int64)
    alphabetical[sorted(used, key=lambda text: texts[text])] = np.arange(len(used))
    order = np.lexsort((alphabetical[chosen], -counts, owners))
    owners, first = np.unique(owners[order], return_index=True)
    return dict(zip(owners.tolist(), (texts[text] for text in chosen[order[first]].tolist()), strict=True))


@lru_cache(maxsize=2**14)  # predicates and statements come up again
def comparable(sentence: str) -> str:
    """The words alone, which is how sentences are compared."""
    return " ".join(_WORD.findall(sentence.casefold())) or sentence
