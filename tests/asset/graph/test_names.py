"""Tests which spellings of a name meet under one key, and which stay apart."""

import pytest
from hypothesis import given, strategies as st

from kraq_dspy.asset.graph.names import initials, looks_like_acronym, normalise_name, skeletons


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("  The  Rolling\tStones ", "rolling stones"),
        ("“A Christmas Carol”", "christmas carol"),
        ("Scrooge's", "scrooge"),
        ("SCROOGE’S NEPHEW", "scrooge nephew"),
        ("O'Brien", "obrien"),
        ("J. R. R. Tolkien", "jrr tolkien"),
        ("J.R.R. Tolkien", "jrr tolkien"),
        ("U.S.A.", "usa"),
        ("Straße", "strasse"),
        ("Saxe - Coburg & Gotha", "saxe coburg and gotha"),
        ("1,000 men", "1000 men"),
        ("ＡＢＣ①", "abc1"),
        ("「東京タワー」", "東京タワー"),
        ("Москва́", "москва́"),
        ("हिन्दी", "हिन्दी"),
        ("KRAQ™", "kraq"),
    ],
)
def test_spellings_meet_under_one_key(name: str, key: str) -> None:
    assert normalise_name(name) == key


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("C++", "C"),
        ("C#", "C"),
        ("1.5", "15"),
        ("-3", "3"),
        ("5%", "5"),
        ("The 1975", "1975"),
        ("A-10", "10"),
        ("80's", "80"),
        ("が", "か"),
        ("10:15", "1015"),
        ("!!!", "???"),
        ("The", "A"),
    ],
)
def test_what_tells_things_apart_stays_in_the_key(one: str, other: str) -> None:
    assert normalise_name(one) != normalise_name(other)


@given(st.text(min_size=1).filter(str.strip))
def test_no_name_has_an_empty_key(name: str) -> None:
    assert normalise_name(name)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Québec City", "Quebec City"),
        ("Spider-Man", "Spiderman"),
        ("South-East Asia", "Southeast Asia"),
        ("Federal Communications Commission (FCC)", "Federal Communications Commission"),
        ("Tolkien, J. R. R.", "J.R.R. Tolkien"),
        ("Treaty of Versailles", "Versailles Treaty"),
        ("U.S. Navy", "United States Navy"),
        ("Leader of the Opposition", "Leader of Opposition"),
        ("churches", "church"),
        ("23 stories", "23-story"),
    ],
)
def test_harmless_differences_leave_one_skeleton(one: str, other: str) -> None:
    assert skeletons(one) & skeletons(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Christ Church", "Christchurch"),
        ("University of Washington", "Washington University"),
        ("King Arthur", "Arthur King"),
        ("Paris, France", "France, Paris"),
        ("William", "Williams"),
        ("the 1970s", "1970"),
        ("National League A", "National League"),
        ("A-side", "aside"),
        ("1-11", "11-1"),
        ("KSČ", "KSC"),
        ("Alfred Dunhill Ltd", "Alfred Dunhill"),
        ("National Hockey League (NBA)", "National Hockey League"),
        ("くに", "ぐに"),
    ],
)
def test_differences_that_may_mean_something_leave_two(one: str, other: str) -> None:
    assert not skeletons(one) & skeletons(other)


def test_acronyms_are_made_with_and_without_small_words() -> None:
    assert initials("universidad de buenos aires") == {"udba", "uba"}
    assert initials("argentina") == frozenset()
    assert [name for name in ("UBA", "U.N.", "Uba", "1990", "A", "東京") if looks_like_acronym(name)] == ["UBA", "U.N."]
