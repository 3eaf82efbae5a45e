"""Holds what extractions say as rows of numbers, from which a graph is made, or changed, and which a file keeps."""

import itertools
import json
import re
from array import array
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from kraq_dspy.asset.graph.candidates import NameCount
from kraq_dspy.asset.graph.names import introduced_acronyms
from kraq_dspy.asset.graph.numbered_graph import collector_paused, distinct
from kraq_dspy.records import Extraction

Ints = NDArray[np.int64]
Rows = NDArray[np.int32]


class Numbered(dict[str, int]):
    """Each distinct string once, with its number in the order of coming."""

    def __missing__(self, text: str) -> int:
        self[text] = number = len(self)
        return number


@dataclass(frozen=True)
class _Columns:
    """The columns of a log: how many, and which of them number names and texts. The last one numbers the chunk."""

    width: int
    names: tuple[int, ...]
    texts: tuple[int, ...]


_LOGS = {
    "mentioned": _Columns(3, (0,), ()),  # name, whether it is more than an end or a subject, chunk
    "types": _Columns(3, (0,), (1,)),  # name, text, chunk
    "described": _Columns(3, (0,), (1,)),  # name, text, chunk
    "links": _Columns(
        6, (0, 1), (2, 3, 4)
    ),  # source, target, predicate as compared, predicate, description or -1, chunk
    "claims": _Columns(4, (0,), (1, 2)),  # subject, object's text or -1, statement, chunk
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
        self._logs = {name: array("i") for name in _LOGS}
        self._complete: dict[str, Rows] = {}  # of mentions that were read or changed: nothing is added to them

    @classmethod
    @collector_paused()
    def of(cls, extractions: Iterable[Extraction]) -> "Mentions":
        mentions = cls()
        for extraction in extractions:
            mentions.add(extraction)
        return mentions

    def add(self, extraction: Extraction) -> None:
        """The next extraction in reading order."""
        number, texts = len(self.chunk_ids), self.texts
        self.chunk_ids.append(extraction.chunk_id)
        for entity in extraction.entities:
            if not entity.name.strip():
                continue
            name = self._mention(entity.name, number, listed=True)
            if kind := entity.type.strip():
                self._log("types", name, texts[kind], number)
            if text := entity.description.strip():
                self._log("described", name, texts[text], number)
        for link in extraction.relationships:
            if not link.source.strip() or not link.target.strip():
                continue
            ends = self._mention(link.source, number), self._mention(link.target, number)
            predicate = " ".join(link.predicate.split())
            compared = texts[comparable(predicate) if predicate else ""]
            text = link.description.strip()
            self._log("links", *ends, compared, texts[predicate], texts[text] if text else -1, number)
        for claim in extraction.claims:
            if claim.subject.strip() and claim.statement.strip():
                subject = self._mention(claim.subject, number)
                other = texts[claim.object] if claim.object.strip() else -1
                self._log("claims", subject, other, texts[" ".join(claim.statement.split())], number)

    def rows(self, log: str) -> Rows:
        """The rows of "mentioned", "types", "described", "links" or "claims", which are not to be changed; as long as
        they are held, nothing may be added."""
        if log in self._complete:
            return self._complete[log]
        return np.frombuffer(self._logs[log], dtype=np.int32).reshape(-1, _LOGS[log].width)

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

    def changed(self, order: Sequence[str], added: Iterable[Extraction]) -> "Mentions":
        """What the chunks of `order`, in reading order, say: `added` are the extractions of those that are new.

        Equal to `of` all their extractions, but for the numbers of names and texts.
        """
        new = Mentions.of(added)
        names, texts = Numbered(self.spellings), Numbered(self.texts)
        new_names = np.array([names[name] for name in new.spellings] + [-1], dtype=np.int32)
        new_texts = np.array([texts[text] for text in new.texts] + [-1], dtype=np.int32)
        place = {chunk_id: number for number, chunk_id in enumerate(order)}
        chunks = np.array([place.get(id, -1) for id in [*self.chunk_ids, *new.chunk_ids]] + [-1], dtype=np.int32)
        changed = Mentions()
        changed.chunk_ids, changed.spellings, changed.texts = list(order), names, texts
        for log, columns in _LOGS.items():
            rows = new.rows(log).copy()
            for column in columns.names:
                rows[:, column] = new_names[rows[:, column]]
            for column in columns.texts:
                rows[:, column] = new_texts[rows[:, column]]
            rows[:, -1] += len(self.chunk_ids)
            rows = np.concatenate([self.rows(log), rows])
            rows[:, -1] = chunks[rows[:, -1]]
            if (chunks[:-1] < 0).any():
                rows = rows[rows[:, -1] >= 0]
            if (rows[1:, -1] < rows[:-1, -1]).any():
                rows = rows[np.argsort(rows[:, -1], kind="stable")]
            changed._complete[log] = rows
        if (chunks[:-1] < 0).any():
            changed._compact()
        return changed

    def _compact(self) -> None:
        """Forget names and texts that no row has any more."""
        has_name, has_text = np.zeros(len(self.spellings) + 1, bool), np.zeros(len(self.texts) + 1, bool)
        for log, columns in _LOGS.items():
            has_name[self.rows(log)[:, columns.names]] = True
            has_text[self.rows(log)[:, columns.texts]] = True
        has_name[-1] = has_text[-1] = False  # where there is none, its number is -1
        new_name, new_text = (np.cumsum(has, dtype=np.int32) - 1 for has in (has_name, has_text))
        new_text[-1] = -1
        self.spellings, self.texts = (
            Numbered(zip(itertools.compress(strings, has), itertools.count()))
            for strings, has in ((self.spellings, has_name.tolist()), (self.texts, has_text.tolist()))
        )
        for log, columns in _LOGS.items():
            rows = self.rows(log).copy()
            for column in columns.names:
                rows[:, column] = new_name[rows[:, column]]
            for column in columns.texts:
                rows[:, column] = new_text[rows[:, column]]
            self._complete[log] = rows

    def write(self, file: BinaryIO) -> None:
        write_strings(file, self.chunk_ids)
        write_strings(file, self.spellings)
        write_strings(file, self.texts)
        for log in _LOGS:
            np.save(file, self.rows(log).ravel())

    @classmethod
    def read(cls, file: BinaryIO) -> "Mentions":
        """The inverse of `write`."""
        mentions = cls()
        mentions.chunk_ids = read_strings(file)
        mentions.spellings, mentions.texts = (Numbered(zip(read_strings(file), itertools.count())) for _ in range(2))
        for log, columns in _LOGS.items():
            mentions._complete[log] = np.load(file).reshape(-1, columns.width)
        return mentions

    def _mention(self, name: str, chunk: int, *, listed: bool = False) -> int:
        number = self.spellings[name]
        self._log("mentioned", number, listed, chunk)
        return number

    def _log(self, log: str, *row: int) -> None:
        self._logs[log].extend(row)


def write_strings(file: BinaryIO, strings: Iterable[str]) -> None:
    """Any Python strings: what UTF-8 cannot write is escaped."""
    np.save(file, np.frombuffer(json.dumps(list(strings)).encode(), dtype=np.uint8))


def read_strings(file: BinaryIO) -> list[str]:
    strings: list[str] = json.loads(np.load(file).tobytes())
    return strings


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


def comparable(sentence: str) -> str:
    """The words alone, which is how sentences are compared."""
    return " ".join(re.findall(r"\w+", sentence.casefold())) or sentence
