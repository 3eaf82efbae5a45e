"""Tests that a second reading of a passage adds what the first missed, and when there is none."""

import asyncio
import json
from typing import Any

import dspy
import pytest
from dspy.lm15 import Message, Request, Response, TextPart, Usage
from dspy.utils import DummyLM

from kraq_dspy.extend import KraqAdapter
from kraq_dspy.programs import ExtractGraph, ExtractNames
from kraq_dspy.records import ExtractedClaim, ExtractedEntity, ExtractedRelationship

ADA = {"name": "Ada", "type": "person", "description": "A mathematician."}
BABBAGE = {"name": "Babbage", "type": "person", "description": "An inventor."}
WORKED = {"source": "Ada", "target": "Babbage", "predicate": "worked with", "description": "They worked together."}
BORN = {"subject": "Ada", "statement": "Ada was born in 1815."}


def answer(entities: list[object], relationships: list[object], claims: list[object], **more: str) -> dict[str, str]:
    lists = {"entities": entities, "relationships": relationships, "claims": claims}
    return {**more, **{name: json.dumps(value) for name, value in lists.items()}}


def test_a_second_round_adds_what_the_first_missed() -> None:
    lm = DummyLM([answer([ADA], [], []), answer([BABBAGE], [WORKED], [BORN], missing="Babbage and his link to Ada.")])
    with dspy.context(lm=lm):
        graph = ExtractGraph(gleanings=1)(passage="Ada, born in 1815, worked with Babbage.")
    assert graph.entities == (ExtractedEntity(**ADA), ExtractedEntity(**BABBAGE))
    assert graph.relationships == (ExtractedRelationship(**WORKED),)
    assert graph.claims == (ExtractedClaim(**BORN),)


def test_a_claim_may_name_a_second_entity_and_stays_without_one_that_was_invented() -> None:
    taught = {"subject": "Ada", "statement": "Ada taught Babbage.", "object": "Babbage"}
    lm = DummyLM([answer([ADA, BABBAGE], [], [taught, {**BORN, "object": "Byron"}])])
    with dspy.context(lm=lm):
        graph = ExtractGraph(gleanings=0)(passage="Ada, born in 1815, taught Babbage.")
    assert graph.claims == (ExtractedClaim(**taught), ExtractedClaim(**BORN))
    assert graph.ungrounded == 0


def test_a_round_that_finds_nothing_new_ends_the_search() -> None:
    again = {**ADA, "name": " ada ", "description": "Said in other words."}
    lm = DummyLM([answer([ADA], [], []), answer([again], [], [], missing="nothing"), answer([BABBAGE], [], [])])
    with dspy.context(lm=lm):
        graph = ExtractGraph(gleanings=5)(passage="Ada.")
    assert [entity.name for entity in graph.entities] == ["Ada"]
    assert len(lm.history) == 2


def test_the_second_round_sees_names_and_links_but_not_their_descriptions() -> None:
    lm = DummyLM([answer([ADA, BABBAGE], [WORKED], []), answer([], [], [], missing="nothing")])
    with dspy.context(lm=lm):
        ExtractGraph(gleanings=1)(passage="Ada worked with Babbage.")
    prompt = lm.history[-1]["messages"][-1]["content"]
    assert "Ada > Babbage\nBabbage" in prompt
    assert "A mathematician." not in prompt


def test_without_gleanings_the_passage_is_read_once() -> None:
    lm = DummyLM([answer([ADA], [], [])])
    with dspy.context(lm=lm):
        assert len(ExtractGraph(gleanings=0)(passage="Ada.").entities) == 1
    assert len(lm.history) == 1


def test_both_doors_give_the_same() -> None:
    script = [answer([ADA], [], []), answer([BABBAGE], [], [], missing="Babbage")]
    with dspy.context(lm=DummyLM(list(script))):
        waited = ExtractGraph()(passage="Ada and Babbage.")
    with dspy.context(lm=DummyLM(list(script))):
        awaited = asyncio.run(ExtractGraph().acall(passage="Ada and Babbage."))
    assert waited.toDict() == awaited.toDict()


def test_nameless_elements_are_left_out() -> None:
    empty = {"name": " ", "type": "", "description": "?"}
    dangling = {**WORKED, "target": ""}
    lm = DummyLM([answer([ADA, empty], [dangling], [])])
    with dspy.context(lm=lm):
        graph = ExtractGraph(gleanings=0)(passage="Ada.")
    assert [entity.name for entity in graph.entities] == ["Ada"]
    assert graph.relationships == ()


def test_what_is_about_an_invented_name_is_dropped_and_counted() -> None:
    invented = {"name": "Grace Hopper", "type": "person", "description": "Not in the passage."}
    link = {**WORKED, "target": "Grace Hopper"}
    script = answer([ADA, invented], [link], [{"subject": "Grace Hopper", "statement": "She wrote a compiler."}])
    with dspy.context(lm=DummyLM([script])):
        graph = ExtractGraph(gleanings=0)(passage="Ada, born in 1815.")
    assert [entity.name for entity in graph.entities] == ["Ada"]
    assert (graph.relationships, graph.claims, graph.ungrounded) == ((), (), 3)
    with dspy.context(lm=DummyLM([script])):
        everything = ExtractGraph(gleanings=0, grounded_names=False)(passage="Ada, born in 1815.")
    assert (len(everything.entities), everything.ungrounded) == (2, 0)


@pytest.mark.parametrize(
    ("name", "passage", "kept"),
    [
        ("Dr. Ada Lovelace", "Lovelace, Ada, wrote notes.", True),
        ("Curie, Marie", "MARIE CURIE worked in Paris.", True),
        ("Jose Marti", "José Martí was a poet.", True),
        ("Belgian politicians", "He was a Belgian politician.", True),
        ("東京", "彼は東京に住んでいる。", True),
        ("United States", "The U.S. army left.", False),
        ("Marie", "Maria worked in Paris.", False),
        ("...", "Anything ... goes.", False),
    ],
)
def test_a_name_counts_as_named_when_the_passage_has_half_of_its_words(name: str, passage: str, kept: bool) -> None:
    with dspy.context(lm=DummyLM([answer([{**ADA, "name": name}], [], [])])):
        assert bool(ExtractGraph(gleanings=0)(passage=passage).entities) is kept


class Scripted:
    """Gives its replies in order, and keeps the passages that it was shown."""

    supports_response_schema = True

    def __init__(self, *replies: str) -> None:
        self.replies = list(replies)
        self.prompts: list[str] = []

    def complete(self, request: Request) -> Response:
        self.prompts.append(request.messages[0].text or "")
        message = Message.assistant([TextPart(self.replies.pop(0))])
        return Response(id=None, model=request.model, message=message, finish_reason="stop", usage=Usage())


def test_a_passage_about_which_the_model_does_not_end_is_read_in_halves() -> None:
    passage = f"{'Ada was here. ' * 20}\n\n{'Babbage was there. ' * 20}"
    endless = '{"entities": [' + " " * 500
    whole = [json.dumps({"entities": [entity], "relationships": [], "claims": []}) for entity in (ADA, BABBAGE)]
    engine = Scripted(endless, "[[ ## entities ## ]] " + "and so on, and so forth, without an end, " * 9, *whole)
    with dspy.context(lm=dspy.LM("m", engine=engine, cache=False), adapter=KraqAdapter()):
        graph = ExtractGraph(gleanings=0)(passage=passage)
    assert [entity.name for entity in graph.entities] == ["Ada", "Babbage"]
    assert "Babbage" not in engine.prompts[2]
    assert "Ada" not in engine.prompts[3]


def test_a_second_reading_that_cannot_be_read_costs_itself_alone() -> None:
    first = json.dumps({"entities": [ADA], "relationships": [], "claims": []})
    engine = Scripted(first, "Ich weiss nicht.", "Je ne sais pas.")
    with dspy.context(lm=dspy.LM("m", engine=engine, cache=False), adapter=KraqAdapter()):
        assert [entity.name for entity in ExtractGraph(gleanings=1)(passage="Ada.").entities] == ["Ada"]


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


ENGLISH = "Mira Tolan\n\nMira Tolan repaired the old lamp of Harrow in 1902. Orrin Vale paid Mira Tolan for the lamp."
GERMAN = "Der Leuchtturmwärter Mira Tolan reparierte die Lampe von Harrow, bevor der Sturm über das Dorf kam."


def test_where_the_parser_reads_the_model_is_asked_about_other_languages_alone() -> None:
    by_parse = ExtractNames(by_parse=True)
    lm = DummyLM([reply(["Harrow"])])
    with dspy.context(lm=lm):
        english = by_parse(passage=ENGLISH)
        assert not lm.history
        german = by_parse(passage=GERMAN)

    assert {"Mira Tolan", "Orrin Vale", "Harrow"} <= {entity.name for entity in english.entities}
    assert ("Orrin Vale", "Mira Tolan") in {(link.source, link.target) for link in english.relationships}
    assert "Orrin Vale paid Mira Tolan for the lamp." in {claim.statement for claim in english.claims}
    assert [entity.name for entity in german.entities] == ["Harrow"]
    assert (by_parse.most_calls(ENGLISH), by_parse.most_calls(GERMAN), len(lm.history)) == (0, 1, 1)
