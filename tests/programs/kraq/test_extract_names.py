"""A small model names and links; the passage's own sentences describe."""

import json
from typing import Any

import dspy
import pytest
from dspy.utils import DummyLM

from kraq_dspy.config import ExtractSettings, QuestionSettings, RoleSettings, Settings
from kraq_dspy.programs.kraq.by_size import CANDIDATES, candidates, extractor, parameters
from kraq_dspy.programs.kraq.extract_graph import ExtractGraph
from kraq_dspy.programs.kraq.extract_names import ExtractNames
from kraq_dspy.programs.kraq.pipeline import KRAQ
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


@pytest.mark.parametrize(
    ("model", "size"),
    [
        ("gguf/models/qwen2.5-coder-0.5b.gguf", 5e8),
        ("ollama_chat/qwen2.5:0.5b", 5e8),
        ("gguf/SmolLM2-135M-Instruct.Q4_1.gguf", 1.35e8),
        ("hosted_vllm/Qwen2.5-72B-Instruct", 7.2e10),
        ("openai/gpt-4o", None),
        ("embedded", None),
    ],
)
def test_the_size_of_a_model_is_read_from_its_name(model: str, size: float | None) -> None:
    assert parameters(model) == size


@pytest.mark.parametrize(
    ("preset", "model", "program"),
    [
        ("auto", "gguf/qwen2.5-coder-0.5b.gguf", ExtractNames),
        ("auto", "gguf/qwen2.5-coder-1.5b.gguf", ExtractNames),
        ("auto", "gguf/qwen2.5-3b-instruct.gguf", ExtractGraph),
        ("auto", "openai/gpt-4o", ExtractGraph),
        ("small", "openai/gpt-4o", ExtractNames),
        ("full", "gguf/qwen2.5-coder-0.5b.gguf", ExtractGraph),
    ],
)
def test_the_preset_or_the_size_of_the_extractor_chooses_the_program(
    preset: str, model: str, program: type[dspy.Module]
) -> None:
    roles = {"default": RoleSettings(), "extractor": RoleSettings(model=model)}
    settings = Settings(extract=ExtractSettings(preset=preset), roles=roles)

    assert type(extractor(settings)) is program
    assert type(KRAQ(settings).extract) is program


@pytest.mark.parametrize(
    ("setting", "model", "adapter", "asked"),
    [
        (None, "gguf/smollm2-135m", "kraq-questions", CANDIDATES),
        (None, "gguf/smollm2-135m#tuned/7b", None, CANDIDATES),
        (None, "gguf/smollm2-135m", None, CANDIDATES),  # asks with the packaged adapter all the same
        (None, "gguf/qwen2.5-coder-0.5b", None, 1),
        (None, "hosted_vllm/llama-8b", "tuned", 1),
        (None, "openai/gpt-4o", None, 1),
        (None, "embedded", None, 1),
        (1, "gguf/smollm2-135m", "kraq-questions", 1),
        (4, "openai/gpt-4o", None, 4),
    ],
)
def test_the_setting_or_what_the_generator_is_chooses_how_many_questions(
    setting: int | None, model: str, adapter: str | None, asked: int
) -> None:
    roles = {"default": RoleSettings(), "generator": RoleSettings(model=model, adapter=adapter)}
    settings = Settings(questions=QuestionSettings(candidates=setting), roles=roles)

    assert candidates(settings) == asked
    assert KRAQ(settings).ask.candidates == KRAQ(settings).ask_random.candidates == asked
