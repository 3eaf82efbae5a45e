"""Each thing that keeps a scope, taken out by itself, lets something out that the other tests would see."""

import dataclasses
import shutil
from collections.abc import Callable, Iterable
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import dspy
import pytest

from kraq_dspy import Scope, Workspace
from kraq_dspy.asset.store.faq import FAQ, NewEntry
from kraq_dspy.asset.store.instructed import INSTRUCTED, any_instructed
from kraq_dspy.asset.store.served_answers import ServedAnswers
from kraq_dspy.errors import ScopeError
from kraq_dspy.extend import Chunk, FaqCache, Hit, Question
from kraq_dspy.indexing.faq.sources import sources_of
from kraq_dspy.indexing.prepare import instructed, qa_pairs, raptor
from kraq_dspy.indexing.view import making
from kraq_dspy.programs import TraditionalRAG
from kraq_dspy.records import Document
from kraq_dspy.retrievers import hits
from kraq_dspy.steps.kept import FoundResults
from kraq_dspy.testing import BrokenContractError, _PromptWatcher, check_scope
from kraq_dspy.workspace.checking import ReadableHits
from kraq_dspy.workspace.opening import OpenedIndex
from tests.scope.corpora import CANARY, QUESTIONS, built_in, corpus, make_prepared, with_skye

BOTH = with_skye(corpus(24))
STAFF = Scope(["staff"])


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same index as that of the canaries, with another FAQ cache."""
    folder = tmp_path_factory.mktemp("mutations")
    path = built_in(folder, "prepared-24", partial(make_prepared, BOTH.documents))
    with Workspace.open(path) as space, FaqCache(path / FAQ) as entries:
        secret = BOTH.documents[1]
        sources = sources_of(space.owned().index, [secret.id])
        entries.add(NewEntry("What is known of the deal?", secret.text, sources=sources), by="me")
    return path


@pytest.fixture
def path(built: Path, tmp_path: Path) -> Path:
    shutil.copytree(built, tmp_path / "both.kraq")
    return tmp_path / "both.kraq"


def lets_out(path: Path) -> bool:
    """Whether anything that the tests of scope look at shows what the staff may not read."""
    with Workspace.open(path) as space:
        with space.scoped(STAFF) as staff:
            if staff.prepared("What is known of the deal?") is not None or holds_results_of_others(space, staff):
                return True
        if not refuses(lambda: space.retriever("bm25")(QUESTIONS[0], 3)):
            return True
        if not refuses(lambda: asks_for_another(space)):
            return True
        try:
            check_scope(space, STAFF, BOTH.canaries, QUESTIONS[:1], retrievers=["dense", "raptor"])
        except BrokenContractError:
            return True
        except ScopeError:  # the second look saw what the first let through
            return True
    return False


def refuses(work: Callable[[], object]) -> bool:
    try:
        work()
    except ScopeError:
        return True
    return False


def holds_results_of_others(space: Workspace, staff: Workspace) -> bool:
    """Whether what was made of passages that may not be read lies in the view, though nobody should ask for it."""
    others = sorted(set(space.owned().index.ids(Chunk)).difference(staff.index.ids(Chunk)))
    tree, _ = staff.summary_tree
    if not set(others).isdisjoint(chain.from_iterable(tree.leaves.values())):
        return True
    with any_instructed(staff.index.path / INSTRUCTED) as stored:
        own = {*staff.index.ids(Chunk), *staff.index.ids(Question)}
        if not stored.owners() <= own or any(stored.holds(owner, others).any() for owner in stored.owners()):
            return True
    return bool(staff.index.results.outputs(qa_pairs.STAGE, others))


def asks_for_another(space: Workspace) -> None:
    """A program of somebody's own, whose retriever reads the whole index, is asked in a scope.

    Raises ScopeError before a prompt is written.
    """
    retrieve, watcher = space.owned().retriever("bm25"), _PromptWatcher()
    with space.scoped(STAFF) as staff, dspy.context(callbacks=[watcher]):
        refused = refuses(lambda: staff.ask(QUESTIONS[0], TraditionalRAG(retrieve, k=10)))
    if refused and not CANARY.search(" ".join(watcher.prompts)):
        raise ScopeError("It was refused in time.")


def test_as_it_is_nothing_gets_out(path: Path) -> None:
    assert not lets_out(path)


def take_all(whole: Any, view: Any, document_ids: Any) -> None:
    original_take(whole, view, whole.ids(Document))


def take_all_and_summaries(nodes: Any, *, gone: Any) -> Any:
    return list(nodes), []


def found_whatever_it_was_made_of(self: FoundResults, item: Any) -> Any:
    outputs = self._results.outputs(self._stage, [item.id])
    return self.done(item.id, outputs[item.id]) if outputs else None


def all_pairs(whole: Any, view: Any) -> None:
    view.results.take(qa_pairs.STAGE, whole.results, whole.ids(Chunk))


def all_instructed(whole: Any, view: Any) -> None:
    if (whole.path / INSTRUCTED).exists():
        shutil.copyfile(whole.path / INSTRUCTED, view.path / INSTRUCTED)


def all_labels(self: Scope, labels: Iterable[str]) -> bool:
    return True


original_take = making._take_documents

MUTATIONS: dict[str, tuple[Any, str, Any]] = {
    "an index with labels answers without a scope": (OpenedIndex, "has_labels", False),
    "a scope allows every label": (Scope, "allows", all_labels),
    "a view takes all documents": (making, "_take_documents", take_all),
    "a model's summary is taken whatever it was made of": (FoundResults, "find", found_whatever_it_was_made_of),
    "a tree's summaries are taken whatever they stand on": (raptor, "_apart", take_all_and_summaries),
    "all question-answer pairs are taken": (qa_pairs, "carry", all_pairs),
    "all embeddings of sentences are taken": (instructed, "carry", all_instructed),
    "prepared answers are served whatever they rest on": (
        ServedAnswers, "_served", lambda self, entry: entry if entry and entry.status == "approved" else None,
    ),
    "hits are not looked at again": (ReadableHits, "__call__", lambda self, hits: None),
    "the check of whoever asks is not heard of": (hits, "looked_at", lambda found, own=None: found),
}  # fmt: skip


@pytest.mark.parametrize("name", MUTATIONS)
def test_what_is_taken_out_is_missed(name: str, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, attribute, instead = MUTATIONS[name]
    monkeypatch.setattr(owner, attribute, instead)
    assert lets_out(path)


def test_a_hit_of_elsewhere_raises_and_is_not_left_out(path: Path) -> None:
    with Workspace.open(path) as space, space.scoped(STAFF) as staff:
        [hit, *_] = staff.retriever("dense")(QUESTIONS[0], 1)
        check = ReadableHits(staff, frozenset(staff.index.ids(Document)))
        check([hit])
        foreign = dataclasses.replace(hit.chunk, document_id="elsewhere")
        for strange in (foreign, dataclasses.replace(foreign, document_id="")):
            with pytest.raises(ScopeError, match="none of the documents which may be read") as caught:
                check([hit, Hit(strange, 1.0, "q")])
            assert "elsewhere" not in str(caught.value)
