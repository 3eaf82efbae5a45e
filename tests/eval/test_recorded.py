"""Answers that were given already are scored without a system, in the columns of RAGAS, DeepEval and TruLens."""

import json
from pathlib import Path
from typing import Any

import dspy
import pytest
from dspy.utils.dummies import DummyLM

from kraq_dspy.errors import ConfigError, EvaluationError
from kraq_dspy.eval import evaluate
from kraq_dspy.eval.gate import under_checks
from kraq_dspy.eval.judges import AnswerRelevancy, ContextPrecision
from tests.conftest import KeywordEmbedder, WarmShell

PASSAGES = ["Ada Lovelace was born in London.", "Babbage built engines."]
RAGAS = {"user_input": "Where was Ada born?", "response": "In London", "retrieved_contexts": PASSAGES,
         "reference": "London"}  # fmt: skip
OLD_RAGAS = {"question": "Where was Ada born?", "answer": "In London", "contexts": PASSAGES, "ground_truth": "London"}
DEEPEVAL = {"input": "Where was Ada born?", "actual_output": "In London", "retrieval_context": PASSAGES,
            "expected_output": "London"}  # fmt: skip
TRULENS = {"input": "Where was Ada born?", "output": "In London", "contexts": PASSAGES, "expected_answer": "London"}


@pytest.mark.parametrize(
    "row", [RAGAS, OLD_RAGAS, DEEPEVAL, TRULENS], ids=["ragas", "ragas-0.1", "deepeval", "trulens"]
)
def test_rows_of_each_tool_need_no_system(row: dict[str, Any]) -> None:
    result = evaluate(None, [row])

    assert [each.answer for each in result.rows] == ["In London"]
    assert result.mean("substring_match") == result.mean("answer_found") == 1.0
    assert result.mean("grounded") == 1.0
    assert result.mean("exact_match") == 0.0
    assert "recall" not in result.summary.metrics


def test_recall_of_recorded_passages_is_by_the_ids_of_their_documents() -> None:
    row = {**RAGAS, "retrieved_context_ids": ["ada", "babbage"], "reference_context_ids": ["ada", "london"]}

    assert evaluate(None, [row]).mean("recall") == 0.5
    rows = evaluate(None, [row, {**row, "id": "b", "retrieved_context_ids": ["ada"]}]).rows
    [broken] = [each for each in rows if each.question_id == "b"]
    assert broken.failure is not None
    assert "2 passages and 1 id" in broken.failure


def test_rows_without_an_answer_are_named() -> None:
    with pytest.raises(ConfigError, match=r"no row has a recorded answer.*actual_output"):
        evaluate(None, [{"question": "Who?", "answer": "Ada"}])

    [failed] = evaluate(None, [RAGAS, {**RAGAS, "response": ""}]).failed("substring_match")
    assert failed.failure is not None
    assert "The row has no recorded answer" in failed.failure


def test_a_file_is_scored_by_type_and_judged_by_type(kraq: WarmShell, tmp_path: Path) -> None:
    rows = [{**RAGAS, "type": "fact"}, {**RAGAS, "type": "other", "response": "In Paris"}]
    (tmp_path / "given.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    (tmp_path / "none.csv").write_text("question,answer\nWho?,Ada\n", "utf-8")
    words = ("eval", "given.jsonl", "--out", "run", "--fail-under", "substring_match[fact]=.9")

    passed = kraq(*words, cwd=tmp_path)
    failed = kraq(*words, "--fail-under", "substring_match[other]=.1", "--json", cwd=tmp_path)
    refused = kraq("eval", "none.csv", cwd=tmp_path)

    assert passed.returncode == 0, passed.stderr
    assert "Scores by type of question" in passed.stdout
    assert "substring_match of recorded is 1.000 in 1 question of the type fact, at least 0.9" in passed.stdout
    assert "Scores by type of question" in (tmp_path / "run" / "report.html").read_text("utf-8")
    assert failed.returncode == 3
    assert [check["passed"] for check in json.loads(failed.stdout)["checks"]] == [True, False]
    assert refused.returncode == 2
    assert "no row has a recorded answer" in " ".join(refused.stderr.split())


def test_a_threshold_of_a_type_that_no_question_has_names_those_there_are() -> None:
    run = evaluate(None, [{**RAGAS, "type": "fact"}]).summary

    with pytest.raises(EvaluationError, match="No question has the type 'facts'; there are: fact"):
        under_checks(run, {"substring_match[facts]": 0.5})


@pytest.mark.parametrize(
    "answer",
    [lambda question: "London", lambda question: {"answer": "London", "contexts": PASSAGES},
     lambda question: dspy.Prediction(response="London")],
    ids=["text", "mapping", "prediction"],
)  # fmt: skip
def test_a_function_that_answers_is_a_system(answer: Any) -> None:
    result = evaluate({"mine": answer}, [{"question": "Where was Ada born?", "answer": "London"}], ["exact_match"])

    assert result.mean("exact_match") == 1.0


def test_a_function_that_finds_stays_a_retriever_and_one_that_says_what_it_returns_is_not_tried() -> None:
    asked: list[str] = []

    def answers(question: str) -> str:
        asked.append(question)
        return "London"

    row = {"question": "Where was Ada born?", "answer": "London"}
    found = evaluate({"find": lambda question: PASSAGES, "find some": lambda question, k: PASSAGES[:k]}, [row])
    answered = evaluate(answers, [row], ["exact_match"])

    assert found.mean("answer_found", "find") == found.mean("answer_found", "find some") == 1.0
    assert answered.mean("exact_match") == 1.0
    assert asked == ["Where was Ada born?"]


def test_context_precision_is_the_mean_precision_at_the_places_of_useful_passages() -> None:
    def said(*, attributed: bool) -> dict[str, str]:
        return {"statements": json.dumps([{"statement": "London", "attributed": attributed}])}

    lm = DummyLM([said(attributed=False), said(attributed=True), said(attributed=True)])
    example = dspy.Example(question="Where?", answers=["London"], passages=["a", "b", "c"])

    with dspy.context(lm=lm):
        score = ContextPrecision().score(example, dspy.Prediction())

    assert score == pytest.approx((1 / 2 + 2 / 3) / 2)
    assert len(lm.history) == 3


def test_answer_relevancy_is_the_cosine_with_the_question_that_the_answer_would_answer(
    keyword_embedder: type[KeywordEmbedder],
) -> None:
    judge = AnswerRelevancy()
    judge.embedder = keyword_embedder("born", "engines")
    example = dspy.Example(question="Where was Ada born?")

    def score(asked: str, answer: str) -> float:
        with dspy.context(lm=DummyLM([{"question": asked, "answer": "x"}])):
            return judge.score(example, dspy.Prediction(answer=answer))

    assert score("In which city was she born?", "She was born in London.") == pytest.approx(1.0)
    assert score("Who built engines?", "Babbage built engines.") == pytest.approx(0.0)
    assert score("Who?", "I do not know.") == 0.0
