"""Proposes which names of the extractions mean one thing (KRAQ paper, section 2; thesis, chapter 3).

Names with one normalised string are one. Beyond that, a wrong merge costs more than a missed one: it puts two things
into one node, and no later step can take them apart. Similarity alone is no proof: of the pairs in real extractions
whose spelling is 0.92 alike or more, most are two things ("Prussian", "Russian"; "Las Vegas", "Last Vegas"). So two
names merge unasked only where what differs does not tell things apart: `names.skeletons` (accents, spaces, hyphens),
and, from the threshold on, `names.differ_by_a_slip` (one letter in a proper name of three words or more). The other
pairs with at least `ResolveSettings.similarity` are doubtful candidates, which only a confirmation merges; so are
a single word in which one longer name ends, and acronyms, but for those that a text introduces ("Universidad de Buenos
Aires (UBA)"). Names that differ in a number, a roman numeral or a word such
as "north" or "junior" are never the same.
"""

import itertools
import logging
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from rapidfuzz import fuzz, process

from kraq_dspy.asset.graph.names import (
    differ_by_a_slip,
    distinguishing_marks,
    initials,
    is_capitalised,
    looks_like_acronym,
    normalise_name,
    skeletons,
)
from kraq_dspy.errors import UnembeddableError
from kraq_dspy.ports import Embedder, Vectors
from kraq_dspy.settings import ResolveSettings

logger = logging.getLogger(__name__)

METHODS = ("normalised", "lexical", "acronym", "semantic", "confirmed")  # of `records.Merge`, the surest first
DOUBTFUL = frozenset(("lexical", "acronym", "part", "semantic"))  # methods whose candidates may be uncertain
_BLOCK = 120  # names; a token or n-gram that more names share says little
_MEANINGS = 3  # names that an acronym may stand for
_LINKING = frozenset(("of", "and", "by", "to", "for", "via", "the", "in", "on", "at", "from", "with", "de"))
_SMALL_BLOCK = 16  # names
_EDGE = 5  # characters at the beginning and the end of a name that make a block
_TILE = 4096  # rows and columns of a similarity matrix held at once: 64 MiB
_ENCODED = 4096  # names embedded at once


@dataclass(frozen=True, slots=True)
class NameCount:
    """A distinct spelling, how often the extractions have it, and its most frequent type ("" where unknown)."""

    name: str
    type: str
    count: int


@dataclass(frozen=True, slots=True)
class MergeCandidate:
    """Two names (the most frequent spellings of their keys, in alphabetical order of the keys) that may be one.

    `method` is "lexical", "semantic", "acronym" or "part" (one word of a longer name). `certain` ones may be merged
    unasked. `similarity` is in [0, 1]: of the spellings, or for "semantic" the cosine.
    """

    first: str
    second: str
    method: str
    similarity: float
    certain: bool


@dataclass(frozen=True, slots=True)
class NameGroup:
    """The spellings of one key."""

    counts: dict[str, int]
    type: str
    name: str  # the preferred spelling


Names = Iterable[NameCount] | Mapping[str, NameGroup]
"""Names as they were counted, or as `grouped` has put them together."""


def propose_merges(
    names: Names,
    settings: ResolveSettings,
    embedder: Embedder | None = None,
    introduced: Collection[tuple[str, str]] = (),
    doubtful: Collection[str] = DOUBTFUL,
) -> list[MergeCandidate]:
    """Pairs of names that may be one thing, beyond those with one normalised string; certain ones first.

    `introduced` are acronyms with their names, as `names.introduced_acronyms` gives them: these are certain. Doubtful
    candidates are those of the methods `doubtful`; with `embedder` and `settings.semantic`, names near to each other by
    meaning are among them. The order of `names` does not matter. Memory grows with the number of names, not with that
    of their pairs.
    """
    groups = grouped(names)
    candidates: dict[tuple[str, str], MergeCandidate] = {}
    keys = sorted(groups)
    spelled, acronyms = _spelled_alike(keys, groups, settings.similarity), _acronyms(keys, groups, introduced)
    others = _parts(keys, groups)
    if embedder is not None and settings.semantic:
        others = itertools.chain(others, _meant_alike(keys, groups, settings.similarity, embedder))
    for candidate in itertools.chain(_certain(keys, groups), spelled, acronyms, others):
        candidates.setdefault((candidate.first, candidate.second), candidate)
    chosen = [c for c in candidates.values() if c.certain or c.method in doubtful]
    logger.info("%d names, %d pairs that may be one thing", len(keys), len(chosen))
    return sorted(chosen, key=lambda c: (not c.certain, -c.similarity, c.first, c.second))


def majority(counts: Mapping[str, int]) -> str:
    """The most frequent; ties alphabetically; "" of nothing."""
    return min(counts, key=lambda value: (-counts[value], value), default="")


def by_preference(counts: Mapping[str, int]) -> tuple[str, ...]:
    """Spellings by how often they occur, then the longer, then the alphabetically first: the first one is kept."""
    return tuple(sorted(counts, key=lambda name: (-counts[name], -len(name), name)))


def grouped(names: Names) -> Mapping[str, NameGroup]:
    """The names by key, without blank ones."""
    if isinstance(names, Mapping):
        return names
    first: dict[str, NameCount] = {}
    others: dict[str, list[NameCount]] = defaultdict(list)
    for each in names:
        if each.name.strip():
            key = normalise_name(each.name)
            if key in first:
                others[key].append(each)
            else:
                first[key] = each
    return {
        key: _group([one, *others[key]]) if key in others else NameGroup({one.name: one.count}, one.type, one.name)
        for key, one in first.items()
    }


def _group(spellings: Sequence[NameCount]) -> NameGroup:
    counts: Counter[str] = Counter()
    types: Counter[str] = Counter()
    for each in spellings:
        counts[each.name] += each.count
        if each.type:
            types[each.type] += each.count
    return NameGroup(dict(counts), majority(types), by_preference(counts)[0])


def _candidate(
    groups: Mapping[str, NameGroup], a: str, b: str, method: str, similarity: float, *, certain: bool = False
) -> MergeCandidate:
    first, second = sorted((a, b))
    return MergeCandidate(groups[first].name, groups[second].name, method, round(float(similarity), 4), certain)


def _certain(keys: Sequence[str], groups: Mapping[str, NameGroup]) -> Iterator[MergeCandidate]:
    """Keys with one skeleton, compared in that form: 1.0. Equality cannot chain two different things together."""
    first: dict[str, str] = {}
    alike: dict[str, list[str]] = defaultdict(list)
    for key in keys:
        for text in skeletons(groups[key].name, key):
            if first.setdefault(text, key) != key:
                alike[text].append(key)
    for text, others in alike.items():
        for a, b in itertools.pairwise([first[text], *others]):
            yield _candidate(groups, a, b, "lexical", 1.0, certain=True)


def _spelled_alike(keys: Sequence[str], groups: Mapping[str, NameGroup], threshold: float) -> Iterator[MergeCandidate]:
    """Keys with at least `threshold` of their letters in common, compared within blocks, so that 100,000 are feasible.

    A block holds the keys that share a rare word, their first letters or their last letters.
    """
    done: set[tuple[str, str]] = set()
    for block in _blocks(keys):
        for a, b, similarity in _alike_in(block, 100 * threshold):
            if (a, b) in done or distinguishing_marks(a) != distinguishing_marks(b):
                continue
            done.add((a, b))
            names = groups[a].name, groups[b].name
            certain = differ_by_a_slip(a, b) and all(map(is_capitalised, names))
            yield _candidate(groups, a, b, "lexical", similarity / 100, certain=certain)


def _alike_in(block: Sequence[str], cutoff: float) -> Iterator[tuple[str, str, float]]:
    """Pairs of a block with at least `cutoff` percent of their letters in common."""
    if len(block) <= _SMALL_BLOCK:  # most blocks are; a matrix for each would cost more than the comparisons
        for a, b in itertools.combinations(block, 2):
            if similarity := fuzz.ratio(a, b, score_cutoff=cutoff):
                yield a, b, similarity
        return
    similarities = process.cdist(block, block, scorer=fuzz.ratio, score_cutoff=cutoff, dtype=np.float32)
    for row, column in zip(*np.nonzero(np.triu(similarities, 1)), strict=True):
        yield block[row], block[column], float(similarities[row, column])


def _blocks(keys: Sequence[str]) -> Iterator[list[str]]:
    """Sorted lists of two to `_BLOCK` keys that share a mark; where more share it, those that share its finer one."""
    sizes = Counter(mark for key in keys for marks in _marks(key) for mark in marks)
    blocks: dict[tuple[str, str], list[str]] = defaultdict(list)
    for key in keys:
        for marks in _marks(key):
            if (mark := next((one for one in marks if sizes[one] <= _BLOCK), None)) is not None:
                blocks[mark].append(key)
    yield from (block for block in blocks.values() if len(block) > 1)


def _marks(key: str) -> Iterator[tuple[tuple[str, str], ...]]:
    """A word, letters at the beginning or the end: each mark with a finer one, where there is one."""
    letters = key.replace(" ", "")
    yield from ((("word", word),) for word in set(key.split()))
    yield ("begins", letters[:_EDGE]), ("begins with more", letters[: 2 * _EDGE])
    yield ("ends", letters[-_EDGE:]), ("ends with more", letters[-2 * _EDGE :])


def _acronyms(
    keys: Sequence[str], groups: Mapping[str, NameGroup], introduced: Collection[tuple[str, str]]
) -> Iterator[MergeCandidate]:
    """Acronyms and the capitalised names that they may stand for; those that many names fit say nothing. Where a text
    introduces an acronym, it stands for nothing else."""
    acronyms = {key.replace(" ", ""): key for key in keys if looks_like_acronym(groups[key].name)}
    if not acronyms:
        return
    expansions: dict[str, list[str]] = defaultdict(list)
    for key in keys:
        if is_capitalised(groups[key].name):
            for short in initials(key) & acronyms.keys():
                expansions[short].append(key)
    for short, fitting in sorted(expansions.items()):
        names = [key for key in fitting if (short, key) in introduced] or fitting
        if len(names) <= (_MEANINGS if len(short) > 2 else 1):
            for key in names:
                similarity = fuzz.ratio(acronyms[short], key) / 100
                certain = (short, key) in introduced
                yield _candidate(groups, acronyms[short], key, "acronym", similarity, certain=certain)


def _parts(keys: Sequence[str], groups: Mapping[str, NameGroup]) -> Iterator[MergeCandidate]:
    """A capitalised word and the one name of two or three words that ends in it: "Scrooge" and "Ebenezer Scrooge"."""
    longer: dict[str, list[str]] = defaultdict(list)
    for key in keys:
        tokens = key.split()
        if len(tokens) > 1:
            for token in {tokens[0], tokens[-1]}:
                longer[token].append(key)
    for key in keys:
        if " " in key or len(longer[key]) != 1 or not is_capitalised(groups[key].name):
            continue
        (whole,) = longer[key]
        short, full = groups[key], groups[whole]
        fits = (
            not (_LINKING & set(whole.split()))
            and re.fullmatch(r"[^\W\d]+(?: [^\W\d]+){1,2}", full.name)
            and is_capitalised(full.name)
        )
        if fits and whole.endswith(key) and short.type == full.type and not distinguishing_marks(whole):
            yield _candidate(groups, key, whole, "part", fuzz.ratio(key, whole) / 100)


def _encoded(names: Sequence[str], embedder: Embedder) -> Vectors:
    try:
        return embedder.encode_passages(names)
    except UnembeddableError as error:  # a name without a vector is like no other
        return error.vectors  # type: ignore[no-any-return]


def _meant_alike(
    keys: Sequence[str], groups: Mapping[str, NameGroup], threshold: float, embedder: Embedder
) -> Iterator[MergeCandidate]:
    """Keys whose names' embeddings have a cosine of at least `threshold`: a matrix product, tile by tile."""
    names = [groups[key].name for key in keys]
    if not names:
        return
    vectors = np.concatenate(
        [_encoded(names[start : start + _ENCODED], embedder) for start in range(0, len(names), _ENCODED)]
    )
    for top in range(0, len(keys), _TILE):
        for left in range(top, len(keys), _TILE):
            cosines = vectors[top : top + _TILE] @ vectors[left : left + _TILE].T
            for row, column in zip(*np.nonzero(cosines >= threshold), strict=True):
                a, b = keys[top + row], keys[left + column]
                if a < b and distinguishing_marks(a) == distinguishing_marks(b):
                    yield _candidate(groups, a, b, "semantic", min(1.0, float(cosines[row, column])))
