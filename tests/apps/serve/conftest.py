"""Makes a small index whose texts try to be markup, and the application over it."""

import dataclasses
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette", reason="needs the extra serve")

from dspy import BaseLM
from starlette.testclient import TestClient

from kraq_dspy import Index
from kraq_dspy.apps.serve.app import make_app
from kraq_dspy.apps.serve.serve_settings import ServeSettings
from kraq_dspy.apps.serve.served import ServedIndex, served
from kraq_dspy.apps.serve.testset_desk import TestsetDesk
from kraq_dspy.asset.store.faq import FAQ, NewEntry
from kraq_dspy.extend import FaqCache
from kraq_dspy.records import AnswerSource, Document, Entity, Question
from kraq_dspy.workspace import Workspace
from tests.conftest import KeywordEmbedder
from tests.kept import kept_index

EMBEDDER = KeywordEmbedder("ada", "babbage", "byron", "engine", "juan", "london")
MARKUP = "<img src=x onerror=\"document.title='owned'\">"
POETS = {
    "ada": "Ada Lovelace wrote notes on the Analytical Engine. Charles Babbage designed the Analytical Engine.",
    "notes/babbage.md": "Charles Babbage invented the Difference Engine. Charles Babbage met Ada Lovelace in London.",
    "byron": "Lord Byron wrote Don Juan. Lord Byron was the father of Ada Lovelace. Lord Byron lived in London.",
    "juan": f"Don Juan is a poem by Lord Byron. {MARKUP} John Murray published Don Juan in London.",
}


@pytest.fixture(scope="session")
def poets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four documents; the title of one, the name of its first entity and the first question hold markup."""
    out = tmp_path_factory.mktemp("serve") / "poets.kraq"
    titles = {**dict.fromkeys(POETS, ""), "juan": f"Don Juan {MARKUP}", "byron": "Lord Byron"}
    kept_index([Document(name, titles[name], text) for name, text in POETS.items()], out, embedder=EMBEDDER)
    with Index.open(out, write=True) as index:
        question = index.questions(level=0)[0]
        index.add([dataclasses.replace(question, text=f"{question.text} {MARKUP}")])
        entity = next(each for each in index.all(Entity) if each.name == "Don Juan")
        index.add([dataclasses.replace(entity, name=f"Don Juan {MARKUP}")])
        assert index.count(Question) > 0
    faq = FaqCache(out / FAQ)
    byron = (AnswerSource("byron"),)
    faq.add(NewEntry("Who wrote Don Juan?", "Lord Byron.", "pending", byron), by="test")
    faq.add(NewEntry("Who met Ada Lovelace?", "", "pending"), by="test")
    faq.add(NewEntry("Where did Byron live?", "In London.", "approved", byron), by="test")
    faq.close()
    return out


@pytest.fixture
def copy(poets: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(poets, tmp_path / "poets.kraq"))


def open_all(
    *folders: Path,
    models: Mapping[str, BaseLM] | None = None,
    edit: bool = False,
    desk: TestsetDesk | None = None,
    embedder: KeywordEmbedder | None = EMBEDDER,
) -> AbstractContextManager[dict[str, ServedIndex]]:
    return served(folders, partial(Workspace.open, embedder=embedder, lm=models), edit=edit, desk=desk)


@pytest.fixture
def client_of(poets: Path) -> Iterator[Callable[..., TestClient]]:
    """Makes a client of the application with these settings, over the shared index or others; each is opened once."""
    with ExitStack() as stack:
        opened: dict[tuple[Path, ...], dict[str, ServedIndex]] = {}

        def make(*folders: Path, edit: bool = False, **settings: Any) -> TestClient:
            folders = folders or (poets,)
            if folders not in opened:
                opened[folders] = stack.enter_context(open_all(*folders, edit=edit))
            app = make_app(opened[folders], ServeSettings(**settings))
            return stack.enter_context(TestClient(app, "http://localhost", raise_server_exceptions=False))

        yield make


@pytest.fixture
def client(client_of: Callable[..., TestClient]) -> TestClient:
    return client_of()
