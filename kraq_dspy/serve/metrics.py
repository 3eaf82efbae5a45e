"""Counts what the server does, in Prometheus's text format."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily

from kraq_dspy.serve.asking import Places
from kraq_dspy.serve.served import Served

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)


class Metrics:
    """Labels are routes, programs and states, never what a client sent: their number is bounded."""

    def __init__(self, served: Served, places: Places) -> None:
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
        self.asked = Counter("kraq_questions", "Questions by outcome.", ("program", "outcome"), registry=self.registry)
        in_use = Gauge("kraq_questions_in_progress", "Questions being answered.", registry=self.registry)
        in_use.set_function(lambda: places.in_use)
        waiting = Gauge("kraq_questions_waiting", "Questions that wait for a place.", registry=self.registry)
        waiting.set_function(lambda: places.waiting)
        self.registry.register(_Models(served))

    def text(self) -> bytes:
        return generate_latest(self.registry)


class _Models:
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
