"""Finds names that are similar, by spelling or by meaning (KRAQ thesis, 3.1.2), and says which may be merged unasked.

Similarity is no proof: "Prussian" and "Russian" are 0.93 alike, "Maria Garcia" and "Mario Garcia"
0.92. On names of people one wrong merge is worse than ten missed ones.
So names that differ in a number, a roman numeral or a word such as "north" or "junior" are not
candidates. kraq merges names of people only if a model confirms it. Each name joins at most the one
that it resembles most, so that no chain leads from one thing to another.
"""

import dataclasses
import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
from rapidfuzz import fuzz, process

from kraq_dspy.asset.graph.candidates import MergeCandidate, NameGroup, candidate_of
from kraq_dspy.asset.graph.names import (
    differ_by_a_slip,
    distinguishing_marks,
    is_capitalised,
    may_be_a_person,
    normalise_name,
)
from kraq_dspy.errors import UnembeddableError
from kraq_dspy.ports import Embedder, Vectors

SPELLING, MEANING = "spelling", "meaning"
EDGE = 5
"""Letters at the beginning and at the end of a name by which it is looked for."""

MOST_IN_A_BLOCK = 200
"""Names that share a word or an edge; what more names share says little."""

ROWS_AT_ONCE = 4096
"""Of a matrix of cosines: 64 MiB."""


def spelled_alike(groups: Mapping[str, NameGroup], threshold: float) -> Iterator[MergeCandidate]:
    """Names with at least `threshold` of their letters in common, in [0, 1].

    Compared are names that share a word, their first letters or their last ones, so that 100,000 are feasible. Those
    that differ by a slip are certain ("van Deursen", "van Deusen").
    """
    seen: set[tuple[str, str]] = set()
    for block in _blocks(sorted(groups)):
        likeness = process.cdist(block, block, scorer=fuzz.ratio, score_cutoff=100 * threshold, dtype=np.float32)
        for row, column in zip(*np.nonzero(np.triu(likeness, 1)), strict=True):
            pair = block[row], block[column]
            if pair not in seen and _comparable(*pair):
                seen.add(pair)
                similarity = float(likeness[row, column]) / 100
                yield candidate_of(groups, *pair, SPELLING, similarity, certain=_is_a_slip(groups, *pair))


def meant_alike(groups: Mapping[str, NameGroup], threshold: float, embedder: Embedder) -> Iterator[MergeCandidate]:
    """Names whose embeddings have a cosine of at least `threshold`."""
    keys = sorted(groups)
    if not keys:
        return

    vectors = _encoded([groups[key].name for key in keys], embedder)
    block_starts = range(0, len(keys), ROWS_AT_ONCE)
    for top, left in itertools.combinations_with_replacement(block_starts, 2):
        first_vectors = vectors[top : top + ROWS_AT_ONCE]
        second_vectors = vectors[left : left + ROWS_AT_ONCE]
        cosines = first_vectors @ second_vectors.T

        for row, column in np.argwhere(cosines >= threshold).tolist():
            first, second = keys[top + row], keys[left + column]
            if first < second and _comparable(first, second):
                cosine = min(1.0, float(cosines[row, column]))
                yield candidate_of(groups, first, second, MEANING, cosine)


def merged_unasked(candidates: Iterable[MergeCandidate], groups: Mapping[str, NameGroup]) -> list[MergeCandidate]:
    """Return those of the candidates that are merged without a model's word: names of several
    words, of no people, each once.

    From then on they are certain.
    """
    used: set[str] = set()
    chosen = []
    for candidate in sorted(candidates, key=lambda each: (-each.similarity, each.first, each.second)):
        keys = normalise_name(candidate.first), normalise_name(candidate.second)
        people = any(may_be_a_person(groups[key].name, groups[key].type) for key in keys)
        if not people and all(" " in key for key in keys) and used.isdisjoint(keys):
            used.update(keys)
            chosen.append(dataclasses.replace(candidate, certain=True))
    return chosen


def _comparable(first: str, second: str) -> bool:
    """Whether nothing in the two keys says that they are two things."""
    return distinguishing_marks(first) == distinguishing_marks(second)


def _is_a_slip(groups: Mapping[str, NameGroup], first: str, second: str) -> bool:
    """Whether two proper names of three words or more differ by one letter inside a word: that tells nothing apart."""
    capitalised = is_capitalised(groups[first].name) and is_capitalised(groups[second].name)
    return capitalised and differ_by_a_slip(first, second)


def _blocks(keys: Sequence[str]) -> Iterator[list[str]]:
    """The names that share a mark, for each mark that few enough share."""
    blocks: dict[tuple[str, str], list[str]] = defaultdict(list)
    for key in keys:
        letters = key.replace(" ", "")
        marks = {("begins", letters[:EDGE]), ("ends", letters[-EDGE:]), *(("word", word) for word in key.split())}
        for mark in marks:
            blocks[mark].append(key)
    yield from (block for block in blocks.values() if 1 < len(block) <= MOST_IN_A_BLOCK)


def _encoded(names: Sequence[str], embedder: Embedder) -> Vectors:
    """The names' vectors; one that cannot be embedded is like no other."""
    try:
        return embedder.encode_passages(names)
    except UnembeddableError as error:
        vectors: Vectors = error.vectors
        return vectors
