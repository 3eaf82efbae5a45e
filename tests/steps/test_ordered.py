"""Tests items that are made from others of their stage."""

import asyncio

from kraq_dspy.steps.bounded import bounded_map
from kraq_dspy.steps.direct import Item, OrderedItems

TREE = {"left leaf": (), "right leaf": (), "left": ("left leaf",), "right": ("right leaf",), "top": ("left", "right")}


def items_of(tree: dict[str, tuple[str, ...]]) -> OrderedItems:
    return OrderedItems(tree, lambda id: Item(id, {}))


def test_an_item_waits_for_its_own_parts_and_for_no_others() -> None:
    items = items_of(TREE)
    leaf, other = next(items), next(items)
    assert [leaf.id, other.id, *items] == ["left leaf", "right leaf"]

    items.ended(leaf)
    [left] = items
    assert left.id == "left"
    items.ended(left)
    assert [*items] == []  # the top waits for the right side

    items.ended(other)
    [right] = items
    items.ended(right)
    assert [item.id for item in items] == ["top"]


def test_of_items_that_may_go_the_first_goes_and_what_is_not_there_is_not_waited_for() -> None:
    items = items_of({"a": ("gone",), "b": (), "c": ("b", "b")})

    assert [item.id for item in items] == ["a", "b"]
    items.ended(Item("b", {}))
    assert [item.id for item in items] == ["c"]


def test_a_map_asks_for_each_when_its_parts_results_were_taken() -> None:
    taken: list[str] = []

    async def work(item: Item) -> str:
        assert set(TREE[item.id]) <= set(taken)
        await asyncio.sleep(0)
        return item.id

    async def run() -> None:
        items = items_of(TREE)
        async for result in bounded_map(work, items, 2, after_each=items.ended):
            await asyncio.sleep(0)  # others end meanwhile
            taken.append(result)

    asyncio.run(run())
    assert sorted(taken) == sorted(TREE)
