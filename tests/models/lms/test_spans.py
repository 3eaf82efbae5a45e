"""Spans of a whole build and of a question, kept in memory by OpenTelemetry's own exporter."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import dspy
import pytest

from kraq_dspy.build.index.build import build_index
from kraq_dspy.errors import ModelError
from kraq_dspy.models.lms.meter import within_span
from kraq_dspy.records import Document
from kraq_dspy.settings import RoleSettings, Settings
from kraq_dspy.workspace import Workspace

pytest.importorskip("opentelemetry.sdk")

from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

Finished = Callable[[], Sequence[Any]]  # of spans; whether they have attributes and a parent is what is tested
DOCUMENTS = [
    Document("a", "Ada", "Ada Lovelace wrote to Charles Babbage of the Analytical Engine."),
    Document("b", "Babbage", "Charles Babbage lived in London. Ada Lovelace met Charles Babbage in London."),
]


@pytest.fixture(scope="module")
def exporter() -> InMemorySpanExporter:
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor

    kept = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(kept))
    trace.set_tracer_provider(provider)  # once in a process
    return kept


@pytest.fixture
def finished(exporter: InMemorySpanExporter) -> Iterator[Finished]:
    exporter.clear()
    yield exporter.get_finished_spans
    exporter.clear()


def test_a_call_is_a_span_inside_its_stage_with_its_tokens_and_none_of_its_text(
    finished: Finished, tmp_path: Path
) -> None:
    report = build_index(DOCUMENTS, tmp_path / "x.kraq")
    stages = {span.attributes["kraq.stage"]: span for span in finished() if span.name.startswith("stage ")}
    calls = [span for span in finished() if span.name == "chat embedded"]
    assert {"extract", "summarize", "ask"} <= stages.keys()
    for stage, usage in report.usage.items():
        mine = [span for span in calls if span.attributes["kraq.stage"] == stage]
        assert len(mine) == usage.calls
        assert sum(span.attributes["gen_ai.usage.input_tokens"] for span in mine) == usage.prompt_tokens
        assert sum(span.attributes["gen_ai.usage.output_tokens"] for span in mine) == usage.completion_tokens
        assert {span.parent.span_id for span in mine} == {stages[stage].context.span_id}
    written = "".join(span.to_json() for span in finished())
    assert "Lovelace" not in written
    assert "Analytical" not in written


def test_a_question_is_a_span_with_its_calls_inside(finished: Finished, tmp_path: Path) -> None:
    build_index(DOCUMENTS, tmp_path / "x.kraq")
    with Workspace.open(tmp_path / "x.kraq") as space:
        program = space.program("combined")
        before = len(finished())
        space.ask("Who met Babbage?", program)
    call, question = finished()[before:]
    assert (question.name, question.attributes["kraq.program"]) == ("ask", "CombinedRetrieveRAG")
    assert call.parent.span_id == question.context.span_id


def test_a_call_that_fails_says_so_by_kind_and_without_the_message(finished: Finished, tmp_path: Path) -> None:
    nowhere = RoleSettings(model="hosted_vllm/x", api_base="http://127.0.0.1:9/v1", retries=0)
    with pytest.raises(ModelError):
        build_index(DOCUMENTS, tmp_path / "x.kraq", settings=Settings(roles={"default": nowhere}))
    [stage] = [span for span in finished() if span.name == "stage extract"]
    assert not stage.status.is_ok
    calls = [span for span in finished() if span.name == "chat hosted_vllm/x"]
    assert calls
    assert all(not span.status.is_ok and "error.type" in span.attributes for span in calls)
    assert all(not span.events and not span.status.description for span in [stage, *calls])


def test_a_span_of_the_callers_own_is_the_parent(finished: Finished) -> None:
    from kraq_dspy.models.lms.roles import make_lm

    with within_span("mine", kraq__note="x"), dspy.context(lm=make_lm(RoleSettings())):
        dspy.Predict("question -> answer")(question="Who?")
    call, mine = finished()
    assert call.parent.span_id == mine.context.span_id
    assert mine.attributes["kraq.note"] == "x"
