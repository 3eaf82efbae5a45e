"""Tests when a request waits, when it is given up, and how a dead server is told from a failing one."""

import pytest
from dspy import lm15

from kraq_dspy.errors import ModelError, ServerDownError
from kraq_dspy.extend import Backoff
from kraq_dspy.models.lms.retry import ServerHealth, clearer, unreachable


def test_only_silence_is_unreachable() -> None:
    assert unreachable(lm15.TransportError("refused"))
    assert unreachable(lm15.TimeoutError("no bytes for 5 s"))
    assert not unreachable(lm15.TimeoutError("gateway timeout", status=504))
    assert not unreachable(lm15.ServerError("x", status=500))


def test_failures_at_once_wait_for_a_caller_that_gives_up() -> None:
    health = ServerHealth("somewhere", limit=3, span_s=60)
    for _ in range(5):
        health.failed("refused", giving_up=False)
    health.check()
    with pytest.raises(ServerDownError, match="somewhere: 6 attempts"):
        health.failed("refused", giving_up=True)
    with pytest.raises(ServerDownError):
        health.check()


def test_failures_over_a_while_are_enough() -> None:
    health = ServerHealth("somewhere", limit=2, span_s=0)
    health.failed("refused", giving_up=False)
    with pytest.raises(ServerDownError):
        health.failed("refused", giving_up=False)


def test_an_answer_forgets_the_failures() -> None:
    health = ServerHealth("somewhere", limit=2, span_s=0)
    health.failed("refused", giving_up=False)
    health.answered()
    health.failed("refused", giving_up=True)
    health.check()


def test_after_a_rest_one_more_failure_is_enough() -> None:
    health = ServerHealth("somewhere", limit=3, span_s=60, rest_s=0)
    for _ in range(2):
        health.failed("refused", giving_up=True)
    with pytest.raises(ServerDownError):
        health.failed("refused", giving_up=True)
    health.check()
    with pytest.raises(ServerDownError):
        health.failed("refused", giving_up=True)


def test_errors_get_the_name_that_says_what_to_do() -> None:
    def of(error: lm15.LM15Error) -> Exception:
        return clearer(error, "openai/x", "https://example.org/v1")

    assert isinstance(of(lm15.AuthError("bad key", status=401)), ModelError)
    assert isinstance(of(lm15.BillingError("no credit", status=402)), ModelError)
    assert isinstance(of(lm15.InvalidRequestError("no such model", status=404)), ModelError)
    assert isinstance(of(lm15.InvalidRequestError("maximum context length is 8", status=400)), lm15.ContextLengthError)
    plain = lm15.InvalidRequestError("n must be positive", status=400)
    assert of(plain) is plain


def longest() -> float:
    return 0.0


def shortest() -> float:
    return 1.0


def test_waits_double_up_to_the_longest_and_are_shortened_by_up_to_half() -> None:
    backoff = Backoff(retries=9, first_s=1, longest_s=5)
    assert [backoff.wait(attempt, None, longest) for attempt in range(5)] == [1, 2, 4, 5, 5]
    assert [backoff.wait(attempt, None, shortest) for attempt in range(5)] == [0.5, 1, 2, 2.5, 2.5]


def test_retry_after_is_the_least_wait() -> None:
    assert Backoff(first_s=1).wait(0, 7, longest) == 7
    assert Backoff(first_s=1).wait(0, 7, shortest) == 7.5


def test_a_retry_after_beyond_patience_is_not_waited_for() -> None:
    assert Backoff(patience_s=120).wait(0, 121) is None


def test_no_wait_follows_the_last_attempt() -> None:
    assert Backoff(retries=2).wait(1) is not None
    assert Backoff(retries=2).wait(2) is None
    assert Backoff(retries=0).wait(0) is None
