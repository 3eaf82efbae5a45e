"""Counts what the server does, in Prometheus's text format; several workers as one."""

import os

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

from kraq_dspy.apps.serve.asking import AnswerSlots
from kraq_dspy.records import Usage

FOLDER = "PROMETHEUS_MULTIPROC_DIR"
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)


class Metrics:
    """Labels are routes, programs and states, never what a client sent: their number is bounded.

    Where prometheus_client's variable for several processes is set, each writes its counts into that folder, and any
    of them tells those of all.
    """

    def __init__(self, slots: AnswerSlots) -> None:
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
        calls = Counter("kraq_model_calls", "Answered calls of models.", ("index",), registry=self.registry)
        tokens = Counter("kraq_model_tokens", "Tokens of models.", ("index", "kind"), registry=self.registry)
        in_use = self._gauge("kraq_questions_in_progress", "Questions being answered.")
        waiting = self._gauge("kraq_questions_waiting", "Questions that wait for a place.")

        def count_slots() -> None:
            in_use.set(slots.in_use)
            waiting.set(slots.waiting)

        def count_usage(index: str, usage: Usage) -> None:
            calls.labels(index).inc(usage.calls)
            tokens.labels(index, "prompt").inc(usage.prompt_tokens)
            tokens.labels(index, "completion").inc(usage.completion_tokens)

        slots.changed, slots.spent = count_slots, count_usage
        self._shown = self.registry
        if FOLDER in os.environ:
            self._shown = CollectorRegistry()
            MultiProcessCollector(self._shown)  # type: ignore[no-untyped-call]

    def text(self) -> bytes:
        return generate_latest(self._shown)

    def _gauge(self, name: str, documentation: str) -> Gauge:
        return Gauge(name, documentation, registry=self.registry, multiprocess_mode="livesum")
