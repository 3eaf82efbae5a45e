"""Descriptions of one thing from several passages become one description, by a model where they are long."""

import asyncio

import dspy
from dspy.utils import DummyLM

from kraq_dspy.asset.graph.build import Graph
from kraq_dspy.programs import KRAQ
from kraq_dspy.records import ExtractedEntity, ExtractedRelationship, Extraction
from kraq_dspy.settings import ResolveSettings, Settings
from kraq_dspy.steps.direct import DirectSteps

EXTRACTIONS = [
    Extraction(
        chunk,
        (ExtractedEntity("Ada", "person", f"Ada {said}."), ExtractedEntity("Charles", "person", "Charles built.")),
        (ExtractedRelationship("Ada", "Charles", "met", f"Ada met Charles {where}."),),
    )
    for chunk, said, where in (("one", "wrote", "in London"), ("two", "counted", "at a ball"))
]


def graph(*, relationships: bool = False) -> Graph:
    settings = Settings(resolve=ResolveSettings(description_tokens=4, relationships=relationships))
    lm = DummyLM({"Ada | met | Charles": {"description": "They met twice."}, "Ada": {"description": "Ada did both."}})
    with dspy.context(lm=lm):
        return asyncio.run(KRAQ(settings).graph(EXTRACTIONS, DirectSteps()))


def test_long_descriptions_of_an_entity_are_merged_by_the_model() -> None:
    assert [entity.description for entity in graph().entities if entity.name == "Ada"] == ["Ada did both."]


def test_those_of_a_relationship_are_joined_and_merged_only_where_that_is_set() -> None:
    [joined], [merged] = graph().relationships, graph(relationships=True).relationships
    assert joined.description == "Ada met Charles in London. Ada met Charles at a ball."
    assert merged.description == "They met twice."
