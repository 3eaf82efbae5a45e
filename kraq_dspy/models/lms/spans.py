"""Opens spans of OpenTelemetry for stages and model calls, where its API is installed and somebody listens.

A call's span names its model, stage and item, and counts its tokens, in the words of OpenTelemetry's
conventions for generative models. Texts of prompts, answers and documents are never put in.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from kraq_dspy.records import Usage

trace: Any
try:
    from opentelemetry import trace
    from opentelemetry.trace import Status, StatusCode
except ImportError:  # the extra "otel"
    trace = None


class Span:
    """A span under way, or nothing where nobody listens."""

    def __init__(self, span: Any = None) -> None:
        self._span = span

    def note(self, **facts: str | int | float) -> None:
        if self._span is not None:
            self._span.set_attributes({name.replace("__", "."): value for name, value in facts.items()})

    def note_usage(self, usage: Usage) -> None:
        self.note(gen_ai__usage__input_tokens=usage.prompt_tokens, gen_ai__usage__output_tokens=usage.completion_tokens)

    @contextmanager
    def inside(self) -> Iterator[None]:
        """What begins in here belongs to this span; it does not end with the block."""
        if self._span is None:
            yield
            return
        with trace.use_span(self._span, end_on_exit=False, record_exception=False, set_status_on_exception=False):
            yield

    def end(self, error: BaseException | None = None) -> None:
        if self._span is None:
            return
        if error is not None:
            self._span.set_attribute("error.type", type(error).__name__)  # its message may quote a document
            self._span.set_status(Status(StatusCode.ERROR))
        self._span.end()


def begin(name: str, **facts: str | int | float) -> Span:
    """A span that `end` ends; `facts` are attributes, with two underscores for a dot."""
    if trace is None:
        return Span()
    span = Span(trace.get_tracer("kraq_dspy").start_span(name))
    span.note(**facts)
    return span


@contextmanager
def within(name: str, **facts: str | int | float) -> Iterator[Span]:
    """A span for the length of the block."""
    span = begin(name, **facts)
    try:
        with span.inside():
            yield span
    except BaseException as error:
        span.end(error)
        raise
    span.end()
