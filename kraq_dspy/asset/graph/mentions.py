"""Holds what extractions say as rows of numbers, from which a graph is made."""

import itertools
import re
from array import array
from collections.abc import Collection, Iterable, Mapping, Sequence
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


NAME, TEXT, CHUNK, FLAG = "name", "text", "chunk", "flag"
"""What a number in a row stands for; -1 for no text."""

COLUMNS = {
    "mentioned": (NAME, FLAG, CHUNK),  # whether it is more than an end or a subject
    "types": (NAME, TEXT, CHUNK),
    "described": (NAME, TEXT, CHUNK),
    "links": (NAME, NAME, TEXT, TEXT, TEXT, CHUNK),  # the predicate as compared, the predicate, the description or -1
    "claims": (NAME, TEXT, TEXT, CHUNK),  # the object or -1, the statement
}
"""What the rows of each log hold; the chunk is the last, and ascends."""


class Mentions:
    """What the extractions say, by unresolved names, in reading order.

    Names and texts are held once, what is said as rows of their numbers: dictionaries of what is said of each pair took
    kilobytes a relationship.
    """

    def __init__(self) -> None:
        self.chunk_ids: list[str] = []
        self.spellings = Numbered()
        self.texts = Numbered()
        self._logs = {name: array("i") for name in COLUMNS}
        self._rows: dict[str, Rows] = {}  # in place of the logs, where nothing is added any more

    @classmethod
    def from_rows(
        cls, chunk_ids: Sequence[str], spellings: Iterable[str], texts: Iterable[str], rows: Mapping[str, Rows]
    ) -> "Mentions":
        """The mentions that have these parts; nothing may be added to them."""
        mentions = cls()
        mentions.chunk_ids = list(chunk_ids)
        mentions.spellings.update(zip(spellings, itertools.count()))
        mentions.texts.update(zip(texts, itertools.count()))
        mentions._rows = dict(rows)
        return mentions

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

    def updated(self, chunk_ids: Sequence[str], new: Iterable[Extraction]) -> "Mentions":
        """What is said in these chunks, in this order, by the `new` extractions, and in chunks without a new one by
        these mentions. Nothing that only other chunks say is kept."""
        added = Mentions.of(new)
        spellings, texts = Numbered(self.spellings), Numbered(self.texts)
        places = {chunk_id: place for place, chunk_id in enumerate(chunk_ids)}
        places_of_new = {chunk_id: places[chunk_id] for chunk_id in added.chunk_ids}
        for chunk_id in added.chunk_ids:
            del places[chunk_id]

        numbers_here = {CHUNK: _numbers(places.get(chunk_id, -1) for chunk_id in self.chunk_ids)}
        numbers_of_added = {
            NAME: _numbers(spellings[name] for name in added.spellings),
            TEXT: _numbers(texts[text] for text in added.texts),
            CHUNK: _numbers(places_of_new.values()),
        }

        rows: dict[str, Rows] = {}
        for log in COLUMNS:
            together = np.concatenate(
                [
                    _renumbered(log, self.rows(log), numbers_here),
                    _renumbered(log, added.rows(log), numbers_of_added),
                ]
            )
            rows[log] = together[np.argsort(together[:, -1], kind="stable")]
        return Mentions.from_rows(chunk_ids, *_used(list(spellings), list(texts), rows))

    def without(self, names: Collection[str]) -> "Mentions":
        """These mentions without what is said of some names: their links, and the claims about them."""
        if not names:
            return self
        kept = _numbers(-1 if name in names else number for name, number in self.spellings.items())
        rows: dict[str, Rows] = {}
        for log, columns in COLUMNS.items():
            own = self.rows(log)
            is_kept = np.ones(len(own), dtype=np.bool_)
            for place, kind in enumerate(columns):
                if kind == NAME:
                    is_kept &= kept[own[:, place]] >= 0
            rows[log] = own[is_kept]
        return Mentions.from_rows(self.chunk_ids, *_used(list(self.spellings), list(self.texts), rows))

    def rows(self, log: str) -> Rows:
        """The rows of "mentioned", "types", "described", "links" or "claims", which are not to be changed; as long as
        they are held, nothing may be added."""
        if log in self._rows:
            return self._rows[log]
        return np.frombuffer(self._logs[log], dtype=np.int32).reshape(-1, len(COLUMNS[log]))

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


def _numbers(numbers: Iterable[int]) -> Rows:
    """The numbers, and behind them -1, which -1 leads to."""
    return np.array([*numbers, -1], dtype=np.int32)


def _renumbered(log: str, rows: Rows, new_numbers: Mapping[str, Rows]) -> Rows:
    """The rows with the new numbers of what their columns stand for; without those whose chunk has none."""
    renumbered = rows.copy()
    for place, kind in enumerate(COLUMNS[log]):
        if kind in new_numbers:
            renumbered[:, place] = new_numbers[kind][rows[:, place]]
    kept: Rows = renumbered[renumbered[:, -1] >= 0]
    return kept


def _used(
    spellings: Sequence[str], texts: Sequence[str], rows: Mapping[str, Rows]
) -> tuple[list[str], list[str], Mapping[str, Rows]]:
    """The names and texts that a row has, in their order, and the rows by their new numbers."""
    is_used = {NAME: np.zeros(len(spellings), dtype=np.bool_), TEXT: np.zeros(len(texts), dtype=np.bool_)}
    for log, columns in COLUMNS.items():
        for place, kind in enumerate(columns):
            if kind in is_used:
                numbers = rows[log][:, place]
                is_used[kind][numbers[numbers >= 0]] = True

    if all(used.all() for used in is_used.values()):
        return list(spellings), list(texts), rows

    new_numbers = {kind: _numbers(np.where(used, np.cumsum(used) - 1, -1)) for kind, used in is_used.items()}
    return (
        list(itertools.compress(spellings, is_used[NAME])),
        list(itertools.compress(texts, is_used[TEXT])),
        {log: _renumbered(log, rows[log], new_numbers) for log in COLUMNS},
    )


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
