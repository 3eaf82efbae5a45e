"""Python's collector while many records are made."""

import gc
from collections.abc import Iterator

import pytest

from kraq_dspy.asset.graph.communities import find_communities
from kraq_dspy.asset.graph.numbered_graph import collector_paused
from kraq_dspy.records import Entity
from kraq_dspy.settings import CommunitySettings


@pytest.fixture(autouse=True)
def on_again() -> Iterator[None]:
    yield
    gc.enable()


def test_pauses_may_lie_in_each_other_and_an_error_ends_them() -> None:
    with collector_paused():
        with pytest.raises(ValueError, match="broken"), collector_paused():
            raise ValueError("broken")
        assert not gc.isenabled()
    assert gc.isenabled()


def test_what_was_off_before_stays_off() -> None:
    gc.disable()
    with collector_paused():
        pass
    assert not gc.isenabled()


def test_the_graph_is_parted_without_the_collector() -> None:
    seen: list[bool] = []

    class Seen(list[Entity]):
        def __iter__(self) -> Iterator[Entity]:
            seen.append(gc.isenabled())
            return super().__iter__()

    find_communities(Seen([Entity("a", "A", "", "", ("A",), (), 0)]), [], CommunitySettings())
    assert set(seen) == {False}
    assert gc.isenabled()
