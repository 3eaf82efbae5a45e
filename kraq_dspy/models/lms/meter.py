"""Counts calls and tokens by stage and model, and stops a run at its limits. It names the item at
work, whose journal keeps the replies, so that you pay for no call twice.

A stage sets the item before it runs a program on it; every engine below looks here. An answer is written down as it
arrives, so an item that was interrupted between two calls starts with the first answer in hand.
"""

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Protocol

from kraq_dspy._internal.concurrency import SharedByCopies
from kraq_dspy.errors import BudgetExceededError, ConfigError, counted
from kraq_dspy.models.lms.local_models import with_adapter
from kraq_dspy.records import Usage
from kraq_dspy.settings import Settings


@dataclass(frozen=True, slots=True)
class Price:
    """Money for a million tokens, in the currency of `Limits.max_cost`.

    Args:
        prompt: the price of a million prompt tokens.
        completion: the price of a million reply tokens.

    >>> Price(0.15, 0.60).of(Usage(calls=1, prompt_tokens=1_000_000))
    0.15
    """

    prompt: float
    completion: float

    def of(self, usage: Usage) -> float:
        return (usage.prompt_tokens * self.prompt + usage.completion_tokens * self.completion) / 1e6


@dataclass(frozen=True, slots=True)
class Limits:
    """The most that a run may spend; None is no limit.

        build_index("poets/", "poets.kraq", limits=Limits(max_calls=500))

    Args:
        max_calls: the most calls.
        max_tokens: the most tokens of all calls together.
        max_cost: the most money. Every model except the embedded one then needs a price.
        prices: prices by model name.
        calls_option: what messages call `max_calls`.
    """

    max_calls: int | None = None
    max_tokens: int | None = None
    max_cost: float | None = None
    prices: Mapping[str, Price] = field(default_factory=dict)
    calls_option: str = "max_calls"  # what raises the limit on calls, for messages


def prices_of(settings: Settings) -> dict[str, Price]:
    """The prices by model name, of all roles that say what theirs costs, and of models at their
    providers that DSPy knows.

    A price that is left out is 0.
    """
    prices = {}
    for role in settings.roles.values():
        price = listed_price(role.model) if role.api_base is None else None
        if role.prompt_price is not None or role.completion_price is not None:
            price = Price(role.prompt_price or 0.0, role.completion_price or 0.0)
        if price is not None:
            prices[with_adapter(role).model] = price
    return prices


def listed_price(model: str) -> Price | None:
    """Return what DSPy's table of models says that a model costs at its provider; in US dollars.

    >>> listed_price("openai/gpt-4o-mini")
    Price(prompt=0.15, completion=0.6)
    """
    from kraq_dspy._internal.dspy_internals import model_info  # with DSPy, for which the command line need not wait

    provider, _, name = model.partition("/")
    info = model_info(provider, name) if name else {}
    if "input_cost_per_token" not in info:
        return None
    return Price(1e6 * info["input_cost_per_token"], 1e6 * info.get("output_cost_per_token", 0.0))


@dataclass(slots=True)
class Call:
    """A call in flight; `usage` is what it cost once it is answered."""

    usage: Usage | None = None


FREE = Price(0.0, 0.0)


class Meter(SharedByCopies):
    """Counts answered calls and their tokens. It counts replayed answers separately. Safe for threads.

    Before each call, the meter estimates the tokens of the call: the tokens of the prompt, and the mean of earlier
    replies. The meter refuses the call if the run, with all calls in flight, would exceed a limit. A run can exceed a
    limit on tokens or cost only if the estimates are too low.

    >>> meter = Meter(Limits(max_calls=1))
    >>> with meter.call("extract", "embedded", prompt_tokens=200) as call:
    ...     call.usage = Usage(1, 210, 40)
    >>> meter.total().prompt_tokens
    210
    """

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self.replays = 0
        self.retries = 0
        self._usage: dict[tuple[str, str], Usage] = {}
        self._in_flight = Usage()
        self._in_flight_cost = 0.0
        self._lock = threading.Lock()

    def usage(self) -> dict[tuple[str, str], Usage]:
        """The usage by (stage, model); the stage is "" outside of a build."""
        with self._lock:
            return dict(self._usage)

    def total(self) -> Usage:
        with self._lock:
            return self._total()

    def cost(self) -> float:
        """The cost of all models that have a price."""
        with self._lock:
            return self._cost()

    def count_replay(self) -> None:
        with self._lock:
            self.replays += 1

    def count_retry(self) -> None:
        with self._lock:
            self.retries += 1

    def require_prices(self, models: Iterable[str]) -> None:
        """Raises ConfigError if money is limited and one of the models has no price, so that each call would fail."""
        for model in models:
            self._price(model)

    @contextmanager
    def call(self, stage: str, model: str, prompt_tokens: int) -> Iterator[Call]:
        """Raises BudgetExceededError instead of letting the call begin. A call that ends without `usage` is free."""
        expected, cost = self._admit(model, prompt_tokens)
        call = Call()
        try:
            yield call
        finally:
            with self._lock:
                self._in_flight += Usage(-1, -expected.prompt_tokens, -expected.completion_tokens)
                self._in_flight_cost -= cost
                if call.usage is not None:
                    self._usage[stage, model] = self._usage.get((stage, model), Usage()) + call.usage

    def _admit(self, model: str, prompt_tokens: int) -> tuple[Usage, float]:
        limits = self.limits
        with self._lock:
            usage, spent = self._total(), self._cost()
            expected = Usage(1, prompt_tokens, usage.completion_tokens // usage.calls if usage.calls else 0)
            after = usage + self._in_flight + expected
            if limits.max_calls is not None and after.calls > limits.max_calls:
                raise BudgetExceededError(
                    _stopped(counted(usage.calls, "call"), f"{limits.calls_option} = {limits.max_calls}")
                )

            tokens = after.prompt_tokens + after.completion_tokens
            if limits.max_tokens is not None and tokens > limits.max_tokens:
                used = counted(usage.prompt_tokens + usage.completion_tokens, "token")
                raise BudgetExceededError(_stopped(used, f"max_tokens = {limits.max_tokens}"))

            cost = self._price(model).of(expected)
            if limits.max_cost is not None and spent + self._in_flight_cost + cost > limits.max_cost:
                raise BudgetExceededError(_stopped(f"a cost of {spent:.4f}", f"max_cost = {limits.max_cost}"))
            self._in_flight += expected
            self._in_flight_cost += cost
            return expected, cost

    def _total(self) -> Usage:
        return sum(self._usage.values(), Usage())

    def _cost(self) -> float:
        return sum(self.limits.prices.get(model, FREE).of(usage) for (_, model), usage in self._usage.items())

    def _price(self, model: str) -> Price:
        if model in self.limits.prices or model == "embedded":
            return self.limits.prices.get(model, FREE)
        if self.limits.max_cost is not None:
            known = ", ".join(sorted(self.limits.prices)) or "none"
            raise ConfigError(
                f"max_cost is set, but the model {model!r} has no price (prices given: {known}). Give its role "
                "prompt_price and completion_price in kraq.toml, in money for a million tokens."
            )
        return FREE


def _stopped(used: str, limit: str) -> str:
    return (
        f"Stopped after {used}: the next call would exceed {limit}. kraq keeps what you paid for; "
        "raise the limit to resume."
    )


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
        """Tell how many times this request was made before, counting it from now on."""
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
