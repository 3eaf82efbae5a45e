"""Makes the project's tables at toy size: twenty bundled passages, the embedded model, MiniLM."""

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dspy
import pytest
from dspy.lm15 import Message, Request, Response, TextPart, Usage

from kraq_dspy.eval import Dataset, Example
from kraq_dspy.eval.metrics.generation import BertScorer
from kraq_dspy.extend import LanguageModels
from kraq_dspy.papers.tables.run import RunOptions
from kraq_dspy.papers.tables.run_table import run_table
from kraq_dspy.papers.tables.table import EvalTable, System, read_table
from kraq_dspy.ports import Progress
from kraq_dspy.records import Document
from kraq_dspy.settings import Settings
from tests.eval.saving import save
from tests.kept import kept

ROOT = Path(__file__).resolve().parents[3]
EXAMPLE = ROOT / "examples" / "hotpotqa-mini"
TOKENS = 2500  # of evidence: two questions and their twenty passages


LIGHTHOUSES = Dataset(
    "hotpotqa-lighthouses",  # some rows are of hotpotqa alone
    (
        Document(
            "kilda", "Kilda", "Kilda is a lighthouse on Hirta. Ada Moor built Kilda in 1894. The Board runs Kilda."
        ),
        Document("moor", "Ada Moor", "Ada Moor was an engineer from Leith. Ada Moor built Kilda and Sule."),
        Document("sule", "Sule", "Sule is a lighthouse near Orkney. Sule burns oil. The Board runs Sule."),
    ),
    (
        Example("q1", "Who built Kilda?", ("Ada Moor",), ("kilda",)),
        Example("q2", "Where is Sule?", ("near Orkney",), ("sule",)),
    ),
)
"""Three passages, for what takes seconds over twenty."""


class Toy:
    """`toy.run("combined")` runs the table on the bundled sample; all runs of a session share one index."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.runs = 0

    def table(self, name: str, **changes: Any) -> EvalTable:
        table = read_table(ROOT / "kraq_dspy" / "papers" / "tables" / "definitions" / f"{name}.toml")
        return dataclasses.replace(table, **{"precompute": 1, **changes})

    def run(
        self,
        table: EvalTable,
        *,
        out: Path | None = None,
        data: Path = EXAMPLE,
        settings: Settings | None = None,
        progress: Progress | None = None,
        **options: Any,
    ) -> Path:
        self.runs += 1
        chosen = RunOptions(
            data=data,
            out=out or self.folder / f"run-{self.runs}",
            **{
                "indexes": self.folder / "indexes",
                "tokens": TOKENS,
                "bertscore": BertScorer.packaged,
                **options,
            },
        )
        [folder] = run_table(table, [data.name], settings or Settings(), chosen, progress)
        return folder

    def index_of(self, run: Path) -> Path:
        """The index that a run asked: the tables of a session make several."""
        fingerprint = json.loads((run / "run.json").read_text("utf-8"))["index_fingerprint"]
        return next((self.folder / "indexes").glob(f"*-{fingerprint[:8]}.kraq"))


@pytest.fixture(scope="session")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Toy:
    toy = Toy(tmp_path_factory.mktemp("benchmark"))
    table = EvalTable("t", "T", "retrievers", "bm25", (System("bm25", "bm25"),), metrics=("recall",))
    corpus = (EXAMPLE / "corpus.jsonl").read_text("utf-8")
    kept(f"tables of {corpus}", lambda path: toy.run(table, indexes=path, limit=1), toy.folder / "indexes")
    return toy


@pytest.fixture(scope="session")
def lighthouses(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the small data set."""
    folder = tmp_path_factory.mktemp("data") / LIGHTHOUSES.name
    save(LIGHTHOUSES, folder)
    return folder


class ScriptedEngine:
    """Answers by what the prompt says, and keeps the prompts."""

    supports_function_calling = False
    supports_reasoning = False
    supports_response_schema = False
    supported_params = frozenset[str]()

    def __init__(self, reply: Callable[[str], str]) -> None:
        self.reply = reply
        self.prompts: list[str] = []

    def __deepcopy__(self, memo: dict[int, Any]) -> "ScriptedEngine":
        return self

    def complete(self, request: Request) -> Response:
        prompt = "\n".join(message.text or "" for message in request.messages)
        self.prompts.append(prompt)
        message = Message.assistant([TextPart(self.reply(prompt))])
        usage = Usage(input_tokens=1, output_tokens=1)
        return Response(id=None, model="scripted", message=message, finish_reason="stop", usage=usage)


Scripted = Callable[[Callable[[str], str]], tuple[ScriptedEngine, Any]]
"""Takes what replies to a prompt; gives the engine, and models for `Toy.run`."""


@pytest.fixture
def scripted() -> Scripted:
    """The engine of a model that answers in every role, and what `RunOptions.models` wants to make it."""

    def make(reply: Callable[[str], str]) -> tuple[ScriptedEngine, Any]:
        engine = ScriptedEngine(reply)
        lm = dspy.LM("scripted", cache=False, num_retries=0, engine=engine)

        class Scripted(LanguageModels):
            def __getitem__(self, role: str) -> dspy.BaseLM:
                return lm

            def close(self) -> None:
                return

        return engine, lambda settings, embedder: Scripted(settings, embedder=embedder)

    return make
