"""Makes a span of OpenTelemetry of each search, in OpenInference's words, if OpenTelemetry is installed.

OpenInference's instrumentation of DSPy makes those of programs, steps and calls to models; together they are one trace.
Without a tracer provider a span costs some microseconds and goes nowhere.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from kraq_dspy.records import Hit

try:
    from opentelemetry import trace
except ImportError:  # no part of the library needs it
    trace = None  # type: ignore[assignment]


class RetrievalSpan:
    """What a search found goes to `found`."""

    def __init__(self, span: Any = None) -> None:
        self._span = span

    def found(self, hits: Sequence[Hit]) -> list[Hit]:
        """The hits as they are, noted in the span."""
        if self._span is not None and self._span.is_recording():
            for number, hit in enumerate(hits):
                document = f"retrieval.documents.{number}.document"
                self._span.set_attribute(f"{document}.id", hit.chunk.id)
                self._span.set_attribute(f"{document}.content", hit.chunk.passage)
                self._span.set_attribute(f"{document}.score", float(hit.score))
        return list(hits)


@contextmanager
def retrieval_span(retriever: str, question: str) -> Iterator[RetrievalSpan]:
    if trace is None:
        yield RetrievalSpan()
        return

    attributes = {"openinference.span.kind": "RETRIEVER", "input.value": question}
    with trace.get_tracer("kraq_dspy").start_as_current_span(retriever, attributes=attributes) as span:
        yield RetrievalSpan(span)
