"""Functions, DSPy's own retrievers and lists of texts may stand for a retriever."""

import asyncio
import copy
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import dspy
import numpy as np
import pytest
from dspy.utils import DummyLM

from kraq_dspy import Corpus
from kraq_dspy.ports import Vectors
from kraq_dspy.programs import CombinedRetrieveRAG, TraditionalRAG
from kraq_dspy.records import Chunk, Document, Hit
from kraq_dspy.retrievers import DenseRetriever, as_question_finder, as_retriever
from tests.conftest import KeywordEmbedder
from tests.programs.conftest import Library

TEXTS = ["The Rhine is a river.", "A bridge to the castle.", "Music in the castle."]


def texts(question: str) -> list[str]:
    return TEXTS


def passages(hits: list[Hit]) -> list[str]:
    return [hit.chunk.text for hit in hits]


def test_a_function_that_returns_texts_is_a_retriever() -> None:
    hits = as_retriever(texts)("castle?", 2)
    assert passages(hits) == TEXTS[:2]
    assert [(hit.score, hit.query, hit.why) for hit in hits] == [(1, "castle?", "texts"), (0.5, "castle?", "texts")]


def test_dspys_own_retrievers_are_taken() -> None:
    embeddings = dspy.retrievers.Embeddings(
        corpus=TEXTS, embedder=lambda some: np.array([[text.count("castle"), 1] for text in some], float), k=2
    )
    assert set(passages(as_retriever(embeddings)("castle", 5))) == set(TEXTS[1:])

    def model(query: str, k: int) -> list[SimpleNamespace]:
        return [SimpleNamespace(long_text=text) for text in TEXTS[:k]]

    with dspy.context(rm=model):
        assert passages(as_retriever(dspy.Retrieve(k=1))("castle", 2)) == TEXTS[:2]


def test_a_function_gets_the_options_that_its_signature_names_and_the_rest_is_seen_to() -> None:
    requests: list[tuple[str, int, Any]] = []

    def search(question: str, k: int, *, vector: Vectors | None = None) -> list[Hit]:
        requests.append((question, k, vector))
        return [
            Hit(Chunk(text, "odd" if n % 2 else "even", 0, 0, 1, text, 1), 1.0, question)
            for n, text in enumerate("abcde")
        ]

    retrieve = as_retriever(search)
    vector = np.ones(2, np.float32)
    hits = retrieve("q", 2, exclude={"a"}, filters={"document_id": "even"}, vector=vector)
    assert passages(hits) == ["c", "e"]
    assert requests == [("q", 3, vector)]


def test_a_retriever_of_this_library_stays_what_it_is(library: Library) -> None:
    dense = DenseRetriever(library.records, library.chunk_vectors, library.embedder)
    assert as_retriever(dense) is dense
    assert TraditionalRAG(dense).retrieve is dense


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        ("a text", r"'wrong' returned str \('a text'\); expected a list of hits"),
        (None, r"returned NoneType \(None\)"),
        ({"a": 1}, r"returned dict"),
        ([1], r"returned a list with int \(1\); expected hits \(kraq_dspy.extend.Hit\), texts"),
    ],
)
def test_a_reply_that_is_no_list_of_hits_or_texts_is_refused_at_the_first_question(reply: object, message: str) -> None:
    def wrong(question: str) -> object:
        return reply

    with pytest.raises(TypeError, match=message):
        TraditionalRAG(wrong)(question="q")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (7, r"The retriever is int \(7\); expected something to call"),
        (lambda: [], r"takes \(\); expected a question"),
        (lambda question, index: [], r"takes \(question, index\); expected a question, and after it any of k, exclude"),
    ],
)
def test_what_cannot_be_asked_is_refused_when_the_program_is_made(source: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        TraditionalRAG(source)


@pytest.mark.parametrize(
    ("question", "k", "error", "message"),
    [
        (None, 1, TypeError, "question is None; expected a text"),
        ("q", "3", TypeError, "k is '3' .str.; expected a whole number"),
        (" ", 1, ValueError, "expected some text"),
        ("q", 0, ValueError, "k is 0; expected 1 or more"),
    ],
)
def test_a_request_that_makes_no_sense_is_refused_by_every_kind(
    library: Library, question: Any, k: Any, error: type[Exception], message: str
) -> None:
    for retrieve in (as_retriever(texts), DenseRetriever(library.records, library.chunk_vectors, library.embedder)):
        with pytest.raises(error, match=message):
            retrieve(question, k)


class Rewriting(dspy.Module):
    """A retriever of a user's own that asks a model."""

    def __init__(self) -> None:
        super().__init__()
        self.rewrite = dspy.Predict("question -> search")

    def forward(self, question: str) -> list[str]:
        return [self.rewrite(question=question).search, str(threading.get_ident())]


def test_the_predictors_of_a_module_that_retrieves_belong_to_the_program() -> None:
    program = TraditionalRAG(Rewriting())
    assert [name for name, _ in program.named_predictors()] == ["retrieve.source.rewrite", "answer"]
    with dspy.context(lm=DummyLM([{"search": "rivers"}, {"answer": "x"}] * 2)):
        assert passages(program(question="q").hits) == ["rivers", str(threading.get_ident())]
        waited = asyncio.run(program.acall(question="q"))
    assert passages(waited.hits)[0] == "rivers"
    assert passages(waited.hits)[1] != str(threading.get_ident())


def test_copies_of_a_program_share_the_function_and_what_it_holds() -> None:
    class Index:
        def __init__(self) -> None:
            self.connection = threading.Lock()  # cannot be copied

        def __call__(self, question: str) -> list[str]:
            return TEXTS

    program = TraditionalRAG(Index())
    assert copy.deepcopy(program).retrieve("q", 1) == program.deepcopy().retrieve("q", 1) == program.retrieve("q", 1)


def test_combined_retrieval_works_on_a_function_and_a_list_of_questions(packaged: None) -> None:
    program = CombinedRetrieveRAG(texts, ["Which castle has music?", "Which river is long?"], k=3, n=1)
    with dspy.context(lm=DummyLM([{"answer": "the castle"}])):
        prediction = program(question="Where is music played in a castle?")
    assert prediction.answer == "the castle"
    assert [hit.question.text for hit in prediction.auxiliary_questions] == ["Which castle has music?"]
    assert sorted(passages(prediction.hits)) == sorted(TEXTS)


@pytest.fixture
def packaged() -> None:
    """The packaged sentence encoder, of which nothing needs to be said."""
    pytest.importorskip("torch", reason="needs torch: pip install 'kraq-dspy[transformers]'")


def test_a_corpus_in_memory_gives_retriever_and_question_finder(keyword_embedder: type[KeywordEmbedder]) -> None:
    embedder = keyword_embedder("river", "bridge", "castle", "music")
    corpus = Corpus.from_texts([*TEXTS[:2], Document("d", "", TEXTS[2], metadata={"kind": "song"})], embedder=embedder)
    assert passages(corpus.retriever("castle with music", 2)) == [TEXTS[2], TEXTS[1]]
    assert passages(corpus.retriever("castle", 3, filters={"kind": "song"})) == [TEXTS[2]]
    best = corpus.retriever("music", 1)[0].chunk
    assert best.document_id == "d"
    assert best.id not in {hit.chunk.id for hit in corpus.retriever("music", 3, exclude={best.id})}
    finder = as_question_finder(["Is there a river?", "Is there music?"], embedder)
    assert [hit.question.text for hit in finder("music", 1)] == ["Is there music?"]
    assert as_question_finder(finder) is finder


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Corpus.from_texts("one text"), "texts is one text; expected a list"),
        (lambda: Corpus.from_texts([1]), "texts holds 1, a int"),  # type: ignore[list-item]
        (lambda: as_question_finder("one?"), "expected a list of questions"),
        (lambda: as_question_finder([None]), "questions holds None, a NoneType"),
    ],
)
def test_what_is_no_text_is_refused(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        make()
