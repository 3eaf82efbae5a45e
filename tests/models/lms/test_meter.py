"""Tests the counts and the limits of model calls, without a model."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from kraq_dspy import Limits
from kraq_dspy.errors import BudgetExceededError, ConfigError
from kraq_dspy.extend import Meter, Price
from kraq_dspy.models.lms.meter import current_item, listed_price, prices_of, working_on
from kraq_dspy.records import Usage
from kraq_dspy.settings import RoleSettings, Settings


def spend(meter: Meter, prompt: int = 100, completion: int = 20, model: str = "m", stage: str = "s") -> None:
    with meter.call(stage, model, prompt) as call:
        call.usage = Usage(1, prompt, completion)


def test_usage_adds_up_by_stage_and_model() -> None:
    meter = Meter()
    spend(meter)
    spend(meter)
    spend(meter, stage="other")
    assert meter.usage() == {("s", "m"): Usage(2, 200, 40), ("other", "m"): Usage(1, 100, 20)}
    assert meter.total() == Usage(3, 300, 60)


def test_a_call_that_failed_costs_nothing() -> None:
    meter = Meter(Limits(max_calls=1))
    with pytest.raises(OSError, match="lost"), meter.call("s", "m", 5):
        raise OSError("lost")
    spend(meter)
    assert meter.total().calls == 1


def test_tokens_stop_before_the_call_that_is_expected_to_exceed_them() -> None:
    meter = Meter(Limits(max_tokens=300))
    spend(meter)  # 120 of 300
    spend(meter)  # 240; the next is expected to make 360
    with pytest.raises(BudgetExceededError, match=r"240 tokens.*max_tokens = 300"):
        spend(meter)


def test_cost_counts_prompt_and_completion_at_their_prices() -> None:
    meter = Meter(Limits(max_cost=0.5, prices={"m": Price(prompt=1000, completion=5000)}))
    spend(meter)
    assert meter.cost() == pytest.approx(0.2)  # 100 * 0.001 + 20 * 0.005
    spend(meter)
    with pytest.raises(BudgetExceededError, match=r"max_cost = 0\.5"):
        spend(meter)


def test_a_limit_on_cost_wants_a_price_of_every_model_that_costs() -> None:
    meter = Meter(Limits(max_cost=1, prices={"m": Price(1, 1)}))
    spend(meter, model="embedded")
    with pytest.raises(ConfigError, match="'other' has no price"):
        spend(meter, model="other")


def test_threads_do_not_lose_counts() -> None:
    meter = Meter()
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda _: spend(meter), range(800)))
    assert meter.total() == Usage(800, 80_000, 16_000)


def test_what_a_provider_asks_is_known_and_a_server_of_ones_own_is_not_charged_for() -> None:
    known = RoleSettings("openai/gpt-4o-mini")
    assert prices_of(Settings(roles={"default": known})) == {"openai/gpt-4o-mini": Price(0.15, 0.6)}
    assert prices_of(Settings(roles={"default": replace(known, prompt_price=1.0)})) == {known.model: Price(1.0, 0.0)}
    for other in (replace(known, api_base="http://localhost:8000/v1"), RoleSettings("hosted_vllm/gpt-4o-mini")):
        assert prices_of(Settings(roles={"default": other})) == {}
    assert listed_price("mistral/gpt-4o-mini") is None


def test_an_item_is_at_work_only_inside_its_block() -> None:
    assert current_item.get() is None
    with working_on("extract", "a") as outer, working_on("describe", "b") as inner:
        assert current_item.get() is inner
        assert (inner.stage, inner.item_id, outer.item_id) == ("describe", "b", "a")
    assert current_item.get() is None


def test_tasks_have_items_of_their_own_and_threads_inherit_them() -> None:
    async def work(name: str) -> str | None:
        with working_on("extract", name):
            await asyncio.sleep(0)
            item = await asyncio.to_thread(current_item.get)
            return item.item_id if item else None

    async def both() -> list[str | None]:
        return list(await asyncio.gather(work("a"), work("b")))

    assert asyncio.run(both()) == ["a", "b"]


def test_turns_count_equal_requests() -> None:
    with working_on("extract", "a") as item:
        assert [item.turn("x"), item.turn("x"), item.turn("y")] == [0, 1, 0]
    with working_on("extract", "a") as again:
        assert again.turn("x") == 0
