"""Waits between attempts."""

from kraq_dspy.models.lms.servers.retry import Backoff


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
