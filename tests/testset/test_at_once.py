"""Many requests for the rows of a test set are under way at once, and the set does not depend on who answers first."""

import asyncio
import random
import re
from collections import Counter
from pathlib import Path
from typing import Any

import dspy
import pytest

from kraq_dspy.eval import TestsetPlan, make_testset
from kraq_dspy.extend import LanguageModels
from kraq_dspy.ports import SilentProgress
from kraq_dspy.settings import RunSettings, Settings
from kraq_dspy.testset import making
from kraq_dspy.workspace import Workspace
from tests.mills import index_of_mills

ASKS_OF = {"link": "bridge", "shared": "list", "names": "comparison", "passages": "broad", "passage": "fact"}
"""The kind of a question, by an input that its step has and those after it have not."""


class Reader(dspy.BaseLM):
    """Asks for the years that a passage has, and agrees to all; each reply takes some time by chance."""

    def __init__(self, seed: int) -> None:
        super().__init__("reader", cache=False)
        self.delays = random.Random(seed)
        self.under_way: list[str] = []
        self.most_under_way = 0
        self.met: set[tuple[str, str]] = set()
        self.asked: list[str] = []

    async def aforward(self, prompt: str | None = None, messages: Any = None, **options: Any) -> Any:
        system, shown = (str(messages[place]["content"]) for place in (0, -1))
        kind = self._kind_of(system, shown)
        self.met |= {(kind, other) for other in self.under_way if kind != other and kind and other}

        self.asked.append(kind)
        self.under_way.append(kind)
        self.most_under_way = max(self.most_under_way, len(self.under_way))
        await asyncio.sleep(self.delays.uniform(0.001, 0.02))
        self.under_way.remove(kind)

        message = {"role": "assistant", "content": self._reply(shown)}
        return {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "model": "reader"}

    def _kind_of(self, system: str, shown: str) -> str:
        """The kind that is asked for; "" where a question is checked."""
        if "Ask one question" not in system:
            return ""
        return next(kind for name, kind in ASKS_OF.items() if f"[[ ## {name} ## ]]" in shown)

    def _reply(self, shown: str) -> str:
        mills = list(dict.fromkeys(re.findall(r"The (\w+) Mill stands", shown)))
        years = list(dict.fromkeys(re.findall(r"\b18\d\d\b", shown)))
        fields = {
            "description": "",
            "question": f"In which year was the mill of Nora {' and '.join(mills)} built?",
            "answer": years[0] if years else "",
            "items": years,
            "nuggets": [f"It was built by Nora {mill}" for mill in mills],
            "paraphrase": "",
            "stands_alone": True,
            "same": True,
            "answered": True,
        }
        written = "".join(f"[[ ## {name} ## ]]\n{value}\n\n" for name, value in fields.items())
        return written.replace("'", '"') + "[[ ## completed ## ]]"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return index_of_mills(tmp_path_factory.mktemp("index"))


@pytest.fixture(scope="module")
def readers(folder: Path) -> list[tuple[Reader, Any]]:
    made = []
    for seed in (1, 2):
        reader = Reader(seed)
        models = LanguageModels(Settings(run=RunSettings(concurrency=6)), lm=reader)
        with Workspace.open(folder, lm=models) as space:
            plan = TestsetPlan(12, {"fact": 2, "list": 1, "broad": 1, "bridge": 1})
            made.append((reader, make_testset(space, plan=plan)))
    return made


def test_kinds_are_asked_at_the_same_time_up_to_the_concurrency(readers: list[tuple[Reader, Any]]) -> None:
    reader, _ = readers[0]

    assert reader.met
    assert reader.most_under_way == 6


def test_the_set_is_the_same_whoever_answers_first(readers: list[tuple[Reader, Any]]) -> None:
    first, second = (testset for _, testset in readers)

    assert len(first) >= 4
    assert first.about() == second.about()
    assert first.rows == second.rows
    assert list(first.rejected) == list(second.rejected)


class Recorder(SilentProgress):
    """Notes what a person would see: which bars begin, and which are still open at the end."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.open: set[str] = set()
        self.done: Counter[str] = Counter()

    def start(self, stage: str, total: int | None) -> None:
        self.begun.append(stage)
        self.open.add(stage)

    def advance(self, stage: str, done: int = 1, *, prompt_tokens: int = 0, completion_tokens: int = 0) -> None:
        assert stage in self.open
        self.done[stage] += done

    def finish(self, stage: str) -> None:
        self.open.remove(stage)


class PoorAsker(Reader):
    """Asks nothing of use."""

    def _reply(self, shown: str) -> str:
        return "[[ ## question ## ]]\nA mill.\n\n[[ ## answer ## ]]\nNora\n\n[[ ## completed ## ]]"


def test_a_model_of_whose_questions_none_passes_is_not_asked_of_all_texts(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(making, "SMALLEST_BATCH", 1)
    asker = PoorAsker(1)

    with Workspace.open(folder, lm=LanguageModels(Settings(), lm=asker)) as space:
        testset = make_testset(space, plan=TestsetPlan(1, {"fact": 1}))

    assert testset.left_out == {"fact": "no question passed"}
    assert asker.asked.count("fact") == 5  # of eight: three, of which two were expected to pass, and two more


def test_a_person_sees_one_bar_for_each_step_whatever_kinds_are_asked(folder: Path) -> None:
    bars = Recorder()
    models = LanguageModels(Settings(run=RunSettings(concurrency=6)), lm=Reader(1))
    with Workspace.open(folder, lm=models) as space:
        plan = TestsetPlan(12, {"fact": 2, "list": 1, "broad": 1, "bridge": 1})
        make_testset(space, plan=plan, progress=bars)

    assert sorted(bars.begun) == ["ask", "check", "gold", "reword"]
    assert bars.open == set()
    assert bars.done["ask"] > 4


def test_hardly_more_is_asked_than_is_likely_to_be_needed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(making, "SMALLEST_BATCH", 1)  # there are but eight mills
    reader = Reader(1)
    models = LanguageModels(Settings(run=RunSettings(concurrency=6)), lm=reader)

    with Workspace.open(folder, lm=models) as space:
        testset = make_testset(space, plan=TestsetPlan(2, {"fact": 1}))

    assert len(testset) == 2
    assert reader.asked.count("fact") == 6  # two for each row, of which three in four are expected to pass
