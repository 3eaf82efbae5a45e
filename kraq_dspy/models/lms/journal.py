"""Names the item at work, and defines the journal that keeps its answers so that no call is paid twice.

A stage sets the item before it runs a program on it; every engine below looks here. An answer is written down as it
arrives, so an item that was interrupted between two calls starts with the first answer in hand.
"""

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Protocol

from kraq_dspy.records import Usage


class Journal(Protocol):
    """Keeps the answers of unfinished items; `kraq_dspy.asset.store.results.ResultStore` is one. Safe for threads."""

    def recall(self, stage: str, item_id: str, request_hash: str) -> str | None:
        """The response as JSON, or None."""

    def remember(
        self, stage: str, item_id: str, request_hash: str, response_json: str, *, model: str, usage: Usage
    ) -> None: ...


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer of a model, as a journal is told of it."""

    stage: str
    item_id: str
    request_hash: str
    response_json: str
    model: str
    usage: Usage


class TappedJournal:
    """Hands every answer that comes to `tap`; `journal` keeps and recalls answers, without one nothing does."""

    def __init__(self, tap: Callable[[Answer], None], journal: Journal | None = None) -> None:
        self._tap = tap
        self._journal = journal

    def recall(self, stage: str, item_id: str, request_hash: str) -> str | None:
        return None if self._journal is None else self._journal.recall(stage, item_id, request_hash)

    def remember(
        self, stage: str, item_id: str, request_hash: str, response_json: str, *, model: str, usage: Usage
    ) -> None:
        if self._journal is not None:
            self._journal.remember(stage, item_id, request_hash, response_json, model=model, usage=usage)
        self._tap(Answer(stage, item_id, request_hash, response_json, model, usage))


Place = Callable[[], AbstractAsyncContextManager[None]]


@dataclass(frozen=True, slots=True)
class Item:
    """What a stage works on. Without a journal, it still says which stage the usage belongs to.

    An engine makes each call in a new `place`, and is outside of any while it waits to ask again; a stage bounds the
    calls in flight by it.

    `turn` counts equal requests within the item: the second of two equal requests (a resample, `n=2`) is another
    answer, and a resumed item gets both back in their order.
    """

    stage: str
    item_id: str
    journal: Journal | None = None
    place: Place = nullcontext
    _turns: Counter[str] = field(default_factory=Counter, compare=False, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, compare=False, repr=False)

    def turn(self, request_hash: str) -> int:
        """How many times this request was made before, counting it from now on."""
        with self._lock:
            self._turns[request_hash] += 1
            return self._turns[request_hash] - 1


current_item: ContextVar[Item | None] = ContextVar("kraq_dspy_current_item", default=None)
"""Follows the code into tasks and `asyncio.to_thread`; a raw thread pool needs `contextvars.copy_context().run`."""


@contextmanager
def working_on(stage: str, item_id: str, journal: Journal | None = None, place: Place | None = None) -> Iterator[Item]:
    """Model calls inside belong to this item; without a `place`, they are made in that of the item around it."""
    around = current_item.get()
    item = Item(stage, item_id, journal, place or (around.place if around else nullcontext))
    token = current_item.set(item)
    try:
        yield item
    finally:
        current_item.reset(token)
