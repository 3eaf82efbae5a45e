"""Waiting, giving up, and telling a dead server from a failing one."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from dspy import lm15

from kraq_dspy.errors import ModelError, ServerDownError
from kraq_dspy.models.lms.retry import Backoff, Pace, ServerHealth, clearer, first_answer, unreachable, wait_after
from kraq_dspy.steps.direct import CallSlots


@pytest.mark.parametrize(
    "error",
    [
        lm15.InvalidRequestError("x"),
        lm15.AuthError("x"),
        lm15.BillingError("x", status=429),
        lm15.RateLimitError("x", retry_after=500),
    ],
)
def test_some_errors_are_not_worth_a_wait(error: lm15.LM15Error) -> None:
    assert wait_after(error, 0, Backoff(patience_s=120)) is None


def test_a_passing_fault_is_worth_one() -> None:
    assert wait_after(lm15.ServerError("x"), 0, Backoff(first_s=1)) is not None


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


class Late(Pace):
    """Everything is late after a hundredth of a second."""

    def late_after_s(self) -> float:
        return 0.01


class Calls:
    """Answers each call as `behaviours` say, in order: after some seconds a text, or an error."""

    def __init__(self, *behaviours: tuple[float, str | Exception]) -> None:
        self.behaviours = list(behaviours)
        self.begun = self.cancelled = 0

    async def ask(self) -> str:
        seconds, answer = self.behaviours[self.begun]
        self.begun += 1
        try:
            await asyncio.sleep(seconds)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        if isinstance(answer, Exception):
            raise answer
        return answer


@asynccontextmanager
async def free() -> AsyncIterator[None]:
    yield


def answer(calls: Calls, pace: Pace | None = None, place: Callable[..., object] = free) -> str:
    async def asked() -> str:
        return await asyncio.wait_for(first_answer(calls.ask, pace or Late(), place), 5)  # type: ignore[arg-type]

    return asyncio.run(asked())


def test_nothing_is_late_before_twenty_answers_are_known() -> None:
    pace = Pace()
    for _ in range(19):
        pace.took(1.0)
    assert pace.late_after_s() is None
    pace.took(1.0)
    assert pace.late_after_s() == 2.0


def test_late_is_twice_what_95_of_the_last_hundred_took() -> None:
    pace = Pace()
    for seconds in [60.0] * 100 + [1.0] * 95 + [30.0] * 5:
        pace.took(seconds)
    assert pace.late_after_s() == 2.0


def test_quick_answers_are_not_late_before_half_a_second() -> None:
    pace = Pace()
    for _ in range(20):
        pace.took(0.001)
    assert pace.late_after_s() == 0.5


def test_second_calls_are_one_in_twenty_at_most() -> None:
    pace = Pace()
    for _ in range(40):
        pace.took(1.0)
    pace.count_second_call()
    assert pace.late_after_s() == 2.0
    pace.count_second_call()
    assert pace.late_after_s() is None


def test_a_call_of_the_first_ones_is_late_once_the_others_tell_the_pace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kraq_dspy.models.lms.retry._UNKNOWN_S", 0.01)
    monkeypatch.setattr("kraq_dspy.models.lms.retry._LEAST_S", 0.05)
    pace, hanging = Pace(), Calls((60.0, "first"), (0.0, "second"))

    async def all_at_once() -> list[str]:
        others = [first_answer(Calls((0.01, "quick")).ask, pace, free) for _ in range(30)]
        return await asyncio.wait_for(asyncio.gather(first_answer(hanging.ask, pace, free), *others), 5)

    assert asyncio.run(all_at_once()) == ["second", *["quick"] * 30]


def test_where_all_are_late_together_one_in_twenty_is_asked_again() -> None:
    """A server that pauses is not asked for everything twice."""
    pace, calls = Pace(), [Calls((0.7, "first"), (60.0, "second")) for _ in range(30)]
    for _ in range(100):
        pace.took(0.01)

    async def all_at_once() -> list[str]:
        return await asyncio.gather(*(first_answer(each.ask, pace, free) for each in calls))

    assert asyncio.run(all_at_once()) == ["first"] * 30
    assert sum(each.begun for each in calls) == 30 + 5


def test_an_answer_in_time_is_asked_for_once() -> None:
    calls = Calls((0.0, "first"))
    assert answer(calls) == "first"
    assert calls.begun == 1


def test_a_second_call_answers_for_one_that_hangs_and_that_is_left() -> None:
    calls, pace = Calls((60.0, "first"), (0.0, "second")), Late()
    assert answer(calls, pace) == "second"
    assert (calls.begun, calls.cancelled) == (2, 1)


def test_a_third_call_answers_where_the_second_hangs_too() -> None:
    calls = Calls((60.0, "first"), (60.0, "second"), (0.0, "third"))
    assert answer(calls) == "third"
    assert (calls.begun, calls.cancelled) == (3, 2)


def test_the_first_counts_where_it_comes_sooner_than_the_others_and_there_is_no_fourth() -> None:
    calls = Calls((0.3, "first"), (60.0, "second"), (60.0, "third"))
    assert answer(calls) == "first"
    assert (calls.begun, calls.cancelled) == (3, 2)


def test_a_second_call_that_fails_leaves_the_first_to_answer() -> None:
    assert answer(Calls((0.3, "first"), *[(0.0, ValueError("busy"))] * 2)) == "first"


def test_a_first_call_that_fails_while_the_second_is_under_way_is_answered_by_that() -> None:
    assert answer(Calls((0.3, ValueError("timed out")), (0.5, "second"), (60.0, "third"))) == "second"


def test_where_both_fail_the_error_is_that_of_the_first() -> None:
    with pytest.raises(ValueError, match="timed out"):
        answer(Calls((0.3, ValueError("timed out")), *[(0.5, ValueError("busy"))] * 2))


def test_a_first_call_that_fails_does_not_wait_for_a_place_for_the_second() -> None:
    @asynccontextmanager
    async def taken() -> AsyncIterator[None]:
        await asyncio.sleep(60)
        yield

    calls = Calls((0.3, ValueError("timed out")), (0.0, "second"))
    with pytest.raises(ValueError, match="timed out"):
        answer(calls, place=taken)
    assert calls.begun == 1


def test_a_second_call_takes_a_place_as_any_other_does() -> None:
    async def order() -> list[str]:
        slots, calls, events = CallSlots(2), Calls((60.0, "first"), (0.0, "second")), list[str]()

        async def hanging() -> None:
            async with slots.slot():
                events.append(await first_answer(calls.ask, Late(), slots.slot))

        async def other() -> None:
            async with slots.slot():
                await asyncio.sleep(0.1)
                events.append(f"other, {calls.begun} asked")

        await asyncio.wait_for(asyncio.gather(hanging(), other()), 5)
        return events

    assert asyncio.run(order()) == ["other, 1 asked", "second"]


def test_a_caller_who_leaves_leaves_no_call_behind() -> None:
    calls = Calls((60.0, "first"), (60.0, "second"), (60.0, "third"))

    async def left() -> None:
        asking = asyncio.ensure_future(first_answer(calls.ask, Late(), free))
        await asyncio.sleep(0.05)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking

    asyncio.run(left())
    assert calls.begun == calls.cancelled == 3


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
