"""Passages are looked at again before a prompt is written of them, whoever finds them, and the look raises."""

import asyncio
import dataclasses
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import dspy
import pytest

from kraq_dspy import Scope, Workspace
from kraq_dspy.errors import ScopeError
from kraq_dspy.extend import Chunk, Community, Hit, Summary
from kraq_dspy.indexing.view import making
from kraq_dspy.programs import (
    QARAG,
    CombinedRetrieveRAG,
    GraphGlobalSearch,
    GraphLocalSearch,
    KnowledgeGraph,
    TraditionalRAG,
)
from kraq_dspy.records import Document
from kraq_dspy.retrievers.reports import report_chunk
from kraq_dspy.settings import RefusalSettings, Settings
from kraq_dspy.testing import _PromptWatcher
from kraq_dspy.workspace.checking import ReadableHits
from kraq_dspy.workspace.registry import PROGRAMS, RETRIEVERS
from tests.scope.corpora import CANARY, QUESTIONS, built_in, corpus, make_prepared, with_skye

STAFF = Scope(["staff"])
QUESTION = QUESTIONS[0]
REFUSING = Settings(refusals=RefusalSettings(threshold=1.0))
"""Nothing is answered."""


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same index as that of the canaries, but for their FAQ cache."""
    folder = tmp_path_factory.mktemp("second")
    return built_in(folder, "prepared-24", partial(make_prepared, with_skye(corpus(24)).documents))


@pytest.fixture(scope="module")
def leaky_path(path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index whose view for the staff was made of all documents."""

    def take_all(whole: Any, view: Any, document_ids: Any) -> None:
        original_take(whole, view, whole.ids(Document))

    original_take = making._take_documents
    leaky_path = tmp_path_factory.mktemp("leaky") / "both.kraq"
    shutil.copytree(path, leaky_path)
    with pytest.MonkeyPatch.context() as patch, Workspace.open(leaky_path) as space:
        patch.setattr(making, "_take_documents", take_all)
        with space.scoped(STAFF) as staff:
            assert any(CANARY.search(document.text) for document in staff.index.all(Document))
    return leaky_path


@pytest.fixture(scope="module")
def leaky(leaky_path: Path) -> Iterator[Workspace]:
    with Workspace.open(leaky_path) as space, space.scoped(STAFF) as staff:
        yield staff


@pytest.fixture(scope="module")
def space(path: Path) -> Iterator[Workspace]:
    with Workspace.open(path) as space:
        yield space


@pytest.fixture(scope="module")
def staff(space: Workspace) -> Iterator[Workspace]:
    with space.scoped(STAFF) as staff:
        yield staff


@contextmanager
def refused_before_a_prompt() -> Iterator[None]:
    watcher = _PromptWatcher()
    with (
        dspy.context(callbacks=[watcher]),
        pytest.raises(ScopeError, match="none of the documents which may be read"),
    ):
        yield
    assert not CANARY.search(" ".join(watcher.prompts))


@pytest.mark.parametrize("name", PROGRAMS.own)
def test_each_program_looks_again_also_where_it_is_called_by_itself(name: str, leaky: Workspace) -> None:
    program = leaky.program(name)
    with refused_before_a_prompt():
        leaky.ask(QUESTION, program)
    with refused_before_a_prompt():
        program(question=QUESTION)


@pytest.mark.parametrize("name", [spec.name for spec in RETRIEVERS.own.values() if not spec.argument])
def test_each_retriever_looks_again(name: str, leaky: Workspace) -> None:
    retrieve: Any = leaky.retriever(name)
    with refused_before_a_prompt():
        retrieve(QUESTION, 20)
    with refused_before_a_prompt():
        asyncio.run(retrieve.acall(QUESTION, 20))


def test_the_passages_of_a_refusal_are_looked_at_again(leaky_path: Path) -> None:
    with Workspace.open(leaky_path, settings=REFUSING) as space, space.scoped(STAFF) as leaky:
        with refused_before_a_prompt():
            leaky.ask(QUESTION, refuse=True)
        with refused_before_a_prompt():
            list(leaky.stream(QUESTION, refuse=True))


class OwnRAG(dspy.Module):
    """A module of somebody's own, which does not say what it answered from."""

    def __init__(self, retrieve: Any) -> None:
        super().__init__()
        self.retrieve = retrieve
        self.answer = dspy.Predict("passages, question -> answer")

    def forward(self, question: str) -> dspy.Prediction:
        passages = [hit.chunk.text for hit in self.retrieve(question, 10)]
        return dspy.Prediction(answer=self.answer(passages=passages, question=question).answer)

    async def aforward(self, question: str) -> dspy.Prediction:
        passages = [hit.chunk.text for hit in await self.retrieve.acall(question, 10)]
        return dspy.Prediction(answer=(await self.answer.acall(passages=passages, question=question)).answer)


async def last_of_astream(staff: Workspace, program: dspy.Module) -> None:
    async for _ in staff.astream(QUESTION, program):
        pass


WAYS: dict[str, Callable[[Workspace, dspy.Module], Any]] = {
    "ask": lambda staff, program: staff.ask(QUESTION, program),
    "aask": lambda staff, program: asyncio.run(staff.aask(QUESTION, program)),
    "stream": lambda staff, program: list(staff.stream(QUESTION, program)),
    "astream": lambda staff, program: asyncio.run(last_of_astream(staff, program)),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["bm25", "adaptive"])
def test_a_module_of_ones_own_over_a_retriever_of_the_whole_is_stopped(
    name: str, way: str, space: Workspace, staff: Workspace
) -> None:
    program = OwnRAG(space.owned().retriever(name))
    with refused_before_a_prompt():
        WAYS[way](staff, program)


def reading_all(space: Workspace) -> Callable[[str], list[Chunk]]:
    """A function that reads passages of the whole without a retriever."""
    owner = space.owned()
    return lambda question: [chunk for chunk in owner.index.all(Chunk) if "bought" in chunk.text]


MADE: dict[str, Callable[[Workspace, Workspace], dspy.Module]] = {
    "traditional": lambda space, staff: TraditionalRAG(reading_all(space)),
    "combined": lambda space, staff: CombinedRetrieveRAG(reading_all(space), staff.questions()),
    "qa-rag": lambda space, staff: QARAG(reading_all(space)),
    "graph-local": lambda space, staff: GraphLocalSearch(space.owned().entity_vectors, space.owned().graph),
    "graph-global": lambda space, staff: GraphGlobalSearch(space.owned().retriever("graph-global")),
}


@pytest.mark.parametrize("name", MADE)
def test_a_program_of_this_library_over_something_of_the_whole_is_stopped(
    name: str, space: Workspace, staff: Workspace
) -> None:
    program = MADE[name](space, staff)
    with refused_before_a_prompt():
        staff.ask(QUESTION, program)


class ShowsPassages(dspy.Module):
    """A module of somebody's own that asks no retriever and no model, and shows what it was made with."""

    def __init__(self, hits: list[Hit]) -> None:
        super().__init__()
        self.hits = hits

    def forward(self, question: str) -> dspy.Prediction:
        return dspy.Prediction(answer="See below.", hits=self.hits)

    async def aforward(self, question: str) -> dspy.Prediction:
        return self.forward(question)


@pytest.mark.parametrize("way", WAYS)
def test_passages_that_no_retriever_looked_at_are_looked_at_before_they_are_shown(
    way: str, space: Workspace, staff: Workspace
) -> None:
    passages = [Hit(chunk, 1.0, QUESTION) for chunk in reading_all(space)(QUESTION)]
    with pytest.raises(ScopeError):
        WAYS[way](staff, ShowsPassages(passages))


@pytest.fixture(scope="module")
def whole(space: Workspace) -> Iterator[Workspace]:
    """A view of all documents, with all that is made of them."""
    with space.owned().without([]) as whole:
        yield whole


def test_a_report_is_the_view_s_own_word_for_word_and_of_documents_which_may_be_read(whole: Workspace) -> None:
    """The same entities may be a community of the whole, too, whose report tells more."""
    ids = frozenset(whole.index.ids(Document))
    summary = next(iter(whole.index.all(Summary)))
    [community] = whole.index.get(Community, [summary.community_id])
    report = Hit(report_chunk(community, summary), 1.0, "q")
    document_id = next(iter(whole.index.documents_of(community.chunk_ids).values()))

    require_own(whole, ids, report, document_id)


def test_a_summary_of_the_tree_is_the_view_s_own_and_of_documents_which_may_be_read(whole: Workspace) -> None:
    ids = frozenset(whole.index.ids(Document))
    tree, _ = whole.summary_tree
    node = next(iter(tree.nodes.values()))
    [summary] = [hit for hit in whole.retriever("raptor")(node.text, 10) if hit.chunk.id == node.id]
    document_id = next(iter(whole.index.documents_of(tree.leaves[node.id]).values()))

    require_own(whole, ids, summary, document_id)


def test_both_the_reports_and_the_passages_of_a_graph_are_looked_at(whole: Workspace) -> None:
    knowledge = KnowledgeGraph(whole.entity_vectors, whole.graph)
    seen: list[Hit] = []

    def note(hits: Sequence[Hit]) -> None:
        seen.extend(hits)

    knowledge.check = note
    context = knowledge(QUESTION)
    assert context.reports
    assert context.hits
    assert {hit.chunk.id for hit in seen} >= {hit.chunk.id for hit in (*context.reports, *context.hits)}


def require_own(whole: Workspace, ids: frozenset[str], hit: Hit, document_id: str) -> None:
    """The hit passes, also a second time; with other words it does not, nor where one of its documents is hidden."""
    check = ReadableHits(whole, ids)
    check([hit])
    check([hit])
    with pytest.raises(ScopeError):
        check([dataclasses.replace(hit, chunk=dataclasses.replace(hit.chunk, text=f"{hit.chunk.text} And more."))])
    with pytest.raises(ScopeError):
        ReadableHits(whole, ids - {document_id})([hit])
