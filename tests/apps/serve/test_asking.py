"""Tests questions under way: how many at once, clients that leave, and errors without this machine's paths."""

import asyncio
import json
import logging
import re
import resource
import time
from collections.abc import AsyncGenerator, Callable, Iterator, MutableMapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import anyio
import pytest
from dspy import BaseLM
from dspy.utils import DummyLM
from stand_in import stand_in
from starlette.testclient import TestClient
from starlette.types import ASGIApp

from kraq_dspy import make_lm
from kraq_dspy.apps.serve.app import make_app
from kraq_dspy.apps.serve.asking import AnswerSlots, sent
from kraq_dspy.apps.serve.atlas import Atlas
from kraq_dspy.apps.serve.refusals import RequestError
from kraq_dspy.apps.serve.serve_settings import ServeSettings
from kraq_dspy.apps.serve.served import served
from kraq_dspy.errors import ConfigError, ModelError
from kraq_dspy.settings import RoleSettings, Settings
from kraq_dspy.workspace import Workspace
from tests.apps.serve.conftest import EMBEDDER, open_all
from tests.models.lms.test_limited_transport import Write, bomb, endless, server

SECRET = "sk-0123456789abcdef"


class HeldLM(DummyLM):
    """Answers nobody; says that it was asked and that the call was cancelled."""

    def __init__(self) -> None:
        super().__init__([{"answer": "never"}])
        self.was_asked = asyncio.Event()
        self.cancelled = False

    async def acall(self, *args: Any, **kwargs: Any) -> None:
        self.was_asked.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled = True
            raise


class FailingLM(DummyLM):
    def __init__(self, error: Exception) -> None:
        super().__init__([{"answer": "never"}])
        self.error = error

    async def acall(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise self.error


@contextmanager
def application(poets: Path, lm: BaseLM, **settings: Any) -> Iterator[Any]:
    with open_all(poets, models={"default": lm}) as indexes:
        yield make_app(indexes, ServeSettings(**settings))


class Client:
    """One request to the application, spoken as a server does, so that it can go away in the middle."""

    def __init__(self, app: ASGIApp, body: dict[str, Any]) -> None:
        self.sent: list[Any] = []
        self.leaves = asyncio.Event()
        content = json.dumps(body).encode()
        headers = [(b"host", b"localhost"), (b"content-type", b"application/json")]
        scope = {
            "type": "http", "asgi": {"version": "3.0", "spec_version": "2.3"}, "http_version": "1.1",
            "method": "POST", "path": "/api/ask", "raw_path": b"/api/ask", "query_string": b"", "root_path": "",
            "scheme": "http", "headers": headers, "client": ("127.0.0.1", 1), "server": ("localhost", 80),
        }  # fmt: skip
        messages = [{"type": "http.request", "body": content, "more_body": False}]

        async def receive() -> dict[str, Any]:
            if messages:
                return messages.pop()
            await self.leaves.wait()
            return {"type": "http.disconnect"}

        async def send(message: MutableMapping[str, Any]) -> None:
            self.sent.append(message)

        self.done = asyncio.ensure_future(app(scope, receive, send))

    @property
    def status(self) -> int:
        return int(self.sent[0]["status"])


@pytest.mark.parametrize("stream", [True, False])
def test_a_client_that_goes_away_ends_its_answer_and_cancels_the_call(poets: Path, stream: bool) -> None:
    async def leave() -> None:
        lm = HeldLM()
        with application(poets, lm) as app:
            client = Client(app, {"question": "Who wrote Don Juan?", "program": "traditional", "stream": stream})
            await asyncio.wait_for(lm.was_asked.wait(), 60)
            client.leaves.set()
            await asyncio.wait_for(client.done, 60)
            assert lm.cancelled
            slots = api_of(app).slots
            assert (slots.in_use, slots.waiting) == (0, 0)
            others = asyncio.all_tasks() - {asyncio.current_task()}
            assert [each for each in others if "sse_starlette" not in repr(each)] == []

    asyncio.run(leave())


@pytest.mark.parametrize("stream", [True, False])
def test_a_question_too_many_is_refused_with_the_time_to_come_again(poets: Path, stream: bool) -> None:
    async def crowd() -> None:
        lm = HeldLM()
        with application(poets, lm, workers=1, queue=1) as app:
            body = {"question": "Who wrote Don Juan?", "program": "traditional"}
            first = Client(app, body)
            await asyncio.wait_for(lm.was_asked.wait(), 60)
            second = Client(app, body)
            while not api_of(app).slots.waiting:
                await asyncio.sleep(0)
            third = Client(app, {**body, "stream": stream})
            await asyncio.wait_for(third.done, 60)
            assert third.status == 503
            assert (b"retry-after", b"5") in third.sent[0]["headers"]
            for client in (first, second):
                client.leaves.set()
                await asyncio.wait_for(client.done, 60)
            assert api_of(app).slots.in_use == 0

    asyncio.run(crowd())


def test_places_are_given_back_whatever_happens_in_them() -> None:
    async def fail(slots: AnswerSlots) -> None:
        async with slots.slot():
            with pytest.raises(RequestError, match="being answered"):
                slots.require_free()
            raise ValueError("torn")

    async def crowd() -> None:
        slots = AnswerSlots(1, 0)
        with pytest.raises(ValueError, match="torn"):
            await fail(slots)
        slots.require_free()

    asyncio.run(crowd())


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (ModelError(f"The key {SECRET} of http://10.0.0.7/v1 in /home/ada/kraq.toml was refused."), 502),
        (RuntimeError(f"{SECRET} at /home/ada/secret.py"), 502),  # DSPy wraps it as a failure of the call
    ],
)
def test_a_failure_tells_the_client_neither_key_nor_path_nor_traceback_and_the_log_everything(
    poets: Path, error: Exception, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    with application(poets, FailingLM(error)) as app, TestClient(app, "http://localhost") as client:
        body = {"question": "Who wrote Don Juan?", "program": "traditional"}
        with caplog.at_level(logging.ERROR, "kraq_dspy.apps.serve"):
            answers = [client.post("/api/ask", json=body), client.post("/api/ask", json={**body, "stream": True})]
    assert answers[0].status_code == status
    assert '"error"' in answers[1].text
    for answer in answers:
        for secret in (SECRET, "/home/ada", "10.0.0.7", "Traceback", str(poets)):
            assert secret not in answer.text
    assert SECRET in caplog.text


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("write", [endless, bomb])
def test_a_reply_that_never_ends_or_bursts_is_given_up(poets: Path, write: Write, stream: bool) -> None:
    body = {"question": "Who wrote Don Juan?", "program": "traditional", "stream": stream}
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with server(write) as url:
        lm = make_lm(RoleSettings("hosted_vllm/m", api_base=url, reply_mb=4, retries=0))
        with application(poets, lm) as app, TestClient(app, base_url="http://localhost") as client:
            started = time.monotonic()
            answer = client.post("/api/ask", json=body)
            assert time.monotonic() - started < 30
            assert api_of(app).slots.in_use == 0
    assert '"error"' in answer.text
    assert stream or answer.status_code == 502
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 400 << 10


def test_an_error_that_nobody_expected_is_no_traceback(poets: Path, client_of: Callable[..., TestClient]) -> None:
    client = client_of()
    api_of(client.app).served["poets"].space.index.close()
    answer = client.get("/api/search?q=byron")
    assert answer.status_code == 503
    assert str(poets) not in answer.text
    assert client.get("/health").status_code == 200


@pytest.mark.parametrize("error", [RuntimeError, ConfigError])
def test_a_fault_of_ours_is_told_to_the_log_alone(
    client_of: Callable[..., TestClient],
    error: type[Exception],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def torn(*_: Any) -> NoReturn:
        raise error(f"{SECRET} at /home/ada/secret.py")

    monkeypatch.setattr(Atlas, "questions", property(torn))
    with caplog.at_level(logging.ERROR, "kraq_dspy.apps.serve"):
        answer = client_of().get("/api/questions")
    assert (answer.status_code, answer.json()["error"]["code"]) == (500, "internal")
    assert "ada" not in answer.text
    assert SECRET not in answer.text
    assert SECRET in caplog.text


@pytest.fixture
def written(poets: Path) -> Iterator[TestClient]:
    """A client of an application whose model writes its answers piece by piece."""
    with stand_in() as model, ExitStack() as stack:
        settings = Settings(roles={"default": RoleSettings(model="hosted_vllm/stand-in", api_base=model.url)})
        opened = partial(Workspace.open, embedder=EMBEDDER, settings=settings)
        indexes = stack.enter_context(served([poets], opened))
        yield stack.enter_context(TestClient(make_app(indexes, ServeSettings()), "http://localhost"))


def test_an_answer_that_was_prepared_comes_at_once_where_no_program_is_chosen(client: TestClient) -> None:
    question = {"question": "where did Byron live"}
    answer = client.post("/api/ask", json=question).json()
    assert (answer["answer"], [hit["document_id"] for hit in answer["hits"]]) == ("In London.", ["byron"])
    streamed = client.post("/api/ask", json={**question, "stream": True}).text
    assert streamed.count("event: ") == 1
    assert "In London." in streamed
    chosen = client.post("/api/ask", json={**question, "program": "combined"}).json()
    assert "prepared in the FAQ cache: entry 3" in answer["notes"]
    assert "auxiliary_questions" in chosen["details"]


def test_text_comes_piece_by_piece_between_the_stages_and_the_answer(written: TestClient) -> None:
    body = {"question": "Who wrote Don Juan?", "program": "traditional", "stream": True}
    events = re.findall(r"event: (\w+)\ndata: (.*)\n\n", written.post("/api/ask", json=body).text)
    names = [name for name, _ in events]
    pieces = [json.loads(data)["text"] for name, data in events if name == "text"]
    assert len(pieces) > 1
    assert names == ["stage", "stage", *["text"] * len(pieces), "answer"]
    assert "".join(pieces).strip() == json.loads(events[-1][1])["answer"]


def test_a_stream_that_two_tasks_read_opens_and_closes_its_cancel_scopes_in_one() -> None:
    async def events() -> AsyncGenerator[tuple[str, dict[str, Any]], None]:
        with anyio.CancelScope():  # as DSPy's streams do
            yield "stage", {"stage": "retrieve"}
            yield "error", {"error": {"code": "busy"}}

    async def read() -> list[str | None]:
        stream = sent(events())

        async def first() -> Any:
            return (await anext(stream)).event

        return [await asyncio.create_task(first()), *[event.event async for event in stream]]

    assert asyncio.run(read()) == ["stage", "error"]


def api_of(app: Any) -> Any:
    """The `Api` behind an application, for what it counts."""
    return app.app.app.state.api
