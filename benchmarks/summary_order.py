"""Compares how long summaries take when a parent waits for its own parts alone, and when it waits for the whole level.

    python benchmarks/summary_order.py corpus.kraq [--slots 32] [--runs 20]

A calculation, not a run: the communities are those of the index, the calls are made up, and time is counted, so that
neither the machine nor a server is measured. A call takes a second. With faults an attempt fails as in
`benchmarks/faults.py`: 15 % fail at once and are made again a second later, 7 % cannot be used, 3 % hang for five
seconds. The limit is the sum of all attempts over the slots; a call that waits to be made again holds none.
"""

import argparse
import heapq
import random
import statistics
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from kraq_dspy.records import Community
from kraq_dspy.steps.direct import Item
from kraq_dspy.steps.ordered import OrderedItems
from kraq_dspy.stores.index import Index

CALL_S, WAIT_S, PATIENCE_S = 1.0, 1.0, 5.0
REFUSED, UNREADABLE, HANGS = 0.15, 0.07, 0.03


def attempts(chance: random.Random, *, faults: bool) -> list[tuple[float, float]]:
    """Of one call: how long each attempt holds a slot, and the wait after it."""
    tried = []
    while faults and (draw := chance.random()) < REFUSED + UNREADABLE + HANGS:
        if draw < REFUSED:
            tried.append((0.0, WAIT_S))
        elif draw < REFUSED + UNREADABLE:
            tried.append((CALL_S, 0.0))
        else:
            tried.append((PATIENCE_S, WAIT_S))
    return [*tried, (CALL_S, 0.0)]


def seconds(items: OrderedItems, slots: int, calls: dict[str, list[tuple[float, float]]]) -> float:
    """From the first call to the end of the last."""
    now, free = 0.0, slots
    waiting: list[tuple[str, int]] = []  # calls that may be made: (id, attempt)
    # (when, 0 a slot becomes free or 1 a wait is over, id, next attempt)
    events: list[tuple[float, int, str, int]] = []
    while True:
        waiting += [(item.id, 0) for item in items]
        while free and waiting:
            id, attempt = waiting.pop(0)
            free -= 1
            heapq.heappush(events, (now + calls[id][attempt][0], 0, id, attempt + 1))
        if not events:
            return now
        now, kind, id, attempt = heapq.heappop(events)
        if kind:
            waiting.insert(0, (id, attempt))
            continue
        free += 1
        if attempt == len(calls[id]):
            items.ended(Item(id, {}))
        else:
            heapq.heappush(events, (now + calls[id][attempt - 1][1], 1, id, attempt))


def by_level(communities: Sequence[Community]) -> dict[str, Iterable[str]]:
    """As it was before: leaves first, then the parents of each level once all that are deeper are done."""
    parents = [community for community in communities if community.child_ids]
    rounds = [[c.id for c in communities if not c.child_ids]]
    rounds += [
        [c.id for c in parents if c.level == level] for level in sorted({c.level for c in parents}, reverse=True)
    ]
    before: list[str] = []
    after: dict[str, Iterable[str]] = {}
    for here in filter(None, rounds):
        after |= dict.fromkeys(here, tuple(before))
        before = here
    return after


def by_parts(communities: Sequence[Community]) -> dict[str, Iterable[str]]:
    return {c.id: c.child_ids for c in sorted(communities, key=lambda community: -community.level)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("index", type=Path)
    parser.add_argument("--slots", type=int, default=32)
    parser.add_argument("--runs", type=int, default=20)
    options = parser.parse_args()
    with Index.open(options.index) as index:
        communities = [community for community in index.all(Community) if len(community.entity_ids) > 1]
    print(f"{len(communities):,} communities, {options.slots} slots; wall over the limit, mean of {options.runs}")
    orders: dict[str, Callable[[Sequence[Community]], dict[str, Iterable[str]]]] = {
        "level": by_level,
        "parts": by_parts,
    }
    for faults in (False, True):
        ratios: dict[str, list[float]] = {name: [] for name in orders}
        for seed in range(options.runs):
            chance = random.Random(seed)
            calls = {community.id: attempts(chance, faults=faults) for community in communities}
            limit = sum(held for made in calls.values() for held, _ in made) / options.slots
            for name, order in orders.items():
                after = {id: tuple(before) for id, before in order(communities).items()}
                items = OrderedItems(after, lambda id: Item(id, {}))
                ratios[name].append(seconds(items, options.slots, calls) / limit)
        shown = ", ".join(f"waits for its {name} {statistics.mean(values):.2f}" for name, values in ratios.items())
        print(f"{'with' if faults else 'without'} faults: {shown}")


if __name__ == "__main__":
    main()
