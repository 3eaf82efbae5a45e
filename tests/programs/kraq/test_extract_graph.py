import asyncio
import json
from pathlib import Path

import dspy
from dspy.utils import DummyLM

from kraq_dspy.programs.kraq.extract_graph import ExtractGraph
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
        found = ExtractGraph(gleanings=1)(passage="Ada, born in 1815, worked with Babbage.")
    assert found.entities == (ExtractedEntity(**ADA), ExtractedEntity(**BABBAGE))
    assert found.relationships == (ExtractedRelationship(**WORKED),)
    assert found.claims == (ExtractedClaim(**BORN),)


def test_a_round_that_finds_nothing_new_ends_the_search() -> None:
    again = {**ADA, "name": " ada ", "description": "Said in other words."}
    lm = DummyLM([answer([ADA], [], []), answer([again], [], [], missing="nothing"), answer([BABBAGE], [], [])])
    with dspy.context(lm=lm):
        found = ExtractGraph(gleanings=5)(passage="Ada.")
    assert [entity.name for entity in found.entities] == ["Ada"]
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
        found = ExtractGraph(gleanings=0)(passage="Ada.")
    assert [entity.name for entity in found.entities] == ["Ada"]
    assert found.relationships == ()


def test_its_state_is_saved_and_loaded_as_json(tmp_path: Path) -> None:
    program = ExtractGraph()
    program.extract.signature = program.extract.signature.with_instructions("List what the passage names.")
    program.save(tmp_path / "extract.json")
    loaded = ExtractGraph()
    loaded.load(tmp_path / "extract.json")
    assert loaded.extract.signature.instructions == "List what the passage names."
