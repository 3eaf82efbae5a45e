"""Keeps what the extractions say in a file of arrays, so that a change of the corpus reads only new extractions.

With each chunk stands the checksum of its extraction's record, by which the file's reader knows whether the record is
still the one that was read.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kraq_dspy.asset.arrays import map_arrays, write_arrays
from kraq_dspy.asset.graph.mentions import CHUNK, COLUMNS, FLAG, NAME, TEXT, Mentions

MADE_BY = 1
"""Raised whenever `Mentions.add` makes something else of an extraction: files with another number are not read."""

_AT_ONCE = 50_000  # texts
_KINDS = ("<i8", "<i8", *("<i4", "|u1") * 3, *("<i4",) * len(COLUMNS))

Part = tuple[str, tuple[int, ...], Any]


def save_mentions(path: Path, mentions: Mentions, sums: Mapping[str, int]) -> None:
    """Write the mentions with the `sums` of the extractions by their chunks' ids. Raises OSError."""
    sums_in_order = np.array([sums[chunk_id] for chunk_id in mentions.chunk_ids], dtype=np.int64)
    parts: list[Part] = [
        ("<i8", (1,), [np.array([MADE_BY])]),
        ("<i8", sums_in_order.shape, [sums_in_order]),
    ]
    for texts in (mentions.chunk_ids, list(mentions.spellings), list(mentions.texts)):
        parts += _parts_of_texts(texts)
    for log in COLUMNS:
        rows = mentions.rows(log)
        parts.append(("<i4", rows.shape, [rows]))
    write_arrays(path, parts)


def read_mentions(path: Path) -> tuple[Mentions, dict[str, int]] | None:
    """The mentions and the sums that `save_mentions` was given; None for a file that another version wrote.

    Raises OSError, and ValueError for a file that is not what was written.
    """
    made_by, sums, *parts = map_arrays(path, _KINDS)
    if made_by.tolist() != [MADE_BY]:
        return None

    chunk_ids, spellings, texts = (_texts(*parts[place : place + 2]) for place in (0, 2, 4))
    rows = dict(zip(COLUMNS, parts[6:], strict=True))
    mentions = Mentions.from_rows(chunk_ids, spellings, texts, rows)

    counts = {NAME: len(mentions.spellings), TEXT: len(mentions.texts), CHUNK: len(set(chunk_ids)), FLAG: 2}
    is_whole = len(sums) == counts[CHUNK] and counts[NAME] == len(spellings) and counts[TEXT] == len(texts)
    if not is_whole or not all(_fits(log, rows[log], counts) for log in COLUMNS):
        raise ValueError("its arrays do not fit each other")
    return mentions, dict(zip(chunk_ids, sums.tolist(), strict=True))


def _fits(log: str, rows: NDArray[np.int32], counts: Mapping[str, int]) -> bool:
    """Whether every number of the rows stands for one of so many."""
    columns = COLUMNS[log]
    if rows.ndim != 2 or rows.shape[1] != len(columns):
        return False
    if not len(rows):
        return True

    least = [-1 if kind == TEXT else 0 for kind in columns]
    most = [counts[kind] for kind in columns]
    return bool((rows.min(axis=0) >= least).all() and (rows.max(axis=0) < most).all())


def _parts_of_texts(texts: Sequence[str]) -> list[Part]:
    """Two arrays: the length of each text in bytes, and the bytes of all."""
    lengths = np.array([len(_bytes(text)) for text in texts], dtype=np.int32)

    def blocks() -> Iterator[NDArray[np.uint8]]:
        for start in range(0, len(texts), _AT_ONCE):
            joined = b"".join(map(_bytes, texts[start : start + _AT_ONCE]))
            yield np.frombuffer(joined, dtype=np.uint8)

    return [("<i4", lengths.shape, [lengths]), ("|u1", (int(lengths.sum()),), blocks())]


def _texts(lengths: NDArray[np.int32], joined: NDArray[np.uint8]) -> list[str]:
    ends = np.cumsum(lengths, dtype=np.int64).tolist()
    if lengths.min(initial=0) < 0 or (ends[-1] if ends else 0) != len(joined):
        raise ValueError("its texts are longer or shorter than they were")
    content = joined.tobytes()
    return [content[start:end].decode("utf-8", "surrogatepass") for start, end in itertools.pairwise([0, *ends])]


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")  # a file's name may leave lone surrogates
