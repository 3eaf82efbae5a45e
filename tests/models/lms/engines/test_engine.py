"""Runs the engines against a real server over HTTP: retries, replay, budget, and errors that keep their names."""

import asyncio
import copy
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import dspy
import pytest
from dspy.utils.exceptions import (
    ContextWindowExceededError,
    LMInvalidRequestError,
    LMProviderError,
    LMRateLimitError,
    LMServerError,
    LMTimeoutError,
    LMTransportError,
)

from kraq_dspy import Limits, make_lm
from kraq_dspy.errors import BudgetExceededError, ModelError, ServerDownError
from kraq_dspy.extend import Backoff, KraqAdapter, KraqLM, Meter
from kraq_dspy.models.lms.meter import working_on
from kraq_dspy.records import Usage
from kraq_dspy.settings import RoleSettings
from tests.models.lms.conftest import MemoryJournal, Reply, ScriptedServer

DOWN = "http://127.0.0.1:9/v1"  # nothing listens on the discard port
ASKED = dspy.Signature(
    "question -> answer"
)  # read once: CPython 3.11 may raise SystemError where threads parse at once


def model(url: str, quick: Backoff, meter: Meter | None = None, **settings: Any) -> KraqLM:
    return make_lm(RoleSettings(model="hosted_vllm/m", api_base=url, **settings), meter=meter, backoff=quick)


def ask(lm: KraqLM, question: str = "Where?") -> str:
    with dspy.context(lm=lm, adapter=KraqAdapter()):
        return str(dspy.Predict(ASKED)(question=question).answer)


async def ask_async(lm: KraqLM, question: str = "Where?") -> str:
    with dspy.context(lm=lm, adapter=KraqAdapter()):
        return str((await dspy.Predict("question -> answer").acall(question=question)).answer)


Ask = Callable[..., str]


@pytest.fixture(params=["sync", "async"])
def ask_either_way(request: pytest.FixtureRequest) -> Ask:
    """The same call through `__call__` and through `acall`."""
    if request.param == "sync":
        return ask
    return lambda lm, question="Where?": asyncio.run(ask_async(lm, question))


def test_usage_is_counted_by_stage_and_model(scripted: ScriptedServer, quick: Backoff, ask_either_way: Ask) -> None:
    meter = Meter()
    lm = model(scripted.url, quick, meter)
    with working_on("extract", "item"):
        ask_either_way(lm)
        ask_either_way(lm)
    ask_either_way(lm)
    assert meter.usage() == {
        ("extract", "hosted_vllm/m"): Usage(2, 20, 10),
        ("", "hosted_vllm/m"): Usage(1, 10, 5),
    }


def test_prompt_tokens_that_the_server_had_kept_are_counted_apart(
    scripted: ScriptedServer, reply: type[Reply], quick: Backoff, ask_either_way: Ask
) -> None:
    meter = Meter()
    answer = json.loads(reply().payload())
    answer["usage"]["prompt_tokens_details"] = {"cached_tokens": 8}
    scripted.replies = [reply(), reply(body=json.dumps(answer).encode())]
    lm = model(scripted.url, quick, meter)

    ask_either_way(lm, "Where?")
    ask_either_way(lm, "When?")

    assert meter.total() == Usage(2, 20, 10, cached_tokens=8)


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_passing_fault_is_asked_again(
    scripted: ScriptedServer, reply: type[Reply], quick: Backoff, ask_either_way: Ask, status: int
) -> None:
    meter = Meter()
    scripted.replies = [reply("busy", status), reply("busy", status), reply()]
    assert ask_either_way(model(scripted.url, quick, meter)) == "Paris"
    assert (len(scripted.requests), meter.total().calls, meter.retries) == (3, 1, 2)


def test_a_lasting_fault_ends_after_the_bound(
    scripted: ScriptedServer, reply: type[Reply], quick: Backoff, ask_either_way: Ask
) -> None:
    scripted.replies = [reply("busy", 429)]
    with pytest.raises(LMRateLimitError):
        ask_either_way(model(scripted.url, quick))
    assert len(scripted.requests) == 1 + quick.retries
    scripted.replies = [reply("broken", 500)]
    with pytest.raises(LMServerError):
        ask_either_way(model(scripted.url, quick))


def test_retry_after_is_waited_for(
    scripted: ScriptedServer, reply: type[Reply], quick: Backoff, ask_either_way: Ask
) -> None:
    scripted.replies = [reply("busy", 429, {"Retry-After": "1"}), reply()]
    assert ask_either_way(model(scripted.url, quick)) == "Paris"
    assert scripted.times[1] - scripted.times[0] >= 1


def test_a_call_that_waits_to_be_asked_again_leaves_its_place_to_another(
    scripted: ScriptedServer, reply: type[Reply], quick: Backoff
) -> None:
    scripted.replies = [reply("busy", 429, {"Retry-After": "1"}), reply()]
    done: list[str] = []

    async def one(lm: KraqLM, name: str) -> None:
        await ask_async(lm, name)
        done.append(name)

    async def both() -> None:
        lm = model(scripted.url, quick)
        one_place = asyncio.Semaphore(1)
        with working_on("s", "i", place=lambda: one_place):
            await asyncio.gather(one(lm, "put off"), one(lm, "next"))

    asyncio.run(both())
    assert done == ["next", "put off"]


def test_a_retry_after_beyond_patience_ends_the_call(
    scripted: ScriptedServer, reply: type[Reply], quick: Backoff
) -> None:
    scripted.replies = [reply("busy", 429, {"Retry-After": "3600"})]
    with pytest.raises(LMRateLimitError):
        ask(model(scripted.url, quick))
    assert len(scripted.requests) == 1


def test_a_request_that_is_wrong_is_not_asked_again(
    scripted: ScriptedServer, reply: type[Reply], quick: Backoff, ask_either_way: Ask
) -> None:
    scripted.replies = [reply("temperature must be a number", 400)]
    with pytest.raises(LMInvalidRequestError):
        ask_either_way(model(scripted.url, quick))
    assert len(scripted.requests) == 1


def test_a_server_that_hangs_is_left_after_the_timeout(
    scripted: ScriptedServer, reply: type[Reply], quick: Backoff, ask_either_way: Ask
) -> None:
    scripted.replies = [reply(wait_s=1.0), reply()]
    assert ask_either_way(model(scripted.url, quick, timeout_s=0.2)) == "Paris"
    scripted.replies = [reply(wait_s=1.0)]
    with pytest.raises((LMTimeoutError, LMTransportError)):
        ask_either_way(model(scripted.url, Backoff(retries=0), timeout_s=0.2))


@pytest.mark.parametrize(
    "text",
    [
        "This model's maximum context length is 2048 tokens. However, you requested 4096 tokens.",
        "The decoder prompt (length 5000) is longer than the maximum model length of 2048.",
        "the request exceeds the available context size, try increasing it",
    ],
)
def test_a_prompt_that_is_too_long_is_named_so(
    scripted: ScriptedServer, reply: type[Reply], quick: Backoff, ask_either_way: Ask, text: str
) -> None:
    scripted.replies = [reply(text, 400)]
    with pytest.raises(ContextWindowExceededError):
        ask_either_way(model(scripted.url, quick))


@pytest.mark.parametrize(("status", "hint"), [(401, "api_key_env"), (404, "/v1")])
def test_what_every_call_would_fail_with_is_our_own_error(
    scripted: ScriptedServer, reply: type[Reply], quick: Backoff, ask_either_way: Ask, status: int, hint: str
) -> None:
    scripted.replies = [reply("no", status)]
    with pytest.raises(ModelError, match=hint) as caught:
        ask_either_way(model(scripted.url, quick))
    assert scripted.url in str(caught.value)


def test_a_reply_that_is_no_json_fails_that_call_alone(
    scripted: ScriptedServer, reply: type[Reply], quick: Backoff, ask_either_way: Ask
) -> None:
    scripted.replies = [reply(body=b"<html>proxy</html>"), reply()]
    lm = model(scripted.url, quick)
    with pytest.raises(LMProviderError, match="is not JSON"):
        ask_either_way(lm)
    assert ask_either_way(lm) == "Paris"


def test_a_server_that_is_down_stops_everybody_with_one_message(quick: Backoff) -> None:
    lm = model(DOWN, quick)

    async def many() -> list[BaseException | str]:
        return await asyncio.gather(*(ask_async(lm, f"q{i}") for i in range(40)), return_exceptions=True)

    outcomes = asyncio.run(many())
    assert sum(isinstance(outcome, ServerDownError) for outcome in outcomes) >= 39
    with pytest.raises(ServerDownError, match=r"No answer from http://127.0.0.1:9/v1.*api_base"):
        ask(lm)


def test_callers_one_after_the_other_are_stopped_at_the_third(quick: Backoff) -> None:
    lm = model(DOWN, quick)
    for _ in range(2):  # four attempts each
        with pytest.raises(LMTransportError):
            ask(lm)
    with pytest.raises(ServerDownError):
        ask(lm)


def test_the_budget_stops_before_the_call_that_would_exceed_it(
    scripted: ScriptedServer, quick: Backoff, ask_either_way: Ask
) -> None:
    lm = model(scripted.url, quick, Meter(Limits(max_calls=2)))
    ask_either_way(lm, "a")
    ask_either_way(lm, "b")
    with pytest.raises(BudgetExceededError, match="max_calls = 2") as caught:
        ask_either_way(lm, "c")
    assert type(caught.value) is BudgetExceededError
    assert len(scripted.requests) == 2


def test_concurrent_calls_cannot_outrun_the_budget(
    scripted: ScriptedServer, reply: type[Reply], quick: Backoff
) -> None:
    scripted.replies = [reply(wait_s=0.05)]
    lm = model(scripted.url, quick, Meter(Limits(max_calls=5)))

    async def many() -> list[BaseException | str]:
        return await asyncio.gather(*(ask_async(lm, f"q{i}") for i in range(20)), return_exceptions=True)

    outcomes = asyncio.run(many())
    assert outcomes.count("Paris") == 5
    assert len(scripted.requests) == 5


def test_an_answer_in_the_journal_is_not_paid_again(
    scripted: ScriptedServer, quick: Backoff, ask_either_way: Ask, journal: MemoryJournal
) -> None:
    meter = Meter(Limits(max_calls=1))
    lm = model(scripted.url, quick, meter)
    for _ in range(3):
        with working_on("extract", "item", journal):
            assert ask_either_way(lm) == "Paris"
    assert (len(scripted.requests), meter.total().calls, meter.replays) == (1, 1, 2)
    assert journal.paid == [Usage(1, 10, 5)]


def test_another_server_or_item_has_answers_of_its_own(
    scripted: ScriptedServer, quick: Backoff, journal: MemoryJournal
) -> None:
    with working_on("extract", "item", journal):
        ask(model(scripted.url, quick))
    with working_on("extract", "item", journal):
        ask(model(scripted.url.replace("127.0.0.1", "localhost"), quick))
    with working_on("extract", "other", journal):
        ask(model(scripted.url, quick))
    assert len(scripted.requests) == 3


def test_equal_requests_within_an_item_are_replayed_in_their_order(
    scripted: ScriptedServer, reply: type[Reply], quick: Backoff, journal: MemoryJournal
) -> None:
    scripted.replies = [reply(f"[[ ## answer ## ]]\n{city}\n") for city in ("Paris", "Rome", "Oslo")]
    lm = model(scripted.url, quick)
    with working_on("extract", "item", journal):
        first = [ask(lm), ask(lm)]
    with working_on("extract", "item", journal):
        again = [ask(lm), ask(lm)]
    assert first == again == ["Paris", "Rome"]


def test_a_call_that_failed_is_not_in_the_journal(
    scripted: ScriptedServer, reply: type[Reply], quick: Backoff, journal: MemoryJournal
) -> None:
    scripted.replies = [reply("wrong", 400), reply()]
    lm = model(scripted.url, quick)
    with working_on("extract", "item", journal), pytest.raises(LMInvalidRequestError):
        ask(lm)
    with working_on("extract", "item", journal):
        assert ask(lm) == "Paris"


def test_event_loops_come_and_go(scripted: ScriptedServer, quick: Backoff) -> None:
    lm = model(scripted.url, quick)
    assert [asyncio.run(ask_async(lm, str(i))) for i in range(3)] == ["Paris"] * 3
    clients: Any = lm.async_engine.inner
    assert len(clients._clients) == 1  # those of closed loops are let go


def test_sixteen_threads_share_one_model(scripted: ScriptedServer, quick: Backoff) -> None:
    meter = Meter()
    lm = model(scripted.url, quick, meter)
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda i: ask(lm, str(i)), range(160)))
    assert answers == ["Paris"] * 160
    assert meter.total() == Usage(160, 1600, 800)


def test_copies_of_a_program_share_connections_and_meter(scripted: ScriptedServer, quick: Backoff) -> None:
    program = dspy.Predict("question -> answer")
    program.set_lm(model(scripted.url, quick))
    assert copy.deepcopy(program).lm.engine is program.lm.engine
    assert program.lm.copy(temperature=0.5).engine is program.lm.engine


def test_a_saved_model_holds_its_settings_and_no_key(
    scripted: ScriptedServer, quick: Backoff, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_KEY_OF_TEST", "s3cr3t")
    lm = model(scripted.url, quick, api_key_env="SECRET_KEY_OF_TEST")
    state = lm.dump_state()
    assert "s3cr3t" not in json.dumps(state)
    assert "s3cr3t" not in repr(vars(lm)) + repr(vars(lm.engine))
    again = KraqLM.load_state(state, allow_custom_lm_class=True)
    assert ask(again) == "Paris"
    assert scripted.keys == ["Bearer s3cr3t"]


def test_the_settings_reach_the_server(scripted: ScriptedServer, quick: Backoff) -> None:
    ask(model(scripted.url, quick, temperature=0.3, max_tokens=77))
    sent = scripted.requests[0]
    assert (sent["model"], sent["temperature"], sent["max_tokens"]) == ("m", 0.3, 77)


def test_an_answer_streams_from_its_server(scripted: ScriptedServer, reply: type[Reply], quick: Backoff) -> None:
    def line(delta: dict[str, str], finish: str | None = None) -> str:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return f"data: {json.dumps({'id': '1', 'model': 'm', 'choices': [choice]})}\n\n"

    texts = ["[[ ## answer ## ]]\n", "Par", "is"]
    body = "".join(line({"content": text}) for text in texts) + line({}, "stop") + "data: [DONE]\n\n"
    scripted.replies = [reply(body=body.encode(), headers={"Content-Type": "text/event-stream"})]

    async def pieces() -> list[Any]:
        with dspy.context(lm=model(scripted.url, quick), adapter=KraqAdapter()):
            return [piece async for piece in dspy.streamify(dspy.Predict("question -> answer"))(question="Where?")]

    *streamed, prediction = asyncio.run(pieces())
    assert prediction.answer == "Paris"
    assert [piece.choices[0].delta.content for piece in streamed][:3] == texts
    assert scripted.requests[0]["stream"] is True
