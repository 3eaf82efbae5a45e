"""Looks up which records mention a chunk, in arrays: a list of ids for each chunk would take several times as much."""

from array import array
from collections.abc import Iterable, Mapping

import numpy as np


class Mentions:
    """Ids of records by the number of a chunk that they come from, in the order in which they were given."""

    def __init__(self, mentions: Iterable[tuple[str, Iterable[str]]], chunk_numbers: Mapping[str, int]) -> None:
        """`mentions` are (id of a record, ids of its chunks); chunks without a number are left out."""
        self._text, self._ends = bytearray(), array("Q", [0])
        chunks, records = array("I"), array("I")
        for record, (record_id, chunk_ids) in enumerate(mentions):
            self._text += record_id.encode("utf-8", "surrogatepass")
            self._ends.append(len(self._text))
            for chunk_id in chunk_ids:
                if chunk_id in chunk_numbers:
                    chunks.append(chunk_numbers[chunk_id])
                    records.append(record)
        chunk_of = np.array(chunks, dtype=np.uint32)
        order = np.argsort(chunk_of, kind="stable")
        self._records = np.array(records, dtype=np.uint32)[order]
        self._starts = np.searchsorted(chunk_of[order], np.arange(len(chunk_numbers) + 1))

    def __getitem__(self, chunk_number: int) -> list[str]:
        start, end = self._starts[chunk_number], self._starts[chunk_number + 1]
        return [self._id(record) for record in self._records[start:end].tolist()]

    def _id(self, record: int) -> str:
        return self._text[self._ends[record] : self._ends[record + 1]].decode("utf-8", "surrogatepass")
