"""OpenInference's instrumentation of DSPy sees programs, steps, calls and searches as one trace."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import orjson
import pytest

from kraq_dspy.records import Document
from tests.kept import kept_index

pytest.importorskip("openinference.instrumentation.dspy", reason="needs openinference-instrumentation-dspy")
pytest.importorskip("opentelemetry.sdk", reason="needs opentelemetry-sdk")

# In a process of its own: a process has one provider for good, and what is instrumented stays so.
PROGRAM = """
import asyncio, json, sys
from dspy.utils import DummyLM
from openinference.instrumentation.dspy import DSPyInstrumentor
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

spans = InMemorySpanExporter()
trace.set_tracer_provider(TracerProvider())
trace.get_tracer_provider().add_span_processor(SimpleSpanProcessor(spans))
DSPyInstrumentor().instrument()

import kraq_dspy as kraq

with kraq.Workspace.open(sys.argv[1], lm=DummyLM([{"answer": "Italy"}] * 2)) as space:
    space.ask("Where was Don Juan written?", "traditional")
    asyncio.run(space.aask("Where was Don Juan written?", "traditional"))

print(json.dumps([
    {
        "name": span.name, "id": span.context.span_id, "parent": span.parent and span.parent.span_id,
        "trace": span.context.trace_id, **span.attributes,
    }
    for span in spans.get_finished_spans()
]))
"""


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> list[list[dict[str, Any]]]:
    """The spans of a question that was called and of one that was awaited, without those of the next questions."""
    index: Path = tmp_path_factory.mktemp("tracing") / "people.kraq"
    texts = {"Byron": "Lord Byron wrote Don Juan in Italy.", "Ada": "Ada Lovelace was the daughter of Lord Byron."}
    kept_index([Document(name, name, text) for name, text in texts.items()], index)
    done = subprocess.run([sys.executable, "-c", PROGRAM, str(index)], capture_output=True, text=True, check=True)

    by_trace: dict[int, list[dict[str, Any]]] = {}
    for span in orjson.loads(done.stdout.splitlines()[-1]):
        by_trace.setdefault(span["trace"], []).append(span)
    return [spans for spans in by_trace.values() if any("TraditionalRAG" in span["name"] for span in spans)]


def test_a_question_is_one_trace_of_program_step_model_and_search(traces: list[list[dict[str, Any]]]) -> None:
    assert len(traces) == 2
    for spans in traces:
        by_id = {span["id"]: span for span in spans}
        [program] = [span for span in spans if span["name"].startswith("TraditionalRAG")]
        kinds = {span["openinference.span.kind"] for span in spans}
        assert {"CHAIN", "LLM", "RETRIEVER"} <= kinds

        [search] = [span for span in spans if span["name"] == "AdaptiveRetriever"]
        assert by_id[search["parent"]] is program
        assert search["input.value"] == "Where was Don Juan written?"
        assert search["retrieval.documents.0.document.content"].endswith("Lord Byron wrote Don Juan in Italy.")
        assert search["retrieval.documents.0.document.score"] > 0
