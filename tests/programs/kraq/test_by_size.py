"""Tests that the settings, or the size in a model's name, decide how much a model is asked for."""

import dspy
import pytest
from dspy.utils import DummyLM

from kraq_dspy.programs import KRAQ, ExtractGraph, ExtractNames
from kraq_dspy.programs.kraq.by_size import CANDIDATES, asked_extractor, candidates, extractor, is_small
from kraq_dspy.settings import ExtractSettings, QuestionSettings, RoleSettings, Settings


@pytest.mark.parametrize(
    ("model", "small"),
    [
        ("gguf/models/qwen2.5-coder-0.5b.gguf", True),
        ("ollama_chat/qwen2.5:0.5b", True),
        ("gguf/SmolLM2-135M-Instruct.Q4_1.gguf", True),
        ("hosted_vllm/Qwen2.5-72B-Instruct", False),
        ("openai/gpt-4o", False),
        ("embedded", False),
    ],
)
def test_the_size_of_a_model_is_read_from_its_name(model: str, small: bool) -> None:
    assert is_small(model) == small


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
    ("extract", "by_parse"),
    [
        (ExtractSettings(), True),
        (ExtractSettings(preset="small"), False),
        (ExtractSettings(types="person"), False),
        (ExtractSettings(persona="A geneticist."), False),
    ],
)
def test_the_parser_reads_in_place_of_a_small_model_that_nothing_is_asked_of(
    extract: ExtractSettings, by_parse: bool
) -> None:
    settings = Settings(extract=extract, roles={"default": RoleSettings("gguf/qwen2.5-coder-0.5b")})
    program, asked = extractor(settings), asked_extractor(settings)

    assert isinstance(program, ExtractNames)
    assert isinstance(asked, ExtractNames)
    assert (bool(program.parser), asked.parser) == (by_parse, "")


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
    settings = Settings(questions=QuestionSettings(candidates=setting, asked_by="mixed"), roles=roles)

    assert candidates(settings) == asked
    assert KRAQ(settings).ask.candidates == KRAQ(settings).ask_random.candidates == asked


def test_a_generator_that_asks_alone_is_asked_for_one_question_of_each_summary() -> None:
    """As in the papers, and as the Random baseline and the instructed model are."""
    tuned = RoleSettings("gguf/smollm2-135m", adapter="kraq-questions")
    assert candidates(Settings(roles={"default": RoleSettings(), "generator": tuned})) == 1


@pytest.mark.parametrize(("model", "asked"), [("gguf/qwen2.5-coder-1.5b", False), ("openai/gpt-4o", True)])
def test_a_small_model_is_asked_for_no_findings(model: str, asked: bool) -> None:
    summarize = KRAQ(Settings(roles={"default": RoleSettings(), "summarizer": RoleSettings(model)})).summarize
    signature = summarize.summarize.signature
    assert ("findings" in signature.output_fields, "Findings" in signature.instructions) == (asked, asked)
    assert list(signature.output_fields)[:2] == ["title", "summary"]

    reply = {"title": "Ada", "summary": "Ada lived in London.", **({"findings": "[]"} if asked else {})}
    with dspy.context(lm=DummyLM([reply])):
        assert summarize(elements=["Ada | lived in | London"]).findings == ()
