"""Applies metrics of others, DSPy's own among them, to the rows and predictions of this library."""

from decimal import Decimal
from fractions import Fraction
from typing import Any

import dspy
import numpy as np
import pytest
from dspy.utils.dummies import DummyLM

from kraq_dspy.errors import EvaluationError
from kraq_dspy.eval import evaluate, own_metric
from kraq_dspy.records import Chunk, Hit

ROWS = [
    {"question": "Who founded Tarnvik?", "answer": "Jonas Berg"},
    {"question": "Who sails?", "answer": "Mira Tolan"},
]
HITS = [Hit(Chunk("c", "d", 0, 0, 0, "Jonas Berg founded Tarnvik.", 0), 1.0, "q")]


def program(question: str) -> dspy.Prediction:
    return dspy.Prediction(answer="Jonas Berg", hits=HITS)


class Program(dspy.Module):
    def forward(self, question: str) -> dspy.Prediction:
        return program(question)


@pytest.mark.parametrize(
    ("value", "score"),
    [
        (np.float32(0.5), 0.5), (np.float64(0.5), 0.5), (np.int64(1), 1.0), (np.bool_(True), 1.0), (np.array(0.5), 0.5),
        (Decimal("0.5"), 0.5), (Fraction(1, 2), 0.5),
        (dspy.Prediction(score=np.float32(0.5)), 0.5), ({"score": 0.5, "reason": "half"}, 0.5),
    ],
)  # fmt: skip
def test_numbers_of_every_library_are_numbers(value: Any, score: float) -> None:
    metric = own_metric(lambda example, prediction: value, name="own")
    assert metric(dspy.Example(question="Who?"), dspy.Prediction(answer="")) == score


def test_a_tensor_of_one_number_is_a_number() -> None:
    import torch  # seconds, so not where tests are collected

    values = [torch.tensor(0.5), torch.tensor(True), torch.tensor([1.0, 2.0])]
    metric = own_metric(lambda example, prediction: values[example.number], name="own")
    scored = [metric(dspy.Example(question="Who?", number=number), dspy.Prediction(answer="")) for number in (0, 1)]
    assert scored == [0.5, 1.0]
    with pytest.raises(EvaluationError, match="expected a finite number"):
        metric(dspy.Example(question="Who?", number=2), dspy.Prediction(answer=""))


@pytest.mark.parametrize("value", ["0.8", None, np.float32("nan"), np.array([0.5, 0.5]), [1]])
def test_what_is_no_number_is_refused(value: Any) -> None:
    metric = own_metric(lambda example, prediction: value, name="own")
    with pytest.raises(EvaluationError, match="expected a finite number"):
        metric(dspy.Example(question="Who?"), dspy.Prediction(answer=""))


@pytest.mark.parametrize("source", ["rows", "examples"])
def test_a_metric_of_dspy_reads_the_answer_of_a_row(source: str) -> None:
    devset = ROWS if source == "rows" else [dspy.Example(**row).with_inputs("question") for row in ROWS]
    result = evaluate(Program(), devset, [dspy.evaluate.answer_exact_match])
    assert result.mean("answer_exact_match") == 0.5


def test_a_metric_reads_passages_under_the_names_that_others_use() -> None:
    result = evaluate(Program(), ROWS, [dspy.evaluate.answer_passage_match])
    assert result.mean("answer_passage_match") == 0.5


def test_a_row_keeps_its_own_fields() -> None:
    def metric(example: dspy.Example, prediction: dspy.Prediction, trace: Any = None) -> float:
        return float(example.ground_truth == "Berg" and example.level == "easy" and example.answer == "Berg")

    rows = [{"query": "Who?", "ground_truth": "Berg", "level": "easy"}]
    assert evaluate(Program(), rows, [metric]).mean("metric") == 1.0


def test_several_gold_answers_are_a_list_to_a_metric_of_dspy() -> None:
    rows = [{"question": "Who?", "answers": {"text": ["J. Berg", "Jonas Berg"], "answer_start": [0, 0]}}]
    assert evaluate(Program(), rows, [dspy.evaluate.answer_exact_match]).mean("answer_exact_match") == 1.0


def test_semantic_f1_asks_its_model_about_the_row() -> None:
    lm = DummyLM([{"reasoning": "The same.", "recall": "1.0", "precision": "0.5"}] * 2)
    with dspy.context(lm=lm):
        result = evaluate(Program(), ROWS, [dspy.evaluate.SemanticF1()])
    assert result.mean("SemanticF1") == pytest.approx(2 / 3)
    assert "Jonas Berg" in str(lm.history[0]["messages"][-1]["content"])
