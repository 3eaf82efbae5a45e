"""Tests several servers behind one role: which is asked, and what happens when one dies, rests and comes back."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import dspy
import pytest
from dspy.lm15 import TransportError
from dspy.utils.exceptions import LMInvalidRequestError

from kraq_dspy import make_lm
from kraq_dspy.errors import ConfigError, ServerDownError
from kraq_dspy.extend import Backoff, KraqAdapter, KraqLM
from kraq_dspy.models.lms.from_threads import FromThreads
from kraq_dspy.models.lms.transport import REST_S, SeveralServers
from kraq_dspy.settings import RoleSettings, read_settings
from kraq_dspy.steps.bounded import bounded_map
from tests.models.lms.conftest import Reply, ScriptedServer, serving

DOWN = "http://127.0.0.1:9/v1"  # nothing listens on the discard port
ASKED = dspy.Signature("question -> answer")


@pytest.fixture
def other() -> Iterator[ScriptedServer]:
    with serving() as server:
        yield server


def model(*addresses: str, retries: int = 0) -> KraqLM:
    return make_lm(
        RoleSettings(model="hosted_vllm/m", api_base=",".join(addresses)), backoff=Backoff(retries, first_s=0.01)
    )


def ask(lm: KraqLM, question: str = "Where?") -> str:
    with dspy.context(lm=lm, adapter=KraqAdapter()):
        return str(dspy.Predict(ASKED)(question=question).answer)


def ask_at_once(lm: KraqLM, count: int) -> list[str]:
    async def one(number: int) -> str:
        with dspy.context(lm=lm, adapter=KraqAdapter()):
            return str((await dspy.Predict(ASKED).acall(question=f"Where is {number}?")).answer)

    async def all_of_them() -> list[str]:
        return [answer async for answer in bounded_map(one, range(count), count)]

    return asyncio.run(all_of_them())


def test_the_least_busy_server_is_asked(scripted: ScriptedServer, other: ScriptedServer, reply: type[Reply]) -> None:
    scripted.replies = other.replies = [reply(wait_s=0.3)]
    assert ask_at_once(model(scripted.url, other.url), 8) == ["Paris"] * 8
    assert (len(scripted.requests), len(other.requests)) == (4, 4)


@pytest.mark.parametrize("order", [0, 1])
def test_one_that_is_dead_costs_no_answer_and_is_asked_no_more_for_a_while(
    scripted: ScriptedServer, order: int, caplog: pytest.LogCaptureFixture
) -> None:
    lm = model(*[(DOWN, scripted.url), (scripted.url, DOWN)][order])
    assert ask_at_once(lm, 6) == ["Paris"] * 6
    assert [ask(lm, f"Who is {number}?") for number in range(3)] == ["Paris"] * 3
    assert len(scripted.requests) == 9
    warnings = [record for record in caplog.records if record.levelname == "WARNING"]
    assert len(warnings) == 1
    assert all(f"{DOWN} does not answer" in record.getMessage() for record in warnings)


def test_where_none_answers_the_error_names_them_all(quick: Backoff) -> None:
    lm = make_lm(RoleSettings(model="hosted_vllm/m", api_base=f"{DOWN},{DOWN}/2"), backoff=quick)
    lm.engine.ledger.health.limit = 1
    with pytest.raises(ServerDownError, match=f"No answer from {DOWN} and {DOWN}/2"):
        ask(lm)


def test_a_refusal_is_an_answer_which_no_other_server_is_asked_for(
    scripted: ScriptedServer, other: ScriptedServer, reply: type[Reply]
) -> None:
    scripted.replies = [reply("temperature must be a number", 400)]
    with pytest.raises(LMInvalidRequestError):
        ask(model(scripted.url, other.url))
    assert (len(scripted.requests), len(other.requests)) == (1, 0)


def test_a_busy_server_is_asked_again_by_its_own_word(
    scripted: ScriptedServer, other: ScriptedServer, reply: type[Reply]
) -> None:
    scripted.replies = [reply("busy", 429), reply()]
    assert ask(model(scripted.url, other.url, retries=1)) == "Paris"


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


class Answering:
    """Answers with its name where it is up."""

    def __init__(self, name: str) -> None:
        self.name, self.is_up, self.n_asked = name, True, 0

    async def complete(self, request: Any) -> str:
        self.n_asked += 1
        if not self.is_up:
            raise TransportError("refused")
        return self.name


def test_a_server_that_does_not_answer_rests_and_is_then_asked_again(caplog: pytest.LogCaptureFixture) -> None:
    clock, first, second = Clock(), Answering("a"), Answering("b")
    servers = SeveralServers([("a", first), ("b", second)], clock)

    def asked() -> Any:
        return asyncio.run(servers.complete(None))  # type: ignore[arg-type]

    assert asked() == "a"
    first.is_up = False
    assert [asked(), asked()] == ["b", "b"]
    assert first.n_asked == 2
    clock.now += REST_S
    assert asked() == "b"
    assert first.n_asked == 3
    first.is_up = True
    clock.now += REST_S
    assert [asked(), asked()] == ["a", "a"]
    assert [record.getMessage().split(";")[0] for record in caplog.records] == ["a does not answer"]


def test_after_a_rest_one_call_is_let_through_to_see() -> None:
    clock = Clock()
    servers = SeveralServers([("a", None), ("b", None)], clock)
    servers._rests_until["a"] = clock.now
    assert [servers._least_busy(["a", "b"]) for _ in range(3)] == ["a", "b", "b"]


def test_servers_that_rest_are_asked_where_there_is_no_other() -> None:
    first, second = Answering("a"), Answering("b")
    servers = SeveralServers([("a", first), ("b", second)])
    first.is_up = second.is_up = False
    for _ in range(2):
        with pytest.raises(TransportError):
            asyncio.run(servers.complete(None))  # type: ignore[arg-type]
    assert (first.n_asked, second.n_asked) == (2, 2)


def test_settings_take_one_address_or_several_with_commas_between(tmp_path: Path) -> None:
    def addresses(written: str) -> tuple[str, ...]:
        (tmp_path / "kraq.toml").write_text(f'[roles.default]\nmodel = "hosted_vllm/m"\napi_base = {written}\n')
        return read_settings(tmp_path / "kraq.toml").role("answerer").addresses

    assert addresses('"http://a/v1"') == ("http://a/v1",)
    assert addresses('"http://a/v1, http://b/v1"') == ("http://a/v1", "http://b/v1")
    for wrong in ("7", '["http://a/v1"]'):
        with pytest.raises(ConfigError, match=r"roles\.default\.api_base"):
            addresses(wrong)


class Writing:
    """Streams `parts`; without any it is not to be reached, and with `breaks` it breaks off behind them."""

    def __init__(self, *parts: str, breaks: bool = False) -> None:
        self.parts, self.breaks = parts, breaks

    async def stream(self, request: Any) -> AsyncIterator[str]:
        for part in self.parts:
            yield part
        if self.breaks or not self.parts:
            raise TransportError("refused")

    async def complete(self, request: Any) -> str:
        if not self.parts:
            raise TransportError("refused")
        return "".join(self.parts)


def streamed(*writing: tuple[str, ...], breaks: bool = False, is_async: bool = False) -> list[str]:
    servers = SeveralServers([(str(p), Writing(*p, breaks=breaks)) for p in writing])
    if not is_async:
        return list(FromThreads(servers).stream(None))  # type: ignore[arg-type]

    async def parts() -> list[str]:
        return [part async for part in servers.stream(None)]  # type: ignore[arg-type]

    return asyncio.run(parts())


@pytest.mark.parametrize("is_async", [False, True])
def test_a_stream_comes_from_a_server_that_answers_and_is_not_begun_anew_once_it_broke_off(is_async: bool) -> None:
    assert streamed((), ("The", " Rhine"), is_async=is_async) == ["The", " Rhine"]
    with pytest.raises(TransportError):
        streamed(("The",), ("A", " river"), breaks=True, is_async=is_async)
