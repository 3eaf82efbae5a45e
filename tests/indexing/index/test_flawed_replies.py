"""A reply that was cut off is kept as far as it goes, named as a failure of its file and passage, and asked for again
once the limit is raised."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import dspy
import pytest
from dspy.lm15 import Message, Request, Response, TextPart, Usage, response_to_events

from kraq_dspy import Index, build_index
from kraq_dspy.indexing import BuildReport
from kraq_dspy.records import Entity
from kraq_dspy.settings import RunSettings, Settings
from kraq_dspy.workspace import Workspace

ADA, CHARLES = ({"name": name, "type": "person", "description": "d"} for name in ("Ada", "Charles"))
LINK = {"source": "Ada", "target": "Charles", "predicate": "met", "description": "They met."}
EXTRACTED = json.dumps({"entities": [ADA, CHARLES], "relationships": [LINK], "claims": []})
SUMMARY = json.dumps(
    {"title": "T", "summary": "Ada met Charles.", "findings": [{"summary": "Met.", "explanation": ""}]}
)


class Engine:
    """Cuts off what it says in the steps that `cut` names. `asked` are the instructions of all requests."""

    supports_function_calling = supports_reasoning = supports_response_schema = False
    supported_params = frozenset({"max_tokens", "temperature"})

    def __init__(self) -> None:
        self.cut: set[str] = set()
        self.asked: list[str] = []

    def __deepcopy__(self, memo: object) -> "Engine":
        return self

    def complete(self, request: Request) -> Response:
        system, text, is_cut = str(request.system), "Ada met Char", "answer" in self.cut
        self.asked.append(system)
        if system.startswith("List the entities"):
            is_cut = "extract" in self.cut
            text = EXTRACTED[: EXTRACTED.index("Charles")] if is_cut else EXTRACTED
        elif system.startswith("A first reading"):
            text, is_cut = json.dumps({"missing": "", "entities": [], "relationships": [], "claims": []}), False
        elif system.startswith("Summarise"):
            is_cut = "summarize" in self.cut
            text = SUMMARY[: SUMMARY.index(', "explanation"')] if is_cut else SUMMARY
        elif "quiz" in system:
            text, is_cut = "Who met Ada?", False
        return Response(
            id=None,
            model=request.model,
            message=Message.assistant([TextPart(text)]),
            finish_reason="length" if is_cut else "stop",
            usage=Usage(input_tokens=1, output_tokens=1),
        )

    def stream(self, request: Request) -> Any:
        return response_to_events(self.complete(request))


class AsyncEngine(Engine):
    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    async def complete(self, request: Request) -> Response:  # type: ignore[override]
        return self.engine.complete(request)

    async def stream(self, request: Request) -> AsyncIterator[Any]:  # type: ignore[override]
        for event in self.engine.stream(request):
            yield event


@pytest.fixture
def engine() -> Engine:
    return Engine()


def model(engine: Engine, max_tokens: int | None = None) -> Any:
    return dspy.LM("m", engine=engine, async_engine=AsyncEngine(engine), cache=False, max_tokens=max_tokens)


def build(folder: Path, lm: Any) -> BuildReport:
    (folder / "docs").mkdir(exist_ok=True)
    (folder / "docs" / "ada.txt").write_text("Ada met Charles.")
    settings = Settings(run=RunSettings(concurrency=1))
    return build_index(folder / "docs", folder / "i.kraq", settings=settings, lm=lm)


def names(path: Path) -> list[str]:
    with Index.open(path) as index:
        return [entity.name for entity in index.all(Entity)]


def test_an_extraction_that_was_cut_off_is_kept_and_named_and_made_anew_with_a_higher_limit(
    tmp_path: Path, engine: Engine
) -> None:
    engine.cut = {"extract"}
    [failure] = build(tmp_path, model(engine)).failures
    assert (failure.stage, failure.where) == ("extract", "ada.txt, passage 1")
    assert failure.reason.startswith("Kept as far as it goes: the reply was cut off at the limit of tokens")
    assert names(tmp_path / "i.kraq") == ["Ada"]
    engine.cut.clear()
    assert build(tmp_path, model(engine, 640)).failures == ()
    assert sorted(names(tmp_path / "i.kraq")) == ["Ada", "Charles"]


@pytest.mark.parametrize("stage", ["extract", "summarize"])
def test_what_was_cut_off_is_asked_for_again_only_once_the_limit_is_raised(
    tmp_path: Path, engine: Engine, stage: str
) -> None:
    engine.cut = {stage}
    [failure] = build(tmp_path, model(engine, 320)).failures
    assert (failure.stage, "(max_tokens = 320)" in failure.reason) == (stage, True)
    before = len(engine.asked)
    for _ in range(2):
        assert build(tmp_path, model(engine, 320)).failures == (failure,)
    assert len(engine.asked) == before

    [failure] = build(tmp_path, model(engine, 640)).failures  # it is cut off there, too
    assert "(max_tokens = 640)" in failure.reason
    assert len(engine.asked) > before
    engine.cut.clear()
    assert build(tmp_path, model(engine, 960)).failures == ()
    whole = len(engine.asked)
    assert build(tmp_path, model(engine, 320)).usage == {}
    assert len(engine.asked) == whole


def test_an_answer_that_was_cut_off_says_so(tmp_path: Path, engine: Engine) -> None:
    lm = model(engine)
    build(tmp_path, lm)
    engine.cut = {"answer"}
    with Workspace.open(tmp_path / "i.kraq", lm=lm) as space:
        program = space.program("traditional")
        for prediction in (space.ask("Who?", program), list(space.stream("Who?", program))[-1]):
            assert prediction.answer == "Ada met Char"
            assert prediction.flaws == ("the reply was cut off at the limit of tokens; raise max_tokens",)
        engine.cut.clear()
        assert "flaws" not in space.ask("Who?", program)
