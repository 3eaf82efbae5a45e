"""Counts what the server does, in Prometheus's text format; several workers as one."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily
from prometheus_client.multiprocess import MultiProcessCollector

from kraq_dspy.serve.asking import AnswerSlots
from kraq_dspy.serve.served import Served

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)


class Metrics:
    """Labels are routes, programs and states, never what a client sent: their number is bounded.

    `folder` is where several workers write their counts, by prometheus_client's way for that (its variable of the
    environment is set before it is imported); any of them then tells those of all.
    """

    def __init__(self, served: Served, slots: AnswerSlots, folder: Path | None = None) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "kraq_requests", "Requests answered.", ("method", "route", "status"), registry=self.registry
        )
        self.seconds = Histogram(
            "kraq_request_seconds",
            "Time to the end of an answer.",
            ("route",),
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.questions = Counter(
            "kraq_questions", "Questions by outcome.", ("program", "outcome"), registry=self.registry
        )
        in_use = self._gauge("kraq_questions_in_progress", "Questions being answered.")
        waiting = self._gauge("kraq_questions_waiting", "Questions that wait for a place.")

        def count_slots() -> None:
            in_use.set(slots.in_use)
            waiting.set(slots.waiting)

        slots.changed = count_slots
        self._shown = self.registry
        if folder is not None:
            self._shown = CollectorRegistry()
            MultiProcessCollector(self._shown, str(folder))  # type: ignore[no-untyped-call]
        self._shown.register(_ModelCollector(served))

    def text(self) -> bytes:
        return generate_latest(self._shown)

    def _gauge(self, name: str, documentation: str) -> Gauge:
        return Gauge(name, documentation, registry=self.registry, multiprocess_mode="livesum")


class _ModelCollector:
    """What the models took, read from the meters that count it anyway."""

    def __init__(self, served: Served) -> None:
        self.served = served

    def collect(self) -> "Iterator[Metric]":
        calls = CounterMetricFamily("kraq_model_calls", "Answered calls of models.", labels=("index",))
        tokens = CounterMetricFamily("kraq_model_tokens", "Tokens of models.", labels=("index", "kind"))
        for each in self.served:
            usage = each.space.models.meter.total()
            calls.add_metric((each.name,), usage.calls)
            tokens.add_metric((each.name, "prompt"), usage.prompt_tokens)
            tokens.add_metric((each.name, "completion"), usage.completion_tokens)
        yield calls
        yield tokens
