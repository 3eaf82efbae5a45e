"""DSPy's own callbacks see every call of a build and of a question, and a callback that fails costs nothing."""

from pathlib import Path
from typing import Any

import dspy
from dspy.utils.callback import BaseCallback

from kraq_dspy import build_index
from kraq_dspy.records import Document
from kraq_dspy.workspace import Workspace

DOCUMENTS = [Document("a", "Ada", "Ada Lovelace met Charles Babbage in London. Charles Babbage lived in London.")]


class Watcher(BaseCallback):
    """Counts what begins and what ends."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.ended = 0
        self.models: list[str] = []

    def on_module_start(self, call_id: str, instance: dspy.Module, inputs: dict[str, Any]) -> None:
        self.begun.append(type(instance).__name__)

    def on_lm_start(self, call_id: str, instance: dspy.BaseLM, inputs: dict[str, Any]) -> None:
        self.models.append(instance.model)

    def on_lm_end(self, call_id: str, outputs: object, exception: Exception | None = None) -> None:
        self.ended += 1


class Broken(BaseCallback):
    def on_lm_start(self, call_id: str, instance: dspy.BaseLM, inputs: dict[str, Any]) -> None:
        raise RuntimeError("broken callback")


def test_callbacks_see_the_programs_and_calls_of_a_build_and_of_a_question(tmp_path: Path) -> None:
    watcher = Watcher()
    with dspy.context(callbacks=[watcher]):
        report = build_index(DOCUMENTS, tmp_path / "x.kraq")
        calls = sum(usage.calls for usage in report.usage.values())
        assert len(watcher.models) == watcher.ended == calls > 0
        assert {"ExtractGraph", "DescribeCommunity"} <= set(watcher.begun)
        with Workspace.open(tmp_path / "x.kraq") as space:
            space.ask("Who lived in London?", space.program("combined"))
    assert watcher.ended == calls + 1
    assert "CombinedRetrieveRAG" in watcher.begun


def test_a_callback_that_fails_does_not_fail_the_build(tmp_path: Path) -> None:
    with dspy.context(callbacks=[Broken()]):
        assert build_index(DOCUMENTS, tmp_path / "x.kraq").failures == ()
