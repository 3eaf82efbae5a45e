"""Answers that are no text, and those of other scripts, are matched as a person reads them."""

import datetime
import enum
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import dspy
import pytest

from kraq_dspy import Corpus, make_lm
from kraq_dspy.errors import EvaluationError
from kraq_dspy.eval import evaluate, exact_match
from kraq_dspy.eval.metrics import answers
from kraq_dspy.programs import TraditionalRAG

Ship = enum.Enum("Ship", {"alma": "Alma", "first": 1})

SAME: list[tuple[Any, Any]] = [
    (1962, 1962), (40.0, "40"), (1962, "1962"), ("1962", 1962), (True, "yes"), (False, "no"), ("Alma", Ship.alma),
    (Ship.first, 1), (datetime.date(2024, 3, 5), "2024-03-05"), (datetime.datetime(2024, 3, 5), "2024-03-05"),
    (Decimal("2.50"), Decimal("2.50")), (0, 0), (["Oslo", "Rome"], "Rome"), ("red, green", ["red", "green"]),
]  # fmt: skip


@pytest.mark.parametrize(("gold", "predicted"), SAME, ids=str)
def test_a_typed_answer_is_matched_as_it_is_written(gold: Any, predicted: Any) -> None:
    example = dspy.Example(question="q?", answer=gold).with_inputs("question")
    assert exact_match(example, dspy.Prediction(answer=predicted)) == 1.0


@pytest.mark.parametrize(("gold", "predicted"), [(1962, 1963), (40.5, 40), (True, False), (Ship.alma, 1)], ids=str)
def test_another_typed_answer_is_wrong(gold: Any, predicted: Any) -> None:
    assert exact_match(dspy.Example(answer=gold), dspy.Prediction(answer=predicted)) == 0.0


@pytest.mark.parametrize("gold", [None, "", []])
def test_no_gold_is_an_error_and_so_is_an_answer_of_another_type(gold: Any) -> None:
    with pytest.raises(EvaluationError, match="no `answers`"):
        exact_match(dspy.Example(answer=gold), dspy.Prediction(answer="x"))
    with pytest.raises(EvaluationError, match="expected a string"):
        exact_match(dspy.Example(answer="x"), dspy.Prediction(answer=object()))


def answering(answer: str) -> Callable[[str], str]:
    return lambda question: answer


def test_numbers_and_days_that_pandas_keeps_are_gold() -> None:
    pandas = pytest.importorskip("pandas")
    for given, right in (([1962, None], "1962"), ([40.0], "40"), (pandas.to_datetime(["2024-03-05"]), "2024-03-05")):
        frame = pandas.DataFrame({"question": [f"q{i}?" for i in range(len(given))], "answer": given})
        assert evaluate({"a": answering(right)}, frame, "exact_match").mean("exact_match") == 1.0


@pytest.mark.parametrize(
    ("gold", "predicted"),
    [
        ("\u0661\u0662\u0663", "123"),
        ("\u096a\u0968", "42"),
        ("\u0643\u062a\u0627\u0628", "\u0643\u0650\u062a\u0627\u0628"),  # Arabic, with a vowel mark
        ("\u05e9\u05c1\u05b8\u05dc\u05d5\u05b9\u05dd", "\u05e9\u05dc\u05d5\u05dd"),  # Hebrew, with points
        ("\u0130stanbul", "istanbul"),
        ("STRASSE", "Stra\u00dfe"),
    ],
)
def test_digits_marks_and_capitals_of_other_scripts_are_the_same(gold: str, predicted: str) -> None:
    assert answers.exact_match([gold], predicted) == answers.token_f1([gold], predicted) == 1.0


@pytest.mark.parametrize(("gold", "predicted"), [("caf\u00e9", "cafe"), ("\u0915\u093f", "\u0915"), ("1234", "123")])
def test_marks_that_writers_do_not_leave_out_count(gold: str, predicted: str) -> None:
    assert answers.exact_match([gold], predicted) == 0.0


def test_metrics_of_evidence_of_dspy_find_the_passages() -> None:
    program = TraditionalRAG(Corpus.from_texts(["The ferry Alma was built by Ivo Kern in 1962."]).retriever)
    program.set_lm(make_lm("embedded"))
    prediction = program(question="Who built the ferry Alma?")
    assert prediction.context == prediction.passages == ["The ferry Alma was built by Ivo Kern in 1962."]
    match = dspy.evaluate.answer_passage_match
    assert match(dspy.Example(answer="Ivo Kern"), prediction)
    assert match(dspy.Example(answer=["Mira Tolan", "Ivo Kern"]), prediction)
    assert not match(dspy.Example(answer="Mira Tolan"), prediction)
    assert (
        dspy.Evaluate(
            devset=[dspy.Example(question="Who built the ferry Alma?", answer="1962").with_inputs("question")],
            metric=match,
            num_threads=1,
        )(program).score
        == 100.0
    )
    assert "context" not in prediction.toDict()
    with pytest.raises(AttributeError):
        _ = prediction.contexts


def test_a_file_whose_gold_stands_in_an_unknown_column_names_its_columns() -> None:
    rows = [{"query": "who?", "expected_response": "x"}]
    evaluation = evaluate({"a": lambda question: "x"}, rows, ["exact_match"])
    assert any("'expected_response'" in note for note in evaluation.notes)
    assert "'expected_response'" in str(evaluation)
    assert not any("right answer" in note for note in evaluate({"a": lambda question: "x"}, rows, ["grounded"]).notes)
