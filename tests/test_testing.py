"""The contract checks pass what keeps the contract, and say what breaks it."""

from collections.abc import Callable, Iterable
from typing import Any

import dspy
import pytest
from dspy.utils import DummyLM

from kraq_dspy import make_lm
from kraq_dspy.programs import CombinedRetrieveRAG, TraditionalRAG
from kraq_dspy.records import Chunk, Hit
from kraq_dspy.retrievers import Corpus, as_question_finder
from kraq_dspy.settings import RoleSettings
from kraq_dspy.testing import BrokenContractError, check_engine, check_program, check_retriever
from tests.conftest import KeywordEmbedder

TEXTS = ["The Rhine is a river.", "The bridge is old.", "A castle stands on the hill."]


def hits(*scores: float, twice: bool = False) -> list[Hit]:
    names = ["a" if twice else str(place) for place in range(len(scores))]
    return [Hit(Chunk(name, name, 0, 0, 1, "x", 1), score, "q") for name, score in zip(names, scores, strict=True)]


class Promising:
    """A retriever that says it keeps the contract, and returns what it was told."""

    keeps_contract = True

    def __init__(self, reply: Callable[[str, int], Any]) -> None:
        self.reply = reply

    def __call__(self, question: str, k: int, **options: Any) -> Any:
        if k < 1 or not question.strip():
            raise ValueError("expected 1 or more and some text")
        return self.reply(question, k)


def test_a_function_that_returns_texts_keeps_the_contract_once_it_is_adapted() -> None:
    check_retriever(lambda question: TEXTS, ["Which river?", "Which castle?"], k=2)


def test_a_corpus_in_memory_keeps_the_contract(keyword_embedder: type[KeywordEmbedder]) -> None:
    corpus = Corpus.from_texts(TEXTS, embedder=keyword_embedder("river", "bridge", "castle"))
    check_retriever(corpus.retriever, ["Which river?", "Which castle?"], k=2)


@pytest.mark.parametrize(
    ("reply", "says"),
    [
        (lambda question, k: "a text", "returns hits; it gave 'a text'"),
        (lambda question, k: hits(3, 2, 1), "at most k=1 hits; it gave 3"),
        (lambda question, k: hits(3, 2, twice=True)[:k], "no passage twice"),
        (lambda question, k: hits(1, 2)[:k], r"scores of a query's hits fall; they are \[1, 2\]"),
        (lambda question, k: hits(2, 1)[:k], "leaves out what is excluded"),
        (lambda question, k: [], "finds something"),
    ],
)
def test_a_retriever_that_breaks_it_is_told_how(reply: Callable[[str, int], Any], says: str) -> None:
    with pytest.raises(BrokenContractError, match=says):
        check_retriever(Promising(reply), ["Which river?"])


def test_half_of_what_was_found_must_stay_out_if_it_is_excluded() -> None:
    class Forgetful:
        """Leaves out the best passage, and no other one that is excluded."""

        keeps_contract = True

        def __call__(self, question: str, k: int, *, exclude: Iterable[str] = (), **options: Any) -> Any:
            if k < 1 or not question.strip():
                raise ValueError("expected 1 or more and some text")
            return [hit for hit in hits(5, 4, 3, 2)[:k] if hit.chunk.id != "0" or "0" not in exclude]

    with pytest.raises(BrokenContractError, match=r"leaves out what is excluded; \['1'\] came back"):
        check_retriever(Forgetful(), ["Which river?"], k=4)


def test_a_retriever_that_takes_everything_is_refused(keyword_embedder: type[KeywordEmbedder]) -> None:
    whole = Corpus.from_texts(TEXTS, embedder=keyword_embedder("river")).retriever

    class Lenient:
        keeps_contract = True

        def __call__(self, question: str, k: int, **options: Any) -> Any:
            return whole(question.strip() or "river", max(1, k), **options)

    with pytest.raises(BrokenContractError, match="k below 1 raises ValueError"):
        check_retriever(Lenient(), ["Which river?"])


def test_the_embedded_model_keeps_the_contract_of_models() -> None:
    check_engine(make_lm(RoleSettings()))


def test_a_model_that_changes_its_mind_is_refused() -> None:
    with pytest.raises(BrokenContractError, match="the same request alike"):
        check_engine(DummyLM([{"answer": str(number)} for number in range(99)]))


def test_programs_of_this_library_keep_the_contract_of_programs(keyword_embedder: type[KeywordEmbedder]) -> None:
    embedder = keyword_embedder("river", "bridge", "castle")
    corpus = Corpus.from_texts(TEXTS, embedder=embedder)
    questions = as_question_finder(["Which bridges are there?", "Which castles are there?"], embedder)
    with dspy.context(lm=make_lm(RoleSettings())):
        check_program(TraditionalRAG(lambda question: TEXTS), "Which river is there?")
        check_program(CombinedRetrieveRAG(corpus.retriever, questions, k=3), "Which river is there?")


def test_a_program_that_breaks_it_is_told_how() -> None:
    class Bare(dspy.Module):
        def __init__(self) -> None:
            super().__init__()
            self.answer = dspy.Predict("question -> answer")

        def forward(self, question: str) -> dspy.Prediction:
            return self.answer(question=question)

    class Remembering(Bare):
        def forward(self, question: str) -> dspy.Prediction:
            self.last = question
            return dspy.Prediction(answer=self.answer(question=question).answer, hits=[])

    with dspy.context(lm=make_lm(RoleSettings())):
        with pytest.raises(BrokenContractError, match="`hits`, its evidence"):
            check_program(Bare(), "Which river is there?")
        with pytest.raises(BrokenContractError, match=r"does not change itself.*\['last'\]"):
            check_program(Remembering(), "Which river is there?")
