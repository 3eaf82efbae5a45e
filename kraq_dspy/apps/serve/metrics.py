"""Counts requests, answers and what models took, as Prometheus reads it from /metrics."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest

from kraq_dspy.apps.serve.watch import RequestRecord

SECONDS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)
"""Bounds of the histograms."""
OF_PROGRAM = ("index", "program")


class Metrics:
    """The counts of one server; `in_progress` and `waiting` tell how many questions are, at any time."""

    def __init__(self, in_progress: Callable[[], float], waiting: Callable[[], float]) -> None:
        self._registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        self._requests = Counter("kraq_requests", "Requests.", ["method", "address", "status"], registry=registry)
        self._request_seconds = Histogram(
            "kraq_request_seconds",
            "From a request to the end of its answer.",
            ["address"],
            buckets=SECONDS,
            registry=registry,
        )
        self._answers = Counter(
            "kraq_answers", "Questions that were answered.", [*OF_PROGRAM, "cache"], registry=registry
        )
        self._failures = Counter("kraq_failed_answers", "Questions that were not.", OF_PROGRAM, registry=registry)
        self._answer_seconds = Histogram(
            "kraq_answer_seconds", "From a question to its answer.", OF_PROGRAM, buckets=SECONDS, registry=registry
        )
        self._calls = Counter("kraq_model_calls", "Calls to models.", OF_PROGRAM, registry=registry)
        self._tokens = Counter("kraq_model_tokens", "Tokens of models.", [*OF_PROGRAM, "kind"], registry=registry)
        self._cost = Counter("kraq_model_cost", "What models cost, by the prices known.", OF_PROGRAM, registry=registry)
        Gauge("kraq_questions_in_progress", "Questions being answered.", registry=registry).set_function(in_progress)
        Gauge("kraq_questions_waiting", "Questions that wait for a place.", registry=registry).set_function(waiting)

    def note(self, record: RequestRecord, seconds: float) -> None:
        address = record.address or "other"
        self._requests.labels(record.method, address, str(record.status)).inc()
        self._request_seconds.labels(address).observe(seconds)
        if not record.program:
            return

        of_program = (record.index, record.program)
        if not record.answered:
            self._failures.labels(*of_program).inc()
            return

        self._answers.labels(*of_program, str(record.cache).lower()).inc()
        self._answer_seconds.labels(*of_program).observe(seconds)
        self._calls.labels(*of_program).inc(record.usage.calls)
        self._tokens.labels(*of_program, "prompt").inc(record.usage.prompt_tokens)
        self._tokens.labels(*of_program, "completion").inc(record.usage.completion_tokens)
        self._cost.labels(*of_program).inc(record.cost)

    def text(self) -> bytes:
        written: bytes = generate_latest(self._registry)
        return written
