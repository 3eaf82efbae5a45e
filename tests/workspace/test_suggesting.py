"""Tests suggested questions: of the corpus, answerable in it, no two alike, none that was just asked."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import dspy
import pytest
from dspy.utils import DummyLM

from kraq_dspy import Index
from kraq_dspy.programs import TraditionalRAG
from kraq_dspy.records import Chunk, Document, Hit, Question
from kraq_dspy.settings import Settings
from kraq_dspy.signatures import AnswerQuestion
from kraq_dspy.workspace import Workspace
from kraq_dspy.workspace.suggesting import next_questions, starters
from tests.conftest import KeywordEmbedder
from tests.kept import kept_index

EMBEDDER = KeywordEmbedder("byron", "juan", "ada", "engine", "danube", "sea")
TEXTS = {
    "byron": "Lord Byron wrote Don Juan in Italy. Lord Byron was a poet of London.",
    "ada": "Ada Lovelace wrote notes on the Analytical Engine. Charles Babbage designed the Analytical Engine.",
    "danube": "The Danube flows into the Black Sea. The Danube rises in Germany.",
}


@pytest.fixture(scope="module")
def space(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    out = tmp_path_factory.mktemp("suggested") / "three.kraq"
    kept_index([Document(name, name, text) for name, text in TEXTS.items()], out, embedder=EMBEDDER)
    with Workspace.open(out, embedder=EMBEDDER) as opened:
        yield opened


def test_starters_are_questions_of_the_index_with_the_best_passage_that_answers_them(space: Workspace) -> None:
    chosen = space.starters()
    assert chosen
    texts = [each.text for each in chosen]
    assert len(set(texts)) == len(texts)
    assert set(texts) <= {question.text for question in space.index.questions()}
    assert all(each.passage.id == each.question.evidence[0] for each in chosen)
    assert space.starters(1) == chosen[:1]


def test_the_first_starters_lead_to_as_many_documents_as_questions_do(space: Workspace) -> None:
    documents = {each.passage.document_id for each in space.starters(3)}
    evidence = [id for question in space.index.questions() for id in question.evidence]
    assert documents == set(space.index.documents_of(evidence).values())


def test_what_was_asked_is_not_suggested_again(space: Workspace) -> None:
    asked = space.index.questions()[0].text
    suggested = next_questions(space.index, space.questions(), f" {asked.upper()} ", 12)
    assert asked not in [each.text for each in suggested]


def test_a_question_without_evidence_is_not_suggested(tmp_path: Path) -> None:
    out = tmp_path / "odd.kraq"
    kept_index([Document(name, name, text) for name, text in TEXTS.items()], out, embedder=EMBEDDER)
    with Index.open(out, write=True) as index:
        for question in index.questions():
            index.add([Question(**{name: getattr(question, name) for name in question.__slots__} | {"evidence": ()})])
        assert starters(index) == []


def test_an_answer_comes_with_next_questions_in_all_four_forms(space: Workspace) -> None:
    program = space.program("traditional", k=1)
    question = "What did Ada do with the engine?"
    hits = space.ask(question, program, next_questions=0).hits
    expected = tuple(next_questions(space.index, space.questions(), question, evidence=hits))
    assert expected
    assert space.ask(question, program).next_questions == expected
    assert asyncio.run(space.aask(question, program)).next_questions == expected
    assert list(space.stream(question, program))[-1].next_questions == expected

    async def last() -> dspy.Prediction:
        return [value async for value in space.astream(question, program)][-1]

    assert asyncio.run(last()).next_questions == expected
    assert "next_questions" not in space.ask(question, program, next_questions=0)
    assert len(space.ask(question, program, next_questions=1).next_questions) == 1


def test_an_index_without_questions_answers_without_next_ones(tmp_path: Path) -> None:
    new = tmp_path / "new.kraq"
    with Index.create(new, Settings(), encoder_name=EMBEDDER.name, encoder_dimension=EMBEDDER.dimension) as index:
        assert starters(index) == []
        assert index.count(Chunk) == 0
    with Workspace.open(new, embedder=EMBEDDER) as empty:
        assert next_questions(empty.index, empty.questions(), "Who?") == []


def test_next_questions_belong_to_the_answers_first_passages(space: Workspace) -> None:
    def about(document_id: str) -> list[Hit]:
        chunks = [chunk for chunk in space.index.all(Chunk) if chunk.document_id == document_id]
        return [Hit(chunk, 1.0, "q") for chunk in chunks]

    for document_id in TEXTS:
        suggested = next_questions(space.index, space.questions(), "Who wrote what?", 12, evidence=about(document_id))
        assert {each.passage.document_id for each in suggested} <= {document_id}


def test_a_conversation_is_asked_in_full_in_all_four_forms(space: Workspace) -> None:
    said = [("Who wrote Don Juan?", "Lord Byron.")]

    async def awaited() -> dspy.Prediction:
        return await space.aask("Where did he live?", history=said)

    async def streamed() -> dspy.Prediction:
        return [value async for value in space.astream("Where did he live?", history=said)][-1]

    answers = [
        space.ask("Where did he live?", history=said),
        asyncio.run(awaited()),
        list(space.stream("Where did he live?", history=said))[-1],
        asyncio.run(streamed()),
    ]
    assert {answer.standalone_question for answer in answers} == {"Who wrote Don Juan? Where did he live?"}
    assert all(answer.hits[0].query == "Who wrote Don Juan? Where did he live?" for answer in answers)
    assert "standalone_question" not in space.ask("Where did Lord Byron live?", history=said)


def test_inputs_of_ones_own_reach_the_signature(space: Workspace) -> None:
    lm = DummyLM([{"answer": "A poet."}])
    for_children = AnswerQuestion.append("audience", dspy.InputField(), str)
    rag = TraditionalRAG(space.retriever("dense"), k=1, signature=for_children)
    with dspy.context(lm=lm):
        assert space.ask("Who was Byron?", rag, audience="seven-year-olds").answer == "A poet."
    assert "seven-year-olds" in str(lm.history[0]["messages"])
