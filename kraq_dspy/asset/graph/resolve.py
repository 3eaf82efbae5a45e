"""Resolves entities: makes one of the names that were found to mean one thing (KRAQ paper, section 2).

Which names may be one says `graph/candidates.py`; a caller may ask a model in between.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from kraq_dspy.asset.graph.candidates import MergeCandidate, NameGroup, Names, by_preference, grouped
from kraq_dspy.asset.graph.names import normalise_name
from kraq_dspy.records import Merge, content_id


@dataclass(frozen=True)
class Resolution:
    """Which names are one entity.

    `canonical_keys` maps a normalised name to the key of the name that kraq kept, if they differ.
    `names` maps the keys of things with several spellings to these, the kept one first, the others
    by frequency.
    """

    canonical_keys: Mapping[str, str] = field(default_factory=dict)
    names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    merges: tuple[Merge, ...] = ()

    def key_of(self, name: str) -> str:
        """The canonical key of any name, also of one that was not resolved."""
        key = normalise_name(name)
        return self.canonical_keys.get(key, key)

    def entity_id(self, name: str) -> str:
        return entity_id_of(self.key_of(name))


def entity_id_of(key: str) -> str:
    return content_id("entity", key)


def resolve_entities(names: Names, accepted: Iterable[MergeCandidate] = ()) -> Resolution:
    """Merge the spellings of one normalised string, and the accepted pairs with all that follows from them.

    The kept name is the most frequent spelling; ties go to the longer, then to the alphabetically first. A candidate
    that was not certain counts as confirmed. An acronym that was accepted for two names which are not one otherwise is
    merged with neither. Resolving the kept names again changes nothing; the order of the arguments does not matter.
    """
    groups = grouped(names)
    links = _usable(accepted, groups)
    sets = _Sets(links)
    used = [link for link in links if sets.join(link)]
    members: dict[str, list[str]] = defaultdict(list)
    for key, group in groups.items():
        if key in sets:
            members[sets.of(key)].append(key)
        elif len(group.counts) > 1:  # most stand alone, and have one spelling
            members[key].append(key)

    canonical_keys: dict[str, str] = {}
    spellings: dict[str, tuple[str, ...]] = {}
    merges: list[Merge] = []
    came_by: dict[str, MergeCandidate] = {}  # the surest link of each key
    for link in used:
        for key in _ends(link):
            came_by.setdefault(key, link)

    for keys in members.values():
        counts: Counter[str] = Counter()
        for key in keys:
            counts.update(groups[key].counts)
        ordered = by_preference(counts)
        preferred = ordered[0]
        preferred_key = normalise_name(preferred)
        spellings[preferred_key] = ordered
        canonical_keys.update((key, preferred_key) for key in keys if key != preferred_key)
        entity_id = entity_id_of(preferred_key)
        for name in ordered[1:]:
            method, similarity = "normalised", 1.0
            if (key := normalise_name(name)) != preferred_key:
                link = came_by[key]
                method, similarity = link.method if link.certain else "confirmed", link.similarity
            id = content_id("merge", entity_id, name)
            merges.append(Merge(id, entity_id, preferred, name, method, similarity))
    return Resolution(canonical_keys, spellings, tuple(sorted(merges, key=lambda m: (m.kept_name, m.merged_name))))


def _usable(accepted: Iterable[MergeCandidate], groups: Mapping[str, NameGroup]) -> list[MergeCandidate]:
    """The accepted candidates about known names, the surest first, without acronyms that mean more
    than one thing."""
    surest_first = sorted(set(accepted), key=lambda c: (not c.certain, -c.similarity, c.first, c.second, c.method))
    acronyms: list[MergeCandidate] = []
    others: list[MergeCandidate] = []
    for candidate in surest_first:
        first, second = _ends(candidate)
        if first in groups and second in groups:
            (acronyms if candidate.method == "acronym" else others).append(candidate)

    # What an acronym stands for counts once, however many names it has.
    sets = _Sets([*acronyms, *others])
    for candidate in others:
        sets.join(candidate)
    meanings: dict[str, set[str]] = defaultdict(set)
    for candidate in acronyms:
        short, long = _short_and_long(candidate)
        meanings[short].add(sets.of(long))

    clear = [each for each in acronyms if len(meanings[_short_and_long(each)[0]]) == 1]
    return [*others, *clear]


def _short_and_long(candidate: MergeCandidate) -> tuple[str, str]:
    short, long = sorted(_ends(candidate), key=lambda key: (len(key), key))
    return short, long


class _Sets:
    """Puts names together, each of them alone in a set at first."""

    def __init__(self, links: Iterable[MergeCandidate]) -> None:
        self._parents: dict[str, str] = {}
        for link in links:
            for key in _ends(link):
                self._parents[key] = key

    def __contains__(self, key: str) -> bool:
        return key in self._parents

    def of(self, key: str) -> str:
        """The one name of the set that stands for it."""
        parents = self._parents
        while parents[key] != key:
            parents[key] = parents[parents[key]]  # the way is half as long next time
            key = parents[key]
        return key

    def join(self, link: MergeCandidate) -> bool:
        """Put the two names of the link into one set; whether they were in different ones."""
        first, second = map(self.of, _ends(link))
        self._parents[second] = first
        return first != second


def _ends(link: MergeCandidate) -> tuple[str, str]:
    return normalise_name(link.first), normalise_name(link.second)
