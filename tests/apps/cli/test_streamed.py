"""`kraq ask` in a terminal shows the answer while it is written; elsewhere, and where nobody wants that, it waits."""

import io
from collections.abc import Iterator
from typing import Any

import dspy
import pytest
from dspy.streaming import StatusMessage, StreamResponse
from rich.console import Console

from kraq_dspy.apps.cli import ask as asking

PREDICTION = dspy.Prediction(answer="The North Sea.")


class Space:
    """Answers in two pieces, and notes how it was asked."""

    def __init__(self) -> None:
        self.ways: list[str] = []

    def ask(self, program: object, question: str, history: object, refuse: bool, anyway: bool) -> dspy.Prediction:
        self.ways.append("ask")
        return PREDICTION

    def stream(self, program: object, question: str, history: object, refuse: bool, anyway: bool) -> Iterator[Any]:
        self.ways.append("stream")
        yield StatusMessage("answering")
        yield StreamResponse("answer", "answer", "The North", False)
        yield StreamResponse("answer", "answer", " Sea.", True)
        yield PREDICTION


@pytest.mark.parametrize(
    ("terminal", "stream", "way"), [(True, True, "stream"), (True, False, "ask"), (False, True, "ask")]
)
def test_only_a_terminal_sees_the_answer_grow(
    monkeypatch: pytest.MonkeyPatch, terminal: bool, stream: bool, way: str
) -> None:
    screen = Console(file=io.StringIO(), force_terminal=terminal, width=60)
    monkeypatch.setattr(asking, "output", screen)
    space: Any = Space()
    program: Any = None
    assert asking.asked(space, program, "Where?", stream=stream) is PREDICTION
    assert space.ways == [way]
    file: Any = screen.file
    assert ("The North Sea." in file.getvalue()) == (way == "stream")
    assert ("answering ..." in file.getvalue()) == (way == "stream")
