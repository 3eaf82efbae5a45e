from collections.abc import Callable, Sequence
from typing import Any

import dspy
import pytest
from dspy.utils.dummies import DummyLM

from kraq_dspy.errors import EvaluationError
from kraq_dspy.eval.datasets.dataset import Example
from kraq_dspy.eval.metrics.for_dspy import (
    bleu_1,
    bleu_4,
    exact_match,
    label_accuracy,
    list_exact_match,
    paper_match,
    ranking_metric,
    rouge_l,
    similarity_metric,
    strict_exact_match,
    token_f1,
)
from kraq_dspy.eval.metrics.retrieval import recall_at_k
from kraq_dspy.records import Chunk, Hit


def example(answers: Sequence[str] = ("Oslo",), **more: Any) -> dspy.Example:
    return Example("q1", "Which city?", tuple(answers), **more).to_dspy()


def said(answer: object, **more: Any) -> dspy.Prediction:
    return dspy.Prediction(answer=answer, **more)


@pytest.mark.parametrize("metric", [exact_match, strict_exact_match, token_f1, rouge_l, bleu_1, bleu_4, paper_match])
def test_the_right_answer_scores_one_and_a_wrong_one_zero(metric: Callable[..., float]) -> None:
    assert metric(example(), said("Oslo")) == pytest.approx(1.0)
    assert metric(example(), said("Rome")) == 0.0


def test_with_a_trace_the_score_becomes_yes_or_no_so_that_a_partial_score_is_no_success() -> None:
    partly = said("Oslo or Rome or Paris")
    assert 0 < token_f1(example(), partly) < 0.8
    assert token_f1(example(), partly, trace=[]) is False
    assert token_f1(example(), said("Oslo"), trace=[]) is True


def test_feedback_carries_the_score_and_is_false_below_the_threshold() -> None:
    metric = exact_match.with_feedback()
    wrong = metric(example(), said("Rome"), None, "answer", None)
    assert bool(dspy.Prediction(score=0.0)) is True  # the trap
    assert not wrong
    assert (wrong.score, float(wrong)) == (0.0, 0.0)
    assert "expected 'Oslo'" in wrong.feedback
    right = metric(example(), said("In Oslo."))
    assert right
    assert right.score == 1.0


def test_feedback_on_a_list_names_the_missing_items() -> None:
    drugs = example(answer_items=(("Humira", "adalimumab"), ("infliximab",), ("vedolizumab",)))
    result = list_exact_match.with_feedback()(drugs, said("adalimumab"))
    assert (result.score, result.feedback) == (0.0, "1 of 3 items are named. Missing: infliximab, vedolizumab.")


def test_feedback_on_a_label_says_what_was_read() -> None:
    claim = example(["false"])
    feedback = label_accuracy.with_feedback()
    assert "names the label 'true'; the right one is 'false'" in feedback(claim, said("It is correct.")).feedback
    assert "names no label" in feedback(claim, said("Hm.")).feedback


def test_the_papers_match_follows_the_kind_of_question() -> None:
    assert paper_match(example(["a", "b"], answer_items=(("rome",), ("oslo",))), said("rome")) == 1.0
    assert paper_match(example(["false"], type="veracity"), said("That is untrue.")) == 1.0
    assert paper_match(example(["false"]), said("That is untrue.")) == 0.0


def test_what_cannot_be_scored_names_the_question() -> None:
    with pytest.raises(EvaluationError, match="exact_match, question 'q1': the example has no `answers`"):
        exact_match(example([]), said("Oslo"))
    with pytest.raises(EvaluationError, match="question 'q1': the prediction's `answer` is None"):
        exact_match(example(), said(None))
    with pytest.raises(EvaluationError, match="no `answer_items`"):
        list_exact_match(example(), said("Oslo"))


def hits(*document_ids: str) -> list[Hit]:
    return [Hit(Chunk(f"c{i}", name, i, 0, 0, "", 0), 1.0 - i / 10, "q") for i, name in enumerate(document_ids)]


def test_ranking_metrics_see_each_document_once_and_name_the_missing_ones() -> None:
    metric = ranking_metric("recall", recall_at_k, 2)
    gold = example(supporting_ids=("a", "b"))
    assert metric.name == "recall@2"
    assert metric(gold, said("", hits=hits("a", "a", "b"))) == 1.0
    assert metric(gold, said("", hits=hits("a", "x", "b"))) == 0.5
    assert metric.with_feedback()(gold, said("", hits=hits("a", "x", "b"))).feedback.endswith("the first 2: b.")
    with pytest.raises(EvaluationError, match="no `supporting_ids`"):
        metric(example(), said("", hits=[]))
    with pytest.raises(EvaluationError, match="no `hits`"):
        metric(gold, said("Oslo"))


def test_a_similarity_metric_names_its_encoder(keyword_embedder: Callable[..., Any]) -> None:
    metric = similarity_metric(keyword_embedder("oslo"))
    assert metric.name == "answer_similarity(keywords(oslo))"
    assert metric(example(), said("oslo")) == pytest.approx(1.0)


class Echo(dspy.Module):
    def __init__(self) -> None:
        super().__init__()
        self.answer = dspy.Predict("question -> answer")

    def forward(self, question: str) -> dspy.Prediction:
        return self.answer(question=question)


def questions() -> list[dspy.Example]:
    names = ["Oslo", "Rome", "Paris"]
    return [Example(name, f"Say {name}", (name,)).to_dspy() for name in names]


def two_right_one_partly() -> DummyLM:
    return DummyLM(
        {
            "Say Oslo": {"answer": "Oslo"},
            "Say Rome": {"answer": "Rome"},
            "Say Paris": {"answer": "Paris or perhaps Lyon"},
        }
    )


def test_dspys_evaluate_averages_the_plain_and_the_feedback_form_alike() -> None:
    with dspy.context(lm=two_right_one_partly()):
        evaluate = dspy.Evaluate(devset=questions(), num_threads=1, display_progress=False)
        plain = evaluate(Echo(), metric=token_f1)
        with_feedback = evaluate(Echo(), metric=token_f1.with_feedback())
    assert plain.score == pytest.approx(100 * (1 + 1 + 0.4) / 3, abs=0.01)
    assert with_feedback.score == plain.score


@pytest.mark.parametrize("metric", [token_f1, token_f1.with_feedback()])
def test_a_bootstrapping_optimizer_takes_only_good_answers_as_demonstrations(metric: Callable[..., float]) -> None:
    with dspy.context(lm=two_right_one_partly()):
        optimizer = dspy.BootstrapFewShot(metric=metric, max_bootstrapped_demos=3, max_labeled_demos=0)
        compiled = optimizer.compile(Echo(), trainset=questions())
    assert {demo.answer for demo in compiled.answer.demos} == {"Oslo", "Rome"}


def test_gepa_takes_the_feedback_form() -> None:
    reflection = DummyLM([{"new_instruction": "Say the name and nothing else."}] * 20, adapter=dspy.JSONAdapter())
    with dspy.context(lm=two_right_one_partly()):
        optimizer = dspy.GEPA(
            metric=token_f1.with_feedback(), reflection_lm=reflection, max_metric_calls=12, num_threads=1
        )
        compiled = optimizer.compile(Echo(), trainset=questions(), valset=questions())
    assert isinstance(compiled, Echo)
    assert any("scores 0.40; expected" in str(call["messages"]) for call in reflection.history)
