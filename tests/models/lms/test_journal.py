"""The item at work follows the code."""

import asyncio

from kraq_dspy.models.lms.meter import current_item, working_on


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
