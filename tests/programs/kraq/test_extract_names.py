"""A small model names and links; the passage's own sentences describe."""

import json
from typing import Any

import dspy
from dspy.utils import DummyLM

from kraq_dspy.programs.kraq.extract_names import ExtractNames
from kraq_dspy.records import ExtractedClaim, ExtractedEntity, ExtractedRelationship

PASSAGE = "Ada Lovelace\nAda Lovelace was a mathematician. Charles Babbage worked with Ada Lovelace in London."


def reply(names: list[str], *links: tuple[str, str, str]) -> dict[str, str]:
    records = [{"source": source, "predicate": predicate, "target": target} for source, predicate, target in links]
    return {"names": json.dumps(names), "relationships": json.dumps(records)}


def asked(passage: str, *replies: dict[str, str], grounded_names: bool = True) -> tuple[dspy.Prediction, list[Any]]:
    """What is extracted, and the temperatures of the calls."""
    lm = DummyLM(list(replies))
    with dspy.context(lm=lm):
        prediction = ExtractNames(grounded_names)(passage=passage)
    return prediction, [entry["kwargs"].get("temperature") for entry in lm.history]


def extracted(passage: str, names: list[str], *links: tuple[str, str, str]) -> dspy.Prediction:
    prediction, calls = asked(passage, reply(names, *links))
    assert len(calls) == 1
    return prediction


def test_an_entity_is_described_by_the_first_sentence_that_names_it_and_never_by_a_heading() -> None:
    elements = extracted(PASSAGE, ["Ada Lovelace", "London"])

    assert elements.entities == (
        ExtractedEntity("Ada Lovelace", "", "Ada Lovelace was a mathematician."),
        ExtractedEntity("London", "", "Charles Babbage worked with Ada Lovelace in London."),
    )


def test_a_link_is_described_by_the_sentence_that_names_both_ends_and_its_ends_are_entities() -> None:
    elements = extracted(PASSAGE, [], ("Charles Babbage", "worked with", "Ada Lovelace"))

    assert elements.relationships == (
        ExtractedRelationship(
            "Charles Babbage", "Ada Lovelace", "worked with", "Charles Babbage worked with Ada Lovelace in London."
        ),
    )
    assert [entity.name for entity in elements.entities] == ["Charles Babbage", "Ada Lovelace"]


def test_every_sentence_is_a_claim_about_the_name_that_it_has_first() -> None:
    elements = extracted(PASSAGE, ["London", "Ada Lovelace", "Charles Babbage"])

    assert elements.claims == (
        ExtractedClaim("Ada Lovelace", "Ada Lovelace was a mathematician."),
        ExtractedClaim("Charles Babbage", "Charles Babbage worked with Ada Lovelace in London."),
    )


def test_a_sentence_with_both_ends_of_a_link_is_a_claim_about_the_link() -> None:
    elements = extracted(PASSAGE, [], ("Ada Lovelace", "knew", "Charles Babbage"))

    assert elements.claims == (
        ExtractedClaim("Ada Lovelace", "Ada Lovelace was a mathematician."),
        ExtractedClaim("Charles Babbage", "Charles Babbage worked with Ada Lovelace in London.", "Ada Lovelace"),
    )


def test_links_to_themselves_and_invented_names_are_dropped() -> None:
    elements = extracted(PASSAGE, ["London", "Grace Hopper"], ("Ada Lovelace", "is", "Ada Lovelace"))

    assert [entity.name for entity in elements.entities] == ["London"]
    assert (elements.relationships, elements.ungrounded) == ((), 1)


def test_a_model_that_invented_every_name_is_asked_again_with_a_temperature() -> None:
    invented = reply(["John Doe", "Jane Smith"], ("John Doe", "is a parent", "Jane Smith"))

    elements, temperatures = asked(PASSAGE, invented, reply(["London"]))
    assert [entity.name for entity in elements.entities] == ["London"]
    assert (elements.ungrounded, temperatures[1:]) == (3, [1.0])

    elements, temperatures = asked(PASSAGE, *[invented] * 4)
    assert (elements.entities, len(temperatures)) == ((), 3)


def test_a_passage_that_names_nothing_is_asked_about_once() -> None:
    elements, temperatures = asked(PASSAGE, *[reply([])] * 2)
    assert (elements.entities, len(temperatures)) == ((), 1)


def test_who_lets_a_model_invent_is_not_asked_again() -> None:
    elements, temperatures = asked(PASSAGE, *[reply(["Grace Hopper"])] * 2, grounded_names=False)
    assert ([entity.name for entity in elements.entities], len(temperatures)) == (["Grace Hopper"], 1)
