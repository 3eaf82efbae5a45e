"""Tests which names become one entity, which are only proposed, and what every merge says of itself."""

import gzip
import json
import random
from collections import Counter
from pathlib import Path

from hypothesis import given, strategies as st

from kraq_dspy.asset.graph.candidates import MergeCandidate, NameCount, propose_merges
from kraq_dspy.asset.graph.names import introduced_acronyms, normalise_name
from kraq_dspy.asset.graph.resolve import Resolution, entity_id_of, resolve_entities


def counted(**names: int) -> list[NameCount]:
    return [NameCount(name.replace("_", " "), "", count) for name, count in names.items()]


def certain(names: list[NameCount]) -> list[MergeCandidate]:
    return [candidate for candidate in propose_merges(names) if candidate.certain]


def resolved(names: list[NameCount]) -> Resolution:
    return resolve_entities(names, certain(names))


def test_the_most_frequent_spelling_is_kept_and_every_merge_says_why() -> None:
    names = [NameCount("The Beehive", "", 1), NameCount("Beehive", "", 3), NameCount("BEEHIVE", "", 1)]
    resolution = resolve_entities(names)
    assert resolution.names == {"beehive": ("Beehive", "The Beehive", "BEEHIVE")}
    assert [(m.kept_name, m.merged_name, m.method, m.similarity) for m in resolution.merges] == [
        ("Beehive", "BEEHIVE", "normalised", 1.0),
        ("Beehive", "The Beehive", "normalised", 1.0),
    ]
    assert {merge.entity_id for merge in resolution.merges} == {entity_id_of("beehive")}


def test_ties_go_to_the_longer_then_to_the_alphabetically_first() -> None:
    names = [NameCount("Kim Il Sung", "", 2), NameCount("the Kim Il-sung", "", 2), NameCount("KIM IL SUNG", "", 2)]
    assert resolve_entities(names).names == {"kim il sung": ("the Kim Il-sung", "KIM IL SUNG", "Kim Il Sung")}


def test_names_that_are_alike_but_two_things_are_never_merged_unasked() -> None:
    names = counted(
        Prussian=3, Russian=4, Las_Vegas=2, Last_Vegas=1, World_War_I=5, World_War_II=5, Henry_County=1,
        McHenry_County=1, Victoria=1, Victorian=1, Scrooge=9, Ebenezer_Scrooge=4, North_Korea=2, South_Korea=2,
    )  # fmt: skip
    assert resolved(names).merges == ()


def test_names_with_other_numbers_or_directions_are_not_even_proposed() -> None:
    names = counted(
        summer_olympics_of_1988=1, summer_olympics_of_1992=1, Richard_III_of_England=1, Richard_II_of_England=1,
        North_Carolina_University=1, South_Carolina_University=1,
    )  # fmt: skip
    assert propose_merges(names) == []


def test_an_acronym_is_proposed_for_the_names_it_may_stand_for_and_merged_only_when_accepted() -> None:
    names = counted(UBA=5, Universidad_de_Buenos_Aires=2, Boston=1)
    (candidate,) = propose_merges(names)
    assert (candidate.first, candidate.second, candidate.method, candidate.certain) == (
        "UBA", "Universidad de Buenos Aires", "acronym", False,
    )  # fmt: skip
    assert resolve_entities(names).key_of("UBA") == "uba"
    accepted = resolve_entities(names, [candidate])
    assert accepted.key_of("universidad de buenos aires") == accepted.key_of("U.B.A.") == "uba"
    assert [merge.method for merge in accepted.merges] == ["confirmed"]


def test_an_acronym_that_a_text_introduces_is_merged_unasked() -> None:
    names = counted(
        UBA=5, Universidad_de_Buenos_Aires=2, Union_Bank_of_Ava=1, NATO=2, North_Atlantic_Treaty_Organization=1
    )
    introduced = introduced_acronyms(["He taught at the Universidad de Buenos Aires (U.B.A.) until 1990 (NATO)."])
    candidates = propose_merges(names, introduced)
    assert [(c.first, c.certain) for c in candidates] == [("UBA", True), ("NATO", False)]
    resolution = resolve_entities(names, [candidate for candidate in candidates if candidate.certain])
    assert [(m.kept_name, m.merged_name, m.method) for m in resolution.merges] == [
        ("UBA", "Universidad de Buenos Aires", "acronym")
    ]


def test_an_acronym_accepted_for_two_names_is_merged_with_neither() -> None:
    names = counted(UBA=5, Universidad_de_Buenos_Aires=2, United_Bank_of_Africa=2)
    accepted = propose_merges(names)
    assert len(accepted) == 2
    assert resolve_entities(names, accepted).merges == ()


def test_an_acronym_accepted_for_two_names_of_one_thing_is_merged_with_both() -> None:
    names = counted(UBA=5, Universidad_de_Buenos_Aires=2, University_of_Buenos_Aires=2)
    acronyms = [MergeCandidate("UBA", long.name, "acronym", 1.0, False) for long in names[1:]]
    translated = MergeCandidate("Universidad de Buenos Aires", "University of Buenos Aires", "meaning", 0.95, False)

    assert resolve_entities(names, acronyms).merges == ()
    assert resolve_entities(names, [*acronyms, translated]).names == {
        "uba": ("UBA", "Universidad de Buenos Aires", "University of Buenos Aires")
    }


def test_blank_names_are_left_out() -> None:
    assert resolve_entities([NameCount(" ", "", 1), NameCount("", "", 3)]) == Resolution()


WORDS = ["The", "of", "Beehive", "Bee-Hive", "Québec", "Quebec", "city", "cities", "II", "1990", "UBA", "(UBA)", "U.S."]
names_of_words = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join)
mentions = st.dictionaries(names_of_words | st.text(max_size=8), st.integers(1, 5), max_size=25)


@given(mentions, st.randoms(use_true_random=False))
def test_the_order_of_the_names_does_not_matter(counts: dict[str, int], rng: random.Random) -> None:
    names = [NameCount(name, "", count) for name, count in counts.items()]
    shuffled = rng.sample(names, len(names))
    assert propose_merges(shuffled) == propose_merges(names)
    accepted = propose_merges(names)  # as if the model had confirmed everything
    assert resolve_entities(shuffled, rng.sample(accepted, len(accepted))) == resolve_entities(names, accepted)


@given(mentions)
def test_resolving_the_kept_names_again_changes_nothing(counts: dict[str, int]) -> None:
    names = [NameCount(name, "", count) for name, count in counts.items()]
    first = resolved(names)
    kept_name = {merge.merged_name: merge.kept_name for merge in first.merges}
    totals: Counter[str] = Counter()
    for name, count in counts.items():
        totals[kept_name.get(name, name)] += count
    again = resolved([NameCount(name, "", count) for name, count in totals.items()])
    assert again.merges == ()
    assert (again.names, again.canonical_keys) == ({}, {})


@given(mentions)
def test_every_name_belongs_to_exactly_one_entity(counts: dict[str, int]) -> None:
    names = [NameCount(name, "", count) for name, count in counts.items()]
    resolution = resolved(names)
    spellings = [name for kept in resolution.names.values() for name in kept]
    assert len(spellings) == len(set(spellings))
    for kept_key, some in resolution.names.items():
        assert {resolution.key_of(name) for name in some} == {kept_key} == {normalise_name(some[0])}
    alone = {name for name in counts if name.strip()} - set(spellings)
    assert len({resolution.key_of(name) for name in alone}) == len(alone)
    assert {resolution.key_of(name) for name in alone}.isdisjoint(resolution.names)


def test_of_the_names_that_a_model_extracted_from_wikipedia_those_that_merge_mean_one_thing(shared_data: Path) -> None:
    counts: Counter[str] = Counter()
    with gzip.open(shared_data / "musique" / "triples.jsonl.gz", "rt", encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            counts.update(row["entities"])
            counts.update(end for triple in row["triples"] for end in (triple[0], triple[2]))
    names = [NameCount(name, "", count) for name, count in counts.items()]
    resolution = resolved(names)
    merged = {(merge.kept_name, merge.merged_name) for merge in resolution.merges if merge.method == "lexical"}
    assert ("Versailles Treaty", "Treaty of Versailles") in merged
    assert resolution.key_of("Indian") != resolution.key_of("Indiana")
    assert resolution.key_of("Kent County") != resolution.key_of("Kent")
    assert 200 < len(resolution.merges) < 500


def addressed(*names: str, person: str = "person") -> list[tuple[str, str]]:
    counts = [NameCount(name, person, 1) for name in names]
    candidates = [one for one in propose_merges(counts) if one.method == "address"]
    assert not any(one.certain for one in candidates)
    return [(one.first, one.second) for one in candidates]


def test_a_form_of_address_may_be_the_one_person_of_that_last_name() -> None:
    assert addressed("Mr. Holmes", "Sherlock Holmes", "Irene Adler") == [("Mr. Holmes", "Sherlock Holmes")]
    assert addressed("Dr Watson", "John H. Watson") == [("Dr Watson", "John H. Watson")]


def test_a_form_of_address_that_fits_several_is_nobody_s() -> None:
    assert addressed("Mr. Holmes", "Sherlock Holmes", "Mycroft Holmes") == []
    assert addressed("Mr. Cratchit", "Mrs. Cratchit", "Bob Cratchit") == []
    assert addressed("Mr. Holmes", "Irene Adler") == []
    assert addressed("Mr. Holmes", "Sherlock Holmes", person="place") == []


def test_a_form_of_address_is_merged_once_it_is_confirmed() -> None:
    names = [NameCount("Mr. Holmes", "person", 1), NameCount("Sherlock Holmes", "person", 4)]
    assert resolved(names).merges == ()
    [merge] = resolve_entities(names, propose_merges(names)).merges
    assert (merge.kept_name, merge.merged_name, merge.method) == ("Sherlock Holmes", "Mr. Holmes", "confirmed")


def test_a_city_goes_by_its_acronym_and_turned_round() -> None:
    names = [NameCount(name, "place", 1) for name in ("NYC", "New York City", "the City of New York", "New York")]
    [(kept, *others)] = resolved(names).names.values()
    assert {kept, *others} == {"NYC", "New York City", "the City of New York"}
