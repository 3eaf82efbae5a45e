"""A reply that was cut off is kept as far as it goes, and named as a failure of its file and passage."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import dspy
import pytest
from dspy.lm15 import Message, Request, Response, TextPart, Usage, response_to_events

from kraq_dspy.asset.store.index import Index
from kraq_dspy.build.index.build import build_index
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
    """Cuts off what it says of extraction and as an answer while `short`."""

    supports_function_calling = supports_reasoning = supports_response_schema = False
    supported_params = frozenset({"max_tokens", "temperature"})

    def __init__(self) -> None:
        self.short = True

    def __deepcopy__(self, memo: object) -> "Engine":
        return self

    def complete(self, request: Request) -> Response:
        system, text, is_cut = str(request.system), "Ada met Char", self.short
        if system.startswith("List the entities"):
            text = EXTRACTED[: EXTRACTED.index("Charles")] if self.short else EXTRACTED
        elif system.startswith("A first reading"):
            text, is_cut = json.dumps({"missing": "", "entities": [], "relationships": [], "claims": []}), False
        elif system.startswith("Summarise"):
            text, is_cut = SUMMARY, False
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


@pytest.fixture
def lm(engine: Engine) -> dspy.LM:
    return dspy.LM("m", engine=engine, async_engine=AsyncEngine(engine), cache=False)


def names(path: Path) -> list[str]:
    with Index.open(path) as index:
        return [entity.name for entity in index.all(Entity)]


def test_an_extraction_that_was_cut_off_is_kept_and_named_and_made_anew(
    tmp_path: Path, engine: Engine, lm: Any
) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "ada.txt").write_text("Ada met Charles.")

    def build() -> Any:
        settings = Settings(run=RunSettings(concurrency=1))
        return build_index(tmp_path / "docs", tmp_path / "i.kraq", settings=settings, models=lm)

    [failure] = build().failures
    assert (failure.stage, failure.where) == ("extract", "ada.txt, passage 1")
    assert failure.reason.startswith("Kept as far as it goes: the reply was cut off at the limit of tokens")
    assert names(tmp_path / "i.kraq") == ["Ada"]
    engine.short = False
    assert build().failures == ()
    assert sorted(names(tmp_path / "i.kraq")) == ["Ada", "Charles"]

    engine.short = True
    with Workspace.open(tmp_path / "i.kraq", models=lm) as space:
        program = space.program("traditional")
        for prediction in (space.ask("Who?", program), list(space.stream("Who?", program))[-1]):
            assert prediction.answer == "Ada met Char"
            assert prediction.flaws == ("the reply was cut off at the limit of tokens; raise max_tokens",)
        engine.short = False
        assert "flaws" not in space.ask("Who?", program)
