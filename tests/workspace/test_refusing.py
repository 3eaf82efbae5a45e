"""Tests that every prediction says whether the documents answer it, and that front doors refuse if they do not."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

import dspy
import pytest
from dspy.utils import DummyLM

from kraq_dspy import Index, Scope, Workspace
from kraq_dspy._internal.rag_prediction import REFUSED
from kraq_dspy.asset.store.faq import FAQ, NewEntry
from kraq_dspy.asset.store.index import THRESHOLD
from kraq_dspy.eval.metrics.rag import is_refused
from kraq_dspy.extend import FaqCache
from kraq_dspy.indexing.refusals.scoring import PassageScorer
from kraq_dspy.records import AnswerSource, Document
from kraq_dspy.settings import RefusalSettings, Settings
from kraq_dspy.workspace.refusing import Answerability, is_refusal, refusal_text
from tests.kept import kept_index
from tests.orchids import ANSWERED, FOREIGN, ORCHIDS, index_of_orchids


class Untouchable(dspy.Module):
    """A program that must not be asked."""

    def forward(self, question: str) -> NoReturn:
        raise AssertionError(f"the program was asked {question!r}")


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return index_of_orchids(tmp_path_factory.mktemp("refusing") / "orchids.kraq")


@pytest.fixture
def space(path: Path) -> Iterator[Workspace]:
    with Workspace.open(path) as space:
        yield space


@pytest.mark.parametrize("question", FOREIGN)
def test_what_is_foreign_is_refused_and_reaches_no_program(question: str, space: Workspace) -> None:
    prediction = space.ask(question, Untouchable(), refuse=True)
    assert is_refusal(prediction)
    assert prediction.answer == REFUSED
    assert prediction.answerable is False
    assert 0 <= prediction.answerable_score < prediction.threshold
    assert 0 < len(prediction.hits) <= 3


@pytest.mark.parametrize("question", ANSWERED)
def test_what_people_ask_of_the_documents_is_answered(question: str, space: Workspace) -> None:
    prediction = space.ask(question, refuse=True)
    assert not is_refusal(prediction)
    assert prediction.answerable is True
    assert prediction.answer


def test_the_offers_are_three_questions_that_are_answered_themselves(space: Workspace) -> None:
    offered = space.ask(FOREIGN[0], Untouchable(), refuse=True).next_questions
    assert len(offered) == 3
    assert len({each.text for each in offered}) == 3
    for each in offered:
        assert each.passage.id in each.question.chunk_ids
        assert space.ask(each.text, refuse=True).answerable is True


def test_the_offers_are_the_same_again_and_scored_once(space: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    first = space.ask(FOREIGN[0], Untouchable(), refuse=True)
    scored: list[str] = []
    score = PassageScorer.__call__

    def counted(scorer: PassageScorer, questions: Sequence[str], vectors: Any = None) -> Any:
        scored.extend(questions)
        return score(scorer, questions, vectors)

    monkeypatch.setattr(PassageScorer, "__call__", counted)
    again = space.ask(FOREIGN[0], Untouchable(), refuse=True)
    assert again.next_questions == first.next_questions
    assert scored == [FOREIGN[0]]


def test_a_program_that_is_asked_in_python_answers_and_says_what_was_told(space: Workspace) -> None:
    prediction = space.ask(FOREIGN[0], "traditional")
    assert not is_refusal(prediction)
    assert prediction.answerable is False
    assert prediction.hits
    assert "answerable" in space.ask(FOREIGN[0], "combined")


def test_every_way_to_ask_refuses_the_same(space: Workspace) -> None:
    async def all_ways() -> list[Any]:
        awaited = await space.aask(FOREIGN[0], Untouchable(), refuse=True)
        streamed = [value async for value in space.astream(FOREIGN[0], Untouchable(), refuse=True)]
        return [awaited, *streamed]

    waited = space.ask(FOREIGN[0], Untouchable(), refuse=True)
    others = [*space.stream(FOREIGN[0], Untouchable(), refuse=True), *asyncio.run(all_ways())]
    assert len(others) == 3
    for each in others:
        assert is_refusal(each)
        assert each.next_questions == waited.next_questions
        assert each.answerable_score == waited.answerable_score


def test_in_a_conversation_the_standalone_question_is_judged(path: Path) -> None:
    """By itself the follow-up is about nothing; what it stands for is about an orchid, or about a tower."""
    said = [("Who named Cattleya?", "John Lindley.")]
    for complete, is_answerable in (("When did John Lindley name Cattleya?", True), (FOREIGN[1], False)):
        rewriter = DummyLM([{"complete_question": complete}])
        with Workspace.open(path, lm={"rewriter": rewriter}) as space:
            prediction = space.ask("And when was that?", history=said, refuse=True)
        assert prediction.standalone_question == complete
        assert prediction.answerable is is_answerable
        assert is_refusal(prediction) is not is_answerable


@pytest.mark.parametrize("question", ["What are these documents about?", "Summarize the documents."])
def test_a_question_about_the_whole_is_not_refused(question: str, space: Workspace) -> None:
    assert space.answerability(question).is_answerable is True


def test_an_index_without_a_threshold_refuses_nothing(tmp_path: Path) -> None:
    path = index_of_orchids(tmp_path / "old.kraq")
    with Index.open(path, write=True) as index:
        (index.home / THRESHOLD).unlink()
    with Workspace.open(path) as space:
        prediction = space.ask(FOREIGN[0], refuse=True)
    assert not is_refusal(prediction)
    assert prediction.answerable is None
    assert prediction.answerable_score is not None


def test_settings_set_the_threshold_and_the_number_of_offers(path: Path) -> None:
    with Workspace.open(path, settings=Settings(refusals=RefusalSettings(threshold=0.0))) as space:
        assert not is_refusal(space.ask(FOREIGN[0], refuse=True))
    with Workspace.open(path, settings=Settings(refusals=RefusalSettings(threshold=1.0, offers=1))) as space:
        assert is_refusal(space.ask(ANSWERED[0], refuse=True))
        assert not space.ask(ANSWERED[0], refuse=True).next_questions  # nothing is held by so high a threshold
    with Workspace.open(path, settings=Settings(refusals=RefusalSettings(offers=1))) as space:
        assert len(space.ask(FOREIGN[0], refuse=True).next_questions) == 1
        assert space.refuses
    with Workspace.open(path, settings=Settings(refusals=RefusalSettings(refuse=False))) as space:
        assert not space.refuses


def test_an_approved_answer_counts_as_answerable(tmp_path: Path) -> None:
    path = index_of_orchids(tmp_path / "orchids.kraq")
    faq = FaqCache(path / FAQ)
    faq.add(NewEntry(FOREIGN[0], "Lima.", "approved", (AnswerSource("care"),)), by="test")
    faq.close()
    with Workspace.open(path) as space:
        prepared = space.prepared(FOREIGN[0])
    assert prepared is not None
    assert prepared.answerable is True


def test_a_scope_is_refused_as_an_index_of_its_documents_alone_would_be(tmp_path: Path) -> None:
    """Score, threshold and offers are those of what may be read: nothing tells of the documents that may not."""
    readable = ("vanilla", "care", "cypripedium")
    labels: dict[str, tuple[str, ...]] = {name: ("staff",) if name in readable else ("board",) for name in ORCHIDS}
    both = index_of_orchids(tmp_path / "both.kraq", labels)
    alone = tmp_path / "alone.kraq"
    kept_index([Document(name, name.title(), ORCHIDS[name]) for name in ORCHIDS if name in readable], alone)
    asked = ("Who named Cattleya after William Cattley?", "What is the national flower of Indonesia?", *FOREIGN)
    with Workspace.open(both) as space, space.scoped(Scope(["staff"])) as staff, Workspace.open(alone) as other:
        for question in asked:
            here, there = (each.answerability(question) for each in (staff, other))
            assert here.score == pytest.approx(there.score, abs=1e-3)
            assert here.threshold == pytest.approx(there.threshold, abs=1e-3)
            assert here.is_answerable is there.is_answerable
            offers = [each.ask(question, "traditional", refuse=True).next_questions for each in (staff, other)]
            assert {each.passage.document_id for each in offers[0]} <= set(readable)
            assert [each.text for each in offers[0]] == [each.text for each in offers[1]]
    owner_score = _owner_score(both, asked[0])
    assert here.threshold is not None
    assert owner_score > here.threshold + 0.3  # the whole does answer what the scope must not know of


def test_a_scope_refuses_without_a_look_at_what_it_may_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """How long a refusal takes can then tell no more of hidden documents than what it says."""
    labels = {**dict.fromkeys(ORCHIDS, ("staff",)), "cattleya": ("board",)}
    path = index_of_orchids(tmp_path / "both.kraq", labels)
    searched: list[str] = []
    with Workspace.open(path) as space, space.scoped(Scope(["staff"])) as staff:
        for name, index in (("whole", space.owned().index), ("view", staff.index)):
            for vectors in (index.chunk_vectors, index.question_vectors):
                monkeypatch.setattr(vectors, "search", _noted(vectors.search, name, searched))

        for question in FOREIGN:
            assert is_refusal(staff.ask(question, Untouchable(), refuse=True))

    assert set(searched) == {"view"}


def _noted(search: Callable[..., Any], name: str, searched: list[str]) -> Callable[..., Any]:
    """A search that first notes whose it is."""

    def noted(*arguments: Any, **named: Any) -> Any:
        searched.append(name)
        return search(*arguments, **named)

    return noted


def _owner_score(path: Path, question: str) -> float:
    with Workspace.open(path) as space:
        score = space.owned().answerability(question).score
    assert score is not None
    return score


def test_a_question_is_scored_once_whether_it_is_answered_or_refused(
    space: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    scored: list[str] = []
    judge = space.answerability

    def counted(question: str) -> Answerability:
        scored.append(question)
        return judge(question)

    monkeypatch.setattr(space, "answerability", counted)

    space.ask(ANSWERED[0], refuse=True)
    space.ask(FOREIGN[0], refuse=True)
    space.ask(ANSWERED[1])
    list(space.stream(ANSWERED[2], refuse=True))

    assert scored == [ANSWERED[0], FOREIGN[0], ANSWERED[1], ANSWERED[2]]


def test_of_a_site_that_no_document_has_that_is_said(space: Workspace) -> None:
    prediction = space.ask("Where do vanilla orchids grow, by orchids-online.com?", refuse=True)
    assert prediction.answer == f"{REFUSED} They have nothing of orchids-online.com."
    assert is_refused(prediction, prediction.answer)
    assert refusal_text(["What is Vanilla?"], prediction.answer).startswith(f"{prediction.answer} They do answer:\n")
