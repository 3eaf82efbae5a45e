"""Watches every request from its beginning to its end, and hands what became known of it to those who note it."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kraq_dspy.records import Usage
from kraq_dspy.workspace.newest_state import UNDER_WAY


@dataclass(slots=True)
class RequestRecord:
    """What is noted of a request, as it becomes known.

    `address` is the pattern of the path, "/api/entities/{id}". `cache` says that no model was asked for the answer.
    Neither the question nor the answer is here.
    """

    method: str
    path: str
    address: str = ""
    who: str = ""
    status: int = 0
    index: str = ""
    program: str = ""
    answered: bool = False
    cache: bool = False
    usage: Usage = field(default_factory=Usage)
    cost: float = 0.0


RECORD = "kraq_dspy.request_record"
"""The key of a request's record in its ASGI scope, which every layer of the application is handed."""


def record_of(scope: Scope) -> RequestRecord:
    """Return the record of the request that `scope` describes, which a `Watch` around the application began."""
    record: RequestRecord = scope[RECORD]
    return record


Note: TypeAlias = Callable[[RequestRecord, float], None]
"""Notes a request that has ended, with its seconds."""


class Watch:
    """The application, with every request noted at its end: refused ones, failed ones and streams too. Those under way
    are counted, so that a former state is left when none reads it."""

    def __init__(self, app: ASGIApp, notes: Sequence[Note]) -> None:
        self.app = app
        self._notes = notes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        record, started = RequestRecord(scope["method"], scope["path"]), time.perf_counter()

        async def noted(message: Message) -> None:
            if message["type"] == "http.response.start":
                record.status = message["status"]
            await send(message)

        try:
            with UNDER_WAY.one():
                await self.app({**scope, RECORD: record}, receive, noted)
        finally:
            for note in self._notes:
                note(record, time.perf_counter() - started)
