"""Tests what ends a compile before it is done: budgets, servers that go down, metrics and replies of no use."""

from collections.abc import Callable
from pathlib import Path

import dspy
import pytest
from dspy.lm15 import Request, Response

from kraq_dspy.errors import BudgetExceededError, EvaluationError, ModelError, ServerDownError
from kraq_dspy.optimize import Method, Resources, Sizes, Target, compile_program, make_target
from kraq_dspy.optimize.rows import Row
from kraq_dspy.signatures import AnswerQuestion, DraftAnswer
from tests.optimize import learner
from tests.optimize.learner import Learner

TOY = Sizes(demos=2, candidates=3, rounds=2, threads=2)


def test_a_budget_stops_it_in_the_middle_and_the_next_run_goes_on(
    models: dict[str, dspy.LM], engine: Learner, answering: Callable[[int], list[Row]], tmp_path: Path
) -> None:
    class Twice(dspy.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = dspy.Predict(AnswerQuestion), dspy.Predict(DraftAnswer)

        def forward(self, question: str, passages: list[str]) -> dspy.Prediction:
            self.first(question=question, passages=passages)
            return dspy.Prediction(answer=self.second(question=question, passages=passages).response)

    answers = make_target("answering")
    target = Target("twice", Twice(), answers.rows, answers.metrics)
    out = tmp_path / "twice.json"
    with pytest.raises(BudgetExceededError, match=r"Stopped after 2[34] calls.*--budget-calls = 24.*to resume"):
        compile_program(
            target,
            answering(16),
            method=Method(sizes=TOY, budget_calls=24),
            resources=Resources(lm=models),
            out=out,
        )
    assert engine.calls == 24
    done = compile_program(
        target,
        answering(16),
        method=Method(sizes=TOY, budget_calls=24),
        resources=Resources(lm=models),
        out=out,
        force=True,
    )
    assert done.replayed >= 24
    assert engine.calls == 24 + done.usage.calls


class FailingEngine:
    """Answers as another engine does until it has answered `good` times."""

    supports_function_calling = supports_reasoning = supports_response_schema = False
    supported_params = frozenset({"temperature", "max_tokens"})

    def __init__(self, engine: Learner, good: int, error: Exception) -> None:
        self.engine, self.good, self.error, self.calls = engine, good, error, 0

    def __deepcopy__(self, memo: object) -> "FailingEngine":
        return self

    def complete(self, request: Request) -> Response:
        self.calls += 1
        if self.calls > self.good:
            raise self.error
        return self.engine.complete(request)


@pytest.mark.parametrize("optimizer", ["bootstrap", "gepa", "mipro"])
def test_a_server_that_goes_down_ends_the_compile_and_is_not_taken_for_wrong_answers(
    optimizer: str, engine: Learner, answering: Callable[[int], list[Row]]
) -> None:
    failing = FailingEngine(engine, 10, ServerDownError("the server is down"))
    with pytest.raises(ServerDownError):
        compile_program(
            "answering",
            answering(16),
            method=Method(optimizer, sizes=TOY),
            resources=Resources(lm={"default": learner.learner_model(failing)}),
            metric="token_f1",
        )
    assert failing.calls <= 14  # those in flight; later ones are not sent


def test_a_metric_that_cannot_score_ends_the_compile(
    models: dict[str, dspy.LM], answering: Callable[[int], list[Row]]
) -> None:
    with pytest.raises(EvaluationError, match="returned None"):
        compile_program(
            "answering",
            answering(16),
            method=Method(sizes=TOY),
            resources=Resources(lm=models),
            metric=lambda example, prediction: None,
        )


def test_a_model_that_answers_nothing_readable_is_an_error_and_no_score(answering: Callable[[int], list[Row]]) -> None:
    failing = FailingEngine(learner.Learner(), 0, ValueError("garbled"))
    with pytest.raises(ModelError, match=r"None of 8 rows could be answered.*garbled"):
        compile_program(
            "answering",
            answering(16),
            method=Method(sizes=TOY),
            resources=Resources(lm={"default": learner.learner_model(failing)}),
        )
