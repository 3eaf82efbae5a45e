"""Runs QA-RAG over a retriever; replies are told apart by the field that the prompt asks for first."""

import json
from collections.abc import Sequence
from typing import Any

import dspy
import pytest
from dspy.lm15 import Request, Response
from dspy.utils import DummyLM

from kraq_dspy.errors import ConfigError, ServerDownError
from kraq_dspy.programs import QARAG, TraditionalRAG
from kraq_dspy.programs.qa_rag import UNKNOWN
from kraq_dspy.records import QAPair
from kraq_dspy.retrievers import DenseRetriever
from tests.programs.conftest import Library

QUESTION = "Which castle has music?"
HALL = QAPair("Where is music in the castle?", "In the hall.")
KEEP = QAPair("Where is the castle?", "On the hill.")


class Stored:
    """Pairs of some chunks; keeps what was asked for."""

    def __init__(self, pairs: dict[str, tuple[QAPair, ...]]) -> None:
        self.pairs = pairs
        self.chunk_ids: list[str] = []

    def pairs_of(self, chunk_ids: Sequence[str]) -> dict[str, tuple[QAPair, ...]]:
        self.chunk_ids += chunk_ids
        return {chunk_id: self.pairs[chunk_id] for chunk_id in chunk_ids if chunk_id in self.pairs}


def as_json(*pairs: QAPair) -> str:
    return json.dumps([{"question": pair.question, "answer": pair.answer} for pair in pairs])


def model(changes: dict[str, dict[str, Any]] | None = None, *, valid: str = "yes") -> DummyLM:
    """Answers "the hall"; splits the question in two; makes one pair of each of the two best passages."""
    replies: dict[str, dict[str, Any]] = {
        "`[[ ## valid ## ]]`": {"valid": valid},
        "`[[ ## answer ## ]]`": {"answer": "the hall"},
        "`[[ ## sub_questions ## ]]`": {"sub_questions": '["Which castle is there?", " ", "Where is music?"]'},
        "Music in the castle.": {"pairs": as_json(HALL, HALL, QAPair("Empty?", " "))},
        "The castle on the hill.": {"pairs": as_json(KEEP)},
        "pairs": {"pairs": "[]"},
    }
    return DummyLM({**replies, **(changes or {})})


def prompts(lm: DummyLM, field: str) -> list[str]:
    return [
        content
        for entry in lm.history
        if f"`[[ ## {field} ## ]]`" in (content := entry["messages"][-1]["content"]).rpartition("Respond")[2]
    ]


@pytest.fixture
def dense(library: Library) -> DenseRetriever:
    return DenseRetriever(library.records, library.chunk_vectors, library.embedder)


def test_type1_answers_from_the_parts_of_the_question_and_the_pairs_of_the_passages(dense: DenseRetriever) -> None:
    lm = model()
    with dspy.context(lm=lm):
        prediction = QARAG(dense, k=2, variant="type1")(question=QUESTION)
    assert prediction.answer == "the hall"
    assert prediction.sub_questions == ["Which castle is there?", "Where is music?"]
    assert prediction.pairs == [HALL, KEEP]
    assert [hit.chunk.title for hit in prediction.hits] == ["hall", "keep"]
    [prompt] = prompts(lm, "answer")
    assert "Where is music in the castle?\\nIn the hall." in prompt
    assert "Which castle is there?" in prompt
    assert "Music in the castle." not in prompt
    assert (prediction.n_looked_up, prediction.n_made, prediction.n_failed) == (0, 2, 0)
    assert prediction.valid is None
    assert set(prediction.timings) == {"retrieve", "plug_ins", "answer", "wall"}


def test_type2_keeps_an_answer_that_is_judged_right_and_replaces_one_that_is_not(dense: DenseRetriever) -> None:
    with dspy.context(lm=model()):
        right = QARAG(dense, k=2)(question=QUESTION)
    with dspy.context(lm=(lm := model(valid="no"))):
        wrong = QARAG(dense, k=2)(question=QUESTION)
    assert (right.answer, right.valid) == ("the hall", True)
    assert (wrong.answer, wrong.valid, wrong.response) == (UNKNOWN, False, "the hall")
    assert "In the hall." in prompts(lm, "valid")[0]


def test_v_is_traditional_rag(dense: DenseRetriever) -> None:
    with dspy.context(lm=(lm := model())):
        plain = QARAG(dense, k=2, variant="v")(question=QUESTION)
        prompt = lm.history[-1]["messages"]
        traditional = TraditionalRAG(dense, k=2)(question=QUESTION)
        assert lm.history[-1]["messages"] == prompt
    assert (plain.answer, plain.hits) == (traditional.answer, traditional.hits)
    assert len(lm.history) == 2


def test_pairs_that_were_made_in_advance_are_not_asked_for_again(dense: DenseRetriever, library: Library) -> None:
    stored = Stored({library.id("hall"): (HALL,)})
    with dspy.context(lm=(lm := model())):
        prediction = QARAG(dense, stored, k=2, variant="type1")(question=QUESTION)
    assert stored.chunk_ids == [library.id("hall"), library.id("keep")]
    assert (prediction.n_looked_up, prediction.n_made) == (1, 1)
    assert prediction.pairs == [HALL, KEEP]
    assert [("The castle on the hill." in prompt) for prompt in prompts(lm, "pairs")] == [True]


def test_a_passage_without_pairs_stands_for_itself_and_a_question_without_parts_too(dense: DenseRetriever) -> None:
    nothing = {"pairs": "[]"}
    lm = model({"Music in the castle.": nothing, "`[[ ## sub_questions ## ]]`": {"sub_questions": "[]"}})
    with dspy.context(lm=lm):
        prediction = QARAG(dense, k=2, variant="type1")(question=QUESTION)
    assert prediction.pairs == [KEEP]
    assert prediction.sub_questions == [QUESTION]
    assert "hall\\nMusic in the castle." in prompts(lm, "answer")[0]


def test_a_reply_that_cannot_be_read_costs_its_passage_alone_and_is_counted(dense: DenseRetriever) -> None:
    lm = model({"Music in the castle.": {"nothing": "of use"}})
    with dspy.context(lm=lm):
        prediction = QARAG(dense, k=2, variant="type1")(question=QUESTION)
    assert (prediction.n_made, prediction.n_failed) == (1, 1)
    assert prediction.pairs == [KEEP]
    assert "Music in the castle." in prompts(lm, "answer")[0]


class Down:
    supports_function_calling = supports_reasoning = supports_response_schema = False
    supported_params = frozenset[str]()

    def complete(self, request: Request) -> Response:
        raise ServerDownError("nobody answers")


def test_a_server_that_is_down_ends_the_question(dense: DenseRetriever) -> None:
    with dspy.context(lm=dspy.LM("down", engine=Down(), cache=False)), pytest.raises(ServerDownError):
        QARAG(dense, k=2)(question=QUESTION)


def test_no_passages_are_no_error(dense: DenseRetriever, library: Library) -> None:
    library.chunk_vectors.delete(library.chunk_vectors.ids())
    with dspy.context(lm=model()):
        prediction = QARAG(dense)(question=QUESTION)
    assert (prediction.hits, prediction.pairs, prediction.answer) == ([], [], "the hall")


def test_bad_settings_are_refused(dense: DenseRetriever) -> None:
    with pytest.raises(ValueError, match="k is 0"):
        QARAG(dense, k=0)
    with pytest.raises(ConfigError, match=r"'type3'.*v, type1, type2"):
        QARAG(dense, variant="type3")
