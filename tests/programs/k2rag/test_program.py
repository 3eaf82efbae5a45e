"""Runs K2RAG over a real vector store; the graph's context is given, and replies are told apart by their fields."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import dspy
import pytest
from dspy.lm15 import Request, Response
from dspy.utils import DummyLM

from kraq_dspy.errors import ServerDownError
from kraq_dspy.extend import KraqAdapter
from kraq_dspy.programs import K2RAG, LocalContext, Shorten
from kraq_dspy.retrievers import HybridRetriever
from tests.programs.conftest import Library

QUESTION = "Where is music?"
# Two pieces of at most 128 tokens: the first is about castles, the second about bridges.
ACCOUNT = "\n\n".join(" ".join(f"The {what} of {year} is old." for year in range(16)) for what in ("castle", "bridge"))

PIECE = "[[ ## information ## ]]\n"


def graph(question: str) -> LocalContext:
    shown = {"reports": ["A town."], "entities": ["Keep: a castle"], "relationships": [], "passages": []}
    return LocalContext((), (), (), (), shown, 10)


def model(changes: dict[str, dict[str, Any]] | None = None) -> DummyLM:
    """The first of these texts that a prompt has decides the reply."""
    replies: dict[str, dict[str, Any]] = {
        "`[[ ## account ## ]]`": {"account": ACCOUNT},
        "beginning with [[ ## account ## ]]": {"account": ACCOUNT},  # as the adapter of the library asks
        QUESTION: {"answer": "in the hall"},
        "Which castle is there?": {"answer": "the keep"},
        "Which bridge is there?": {"answer": "the gate"},
        f"{PIECE}The castle": {"sub_question": "Which castle is there?"},
        f"{PIECE}The bridge": {"sub_question": "Which bridge is there?"},
    }
    return DummyLM({**(changes or {}), **replies, **(changes or {})})


def asked(lm: DummyLM, field: str) -> list[str]:
    prompts = [entry["messages"][-1]["content"] for entry in lm.history]
    return [prompt for prompt in prompts if f"[[ ## {field} ## ]]" in prompt.rpartition("Respond")[2]]


@pytest.fixture
def hybrid(library: Library) -> HybridRetriever:
    return HybridRetriever(library.records, library.chunk_vectors, library.embedder, weight=0.8)


@pytest.fixture
def shorten() -> Shorten:
    """Keeps the first words; asks nobody."""

    class First:
        name = "first"

        def __call__(self, text: str, words: int) -> str:
            return " ".join(text.split()[:words])

    return Shorten(First(), share=0.1, least_tokens=20)


def test_each_piece_of_the_account_becomes_a_question_with_passages_and_an_answer_of_its_own(
    hybrid: HybridRetriever, shorten: Shorten, library: Library
) -> None:
    with dspy.context(lm=(lm := model())):
        prediction = K2RAG(hybrid, graph, shorten, k=2)(question=QUESTION)
    assert prediction.sub_questions == ["Which castle is there?", "Which bridge is there?"]
    assert [(each.question, each.answer) for each in prediction.sub_answers] == [
        ("Which castle is there?", "the keep"),
        ("Which bridge is there?", "the gate"),
    ]
    castle, bridge = (each.hits for each in prediction.sub_answers)
    assert list(castle) == hybrid("Which castle is there?", 2)
    assert list(bridge) == hybrid("Which bridge is there?", 2)
    assert prediction.answer == "in the hall"
    assert prediction.account == ACCOUNT
    assert prediction.context == [shorten(text=ACCOUNT).shortened, "the keep\nthe gate"]
    final = asked(lm, "answer")[-1]
    assert QUESTION in final
    assert "the gate" in final
    assert prediction.n_failed == 0
    assert set(prediction.timings) == {"graph", "sub_questions", "sub_answers", "answer", "wall"}


def test_the_best_passage_of_each_sub_question_comes_before_the_second_of_any(
    hybrid: HybridRetriever, shorten: Shorten
) -> None:
    with dspy.context(lm=model()):
        prediction = K2RAG(hybrid, graph, shorten, k=4)(question=QUESTION)
    castle, bridge = (each.hits for each in prediction.sub_answers)
    assert [hit.chunk.id for hit in prediction.hits[:2]] == [castle[0].chunk.id, bridge[0].chunk.id]
    ids = [hit.chunk.id for hit in prediction.hits]
    assert len(ids) == len(set(ids))
    assert set(ids) == {hit.chunk.id for hit in (*castle, *bridge)}


@pytest.mark.parametrize("silent", [True, False])
def test_without_an_account_the_question_itself_is_looked_up(
    hybrid: HybridRetriever, shorten: Shorten, silent: bool
) -> None:
    lm = model({"`[[ ## account ## ]]`": {"account": " "}})
    with dspy.context(lm=lm):
        prediction = K2RAG(hybrid, graph if silent else None, shorten, k=2)(question=QUESTION)
    assert prediction.sub_questions == [QUESTION]
    assert prediction.account_summary == ""
    assert list(prediction.sub_answers[0].hits) == hybrid(QUESTION, 2)
    assert len(asked(lm, "account")) == silent


def test_a_reply_that_cannot_be_read_costs_its_sub_question_alone(hybrid: HybridRetriever, shorten: Shorten) -> None:
    unreadable = {"nothing": "of use"}
    with dspy.context(lm=model({f"{PIECE}The castle": unreadable})):
        no_question = K2RAG(hybrid, graph, shorten, k=2)(question=QUESTION)
    assert no_question.sub_questions == ["Which bridge is there?"]
    assert no_question.n_failed == 1
    with dspy.context(lm=model({"Which bridge is there?": unreadable})):
        no_answer = K2RAG(hybrid, graph, shorten, k=2)(question=QUESTION)
    assert [each.answer for each in no_answer.sub_answers] == ["the keep"]
    assert (no_answer.n_failed, no_answer.answer) == (1, "in the hall")


def test_an_account_that_cannot_be_read_leaves_the_question_itself(hybrid: HybridRetriever, shorten: Shorten) -> None:
    with dspy.context(lm=model({"`[[ ## account ## ]]`": {"nothing": "of use"}})):
        prediction = K2RAG(hybrid, graph, shorten, k=2)(question=QUESTION)
    assert (prediction.sub_questions, prediction.n_failed) == ([QUESTION], 1)
    assert prediction.answer


class Down:
    supports_function_calling = supports_reasoning = supports_response_schema = False
    supported_params = frozenset[str]()

    def complete(self, request: Request) -> Response:
        raise ServerDownError("nobody answers")


def test_a_server_that_is_down_ends_the_question(hybrid: HybridRetriever, shorten: Shorten) -> None:
    with dspy.context(lm=dspy.LM("down", engine=Down(), cache=False)), pytest.raises(ServerDownError):
        K2RAG(hybrid, None, shorten)(question=QUESTION)


def test_an_account_that_cannot_be_shortened_is_used_as_it_is(hybrid: HybridRetriever) -> None:
    with dspy.context(lm=model({"`[[ ## shortened ## ]]`": {"nothing": "of use"}})):
        prediction = K2RAG(hybrid, graph, Shorten(share=0.1), k=2)(question=QUESTION)
    assert prediction.account_summary == ACCOUNT
    assert prediction.answer == "in the hall"


def test_one_program_serves_many_threads(hybrid: HybridRetriever, shorten: Shorten) -> None:
    program = K2RAG(hybrid, graph, shorten, k=2)
    program.set_lm(model())
    alone = program(question=QUESTION)
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda question: program(question=question), [QUESTION] * 8))
    assert all(each.hits == alone.hits and each.answer == alone.answer for each in together)


def test_fewer_than_one_passage_is_refused(hybrid: HybridRetriever, shorten: Shorten) -> None:
    with pytest.raises(ValueError, match="k is 0"):
        K2RAG(hybrid, None, shorten, k=0)


def test_it_works_with_the_adapter_of_the_library(hybrid: HybridRetriever, shorten: Shorten) -> None:
    with dspy.context(lm=model(), adapter=KraqAdapter()):
        assert K2RAG(hybrid, graph, shorten, k=2)(question=QUESTION).answer == "in the hall"
