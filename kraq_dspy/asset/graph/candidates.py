"""Proposes which names of the extractions mean one thing (KRAQ paper, section 2; thesis, chapter 3).

Names with one normalised string are one. Beyond that, a wrong merge costs more than a missed one:
it puts two things into one node, and no later step can take them apart. Similarity alone is no
proof ("Prussian", "Russian"; "Las Vegas", "Last Vegas"). So kraq merges two names without a model
only if their difference separates no things: accents, spaces and hyphens (`names.skeletons`), and
acronyms that a text introduces ("Universidad de Buenos Aires (UBA)") or that mean one thing
everywhere ("NYC"). Other acronyms are doubtful: only a model merges them. Names that are similar
and no more are candidates on request (`graph/similar_names.py`).
"""

import itertools
import logging
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rapidfuzz import fuzz

from kraq_dspy.asset.graph.names import (
    FORMS_OF_ADDRESS,
    abbreviated,
    initials,
    is_capitalised,
    looks_like_acronym,
    may_be_a_person,
    normalise_name,
    skeletons,
)

logger = logging.getLogger(__name__)

ACRONYM, ADDRESS = "acronym", "address"
_MEANINGS = 3  # names that an acronym may stand for


@dataclass(frozen=True, slots=True)
class NameCount:
    """A distinct spelling, how often the extractions have it, and its most frequent type ("" if unknown)."""

    name: str
    type: str
    count: int


@dataclass(frozen=True, slots=True)
class MergeCandidate:
    """Two names (the most frequent spellings of their keys, in alphabetical order of the keys) that may be one.

    `method` is "lexical", "acronym" or "address" ("Mr. Holmes", "Sherlock Holmes"), or "spelling" or "meaning" for
    names that are similar and no more (`graph/similar_names.py`). `certain` ones may be merged unasked. `similarity`
    is that of the spellings, for "meaning" the cosine, in [0, 1].
    """

    first: str
    second: str
    method: str
    similarity: float
    certain: bool


@dataclass(frozen=True, slots=True)
class NameGroup:
    """The spellings of one key, and its most frequent type ("" if unknown)."""

    counts: dict[str, int]
    name: str  # the preferred one
    type: str = ""


Names = Iterable[NameCount] | Mapping[str, NameGroup]
"""Names as they were counted, or as `grouped` has put them together."""


def propose_merges(names: Names, introduced: Collection[tuple[str, str]] = ()) -> list[MergeCandidate]:
    """Pairs of names that may be one thing, beyond those with one normalised string; certain ones first.

    `introduced` are acronyms with their names, as `names.introduced_acronyms` gives them. The order of `names` does not
    matter.
    """
    groups = grouped(names)
    candidates: dict[tuple[str, str], MergeCandidate] = {}
    keys = sorted(groups)
    certain = itertools.chain(_alike(keys, groups), _abbreviations(keys, groups))
    doubtful = itertools.chain(_acronyms(keys, groups, introduced), _addressed(keys, groups))
    for candidate in itertools.chain(certain, doubtful):
        candidates.setdefault((candidate.first, candidate.second), candidate)
    logger.info("%d names, %d pairs that may be one thing", len(keys), len(candidates))
    return sorted(candidates.values(), key=lambda c: (not c.certain, -c.similarity, c.first, c.second))


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

    counts: dict[str, dict[str, int]] = {}
    types: dict[str, dict[str, int]] = {}
    for each in names:
        if each.name.strip():
            key = normalise_name(each.name)
            of_key = counts.setdefault(key, {})
            of_key[each.name] = of_key.get(each.name, 0) + each.count
            if each.type:
                types_of_key = types.setdefault(key, {})
                types_of_key[each.type] = types_of_key.get(each.type, 0) + each.count

    return {
        key: NameGroup(of_key, by_preference(of_key)[0], majority(types.get(key, {}))) for key, of_key in counts.items()
    }


def candidate_of(
    groups: Mapping[str, NameGroup], a: str, b: str, method: str, similarity: float, *, certain: bool = False
) -> MergeCandidate:
    """The candidate of two keys, by their names."""
    first, second = sorted((a, b))
    return MergeCandidate(groups[first].name, groups[second].name, method, round(float(similarity), 4), certain)


def _alike(keys: Sequence[str], groups: Mapping[str, NameGroup]) -> Iterator[MergeCandidate]:
    """Keys with one skeleton, compared in that form: 1.0. Equality cannot chain two different things together."""
    first: dict[str, str] = {}
    alike: dict[str, list[str]] = defaultdict(list)
    for key in keys:
        for text in skeletons(groups[key].name, key):
            if first.setdefault(text, key) != key:
                alike[text].append(key)
    for text, others in alike.items():
        for a, b in itertools.pairwise([first[text], *others]):
            yield candidate_of(groups, a, b, "lexical", 1.0, certain=True)


def _abbreviations(keys: Sequence[str], groups: Mapping[str, NameGroup]) -> Iterator[MergeCandidate]:
    """Acronyms that mean one thing all over the world, "NYC", and the first of their names that is there."""
    for key in keys:
        short = key.replace(" ", "")
        whole = next((name for name in abbreviated(short) if name in groups), None)
        if whole is not None and looks_like_acronym(groups[key].name):
            yield candidate_of(groups, key, whole, ACRONYM, fuzz.ratio(key, whole) / 100, certain=True)


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
                yield candidate_of(groups, acronyms[short], key, ACRONYM, similarity, certain=certain)


def _addressed(keys: Sequence[str], groups: Mapping[str, NameGroup]) -> Iterator[MergeCandidate]:
    """A form of address with a last name, and the one person whose whole name ends in it.

    It is never certain: of 32 last names of news that one whole name of the corpus fits, ten are
    somebody or something else. If the corpus has several people of the name, or both a Mr. and a
    Mrs., it proposes none.
    """
    addressed: dict[str, list[str]] = defaultdict(list)
    for key in keys:
        form, _, last_name = key.partition(" ")
        if form in FORMS_OF_ADDRESS and last_name and " " not in last_name:
            addressed[last_name].append(key)
    if not addressed:
        return

    people: dict[str, list[str]] = defaultdict(list)
    for key in keys:
        first, _, others = key.partition(" ")
        last_name = others.rpartition(" ")[2]
        is_whole = last_name in addressed and first not in FORMS_OF_ADDRESS
        if is_whole and may_be_a_person(groups[key].name, groups[key].type):
            people[last_name].append(key)
    for last_name, forms in sorted(addressed.items()):
        if len(people[last_name]) == 1 and not _of_two_people(forms):
            [whole] = people[last_name]
            for key in forms:
                yield candidate_of(groups, key, whole, ADDRESS, fuzz.ratio(key, whole) / 100)


def _of_two_people(forms: Iterable[str]) -> bool:
    """Whether a man and a woman are addressed."""
    addresses = {form.partition(" ")[0] for form in forms}
    return "mr" in addresses and not addresses.isdisjoint(("mrs", "ms", "miss"))
