"""Phrases are entities by how they are used; names are entities for what they are."""

from kraq_dspy.asset.graph.mentions import Mentions
from kraq_dspy.asset.graph.weighing import weak_phrases
from kraq_dspy.records import PHRASE, ExtractedEntity, ExtractedRelationship, Extraction


def extraction(number: int, *names: str, link: tuple[str, str] | None = None, kind: str = PHRASE) -> Extraction:
    links = (ExtractedRelationship(link[0], link[1], "moves", ""),) if link else ()
    return Extraction(f"c{number}", tuple(ExtractedEntity(name, kind, "") for name in names), links)


def test_a_phrase_of_one_passage_that_nothing_is_said_of_names_nothing() -> None:
    every = [extraction(n, "remote control", link=("remote control", "Harrow")) for n in range(25)]
    every.append(extraction(30, "odd moment"))
    mentions = Mentions.of(every)
    assert weak_phrases(mentions) == {"odd moment"}
    assert "odd moment" not in mentions.without(weak_phrases(mentions)).spellings
    assert "remote control" in mentions.without(weak_phrases(mentions)).spellings


def test_a_single_word_of_nearly_all_passages_names_nothing() -> None:
    every = [extraction(n, "virus", link=("virus", "Harrow")) for n in range(30)]
    assert weak_phrases(Mentions.of(every)) == {"virus"}


def test_a_name_is_never_weak() -> None:
    assert weak_phrases(Mentions.of([extraction(1, "Harrow", kind="place")])) == set()


def test_what_is_said_of_a_weak_phrase_goes_with_it() -> None:
    mentions = Mentions.of([extraction(1, "lamp", "tower", link=("lamp", "tower"))]).without({"lamp"})
    assert list(mentions.spellings) == ["tower"]
    assert len(mentions.rows("links")) == 0
