"""Tests the order in which communities are summarised."""

import asyncio
from collections.abc import AsyncIterator, Iterable

import dspy

from kraq_dspy.asset.graph.build import Graph
from kraq_dspy.programs import KRAQ
from kraq_dspy.records import Community, Entity, Relationship, Summary
from kraq_dspy.settings import Settings, SummarySettings
from kraq_dspy.steps.direct import Done, Items, when_ended


def community(id: str, level: int, entities: list[str], children: tuple[str, ...] = ()) -> Community:
    return Community(id, level, None, children, tuple(entities), (f"{entities[0]}{entities[1]}",), ("chunk",))


ENTITIES = [
    Entity(name, name.title(), "", " ".join(f"{name}{number}" for number in range(12)), (name,), ("chunk",))
    for name in "abcdefgh"
]
LINKS = [Relationship(a + b, a, b, "met", "", 1.0, ("chunk",)) for a, b in ("ab", "cd", "ef")]
TREE = [
    community("top", 0, list("abcdefgh"), ("left", "right")),
    community("left", 1, list("abcd"), ("far left", "near left")),
    community("right", 1, list("efgh")),
    community("far left", 2, list("ab")),
    community("near left", 2, list("cd")),
]


class OneAtATime:
    """Summarises what it draws, one after the other; `failing` communities never get a summary."""

    def __init__(self, failing: str = "") -> None:
        self.drawn: list[str] = []
        self.failing = failing
        self.elements: dict[str, list[str]] = {}

    async def map(
        self, stage: str, role: str, program: dspy.Module, items: Items, *, total: int | None = None
    ) -> AsyncIterator[Done]:
        assert isinstance(items, Iterable)
        for item in items:
            self.drawn.append(item.id)
            self.elements[item.id] = item.inputs["elements"]
            if item.id != self.failing:
                yield Done(item.id, dspy.Prediction(title=item.id.title(), summary="A place.", findings=[]), "m")
            when_ended(items)(item)

    def model(self, role: str, program: dspy.Module) -> str:
        return "m"


def summarised(steps: OneAtATime) -> list[Summary]:
    async def run() -> list[Summary]:
        kraq = KRAQ(Settings(summaries=SummarySettings(input_tokens=100)))
        return [summary async for summary in kraq.summaries(TREE, Graph(tuple(ENTITIES), tuple(LINKS)), steps)]

    return asyncio.run(run())


def test_the_deepest_go_first_and_a_parent_as_soon_as_its_parts_are_there() -> None:
    steps = OneAtATime()

    assert len(summarised(steps)) == 5
    assert steps.drawn == ["far left", "near left", "right", "left", "top"]
    assert "Far Left: A place." in steps.elements["left"]


def test_a_part_that_failed_holds_nobody_up_and_is_shown_by_its_elements() -> None:
    steps = OneAtATime(failing="far left")

    assert {summary.community_id for summary in summarised(steps)} == {"top", "left", "right", "near left"}
    assert not any(line.startswith("Far Left") for line in steps.elements["left"])
