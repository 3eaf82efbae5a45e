"""Tests that metrics serve DSPy's optimizers: scores, yes or no with a trace, and feedback."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import dspy
import pytest
from dspy.utils.dummies import DummyLM

from kraq_dspy.errors import ConfigError, EvaluationError
from kraq_dspy.eval import (
    Example,
    answer_found,
    bleu_1,
    bleu_4,
    exact_match,
    grounded,
    named_metric,
    paper_match,
    rouge_l,
    similarity_metric,
    substring_match,
    token_f1,
)
from kraq_dspy.eval.metrics.for_dspy import METRICS
from kraq_dspy.records import Chunk, Hit


def example(answers: Sequence[str] = ("Oslo",), **more: Any) -> dspy.Example:
    return Example("q1", "Which city?", tuple(answers), **more).to_dspy()


def predicted(answer: object, **more: Any) -> dspy.Prediction:
    return dspy.Prediction(answer=answer, **more)


@pytest.mark.parametrize("metric", [exact_match, substring_match, token_f1, rouge_l, bleu_1, bleu_4, paper_match])
def test_the_right_answer_scores_one_and_a_wrong_one_zero(metric: Callable[..., float]) -> None:
    assert metric(example(), predicted("Oslo")) == pytest.approx(1.0)
    assert metric(example(), predicted("Rome")) == 0.0


def test_with_a_trace_the_score_becomes_yes_or_no_so_that_a_partial_score_is_no_success() -> None:
    partly = predicted("Oslo or Rome or Paris")
    assert 0 < token_f1(example(), partly) < 0.8
    assert not token_f1(example(), partly, trace=[])
    assert token_f1(example(), partly, trace=[]) == token_f1(example(), partly)
    assert token_f1(example(), predicted("Oslo"), trace=[])


def test_feedback_carries_the_score_and_is_false_below_the_threshold() -> None:
    metric = exact_match.with_feedback()
    wrong = metric(example(), predicted("Rome"), None, "answer", None)
    assert bool(dspy.Prediction(score=0.0)) is True  # the trap
    assert not wrong
    assert (wrong.score, float(wrong)) == (0.0, 0.0)
    assert "expected 'Oslo'" in wrong.feedback
    right = metric(example(), predicted("Oslo."))
    assert right
    assert right.score == 1.0


COPIED = "Oslo is the capital and the largest city of Norway. It lies at the end of the Oslofjord."


def test_a_copied_passage_wins_containment_and_not_the_metric_that_answers_are_optimized_by() -> None:
    default = next(iter(METRICS.values()))
    assert substring_match(example(), predicted(COPIED)) == 1.0
    assert default is token_f1
    assert default(example(), predicted(COPIED)) < 0.2


def test_exact_match_is_squads_and_a_negation_contains_the_gold_answer() -> None:
    wrong = predicted("It is not Oslo but Rome.")
    assert (exact_match(example(), wrong), substring_match(example(), wrong)) == (0.0, 1.0)
    assert exact_match(example(), predicted("The Oslo!")) == 1.0


@pytest.mark.parametrize("gold", [{"answer": "Oslo"}, {"answers": ["Oslo"]}, {"answer": ["Oslo", "Christiania"]}])
def test_gold_answers_stand_under_answer_or_answers(gold: dict[str, Any]) -> None:
    assert token_f1(dspy.Example(question="Which city?", **gold), predicted("Oslo")) == 1.0


def test_gold_answers_and_a_text_are_compared_without_an_example() -> None:
    assert exact_match("Oslo", "oslo") == 1.0
    assert exact_match(["Rome", "Oslo"], "oslo") == 1.0


def test_every_metric_is_found_by_its_name_and_a_function_of_ones_own_by_its_place(tmp_path: Path) -> None:
    for name, metric in METRICS.items():
        assert named_metric(name) is metric
    assert named_metric("mrr", k=3).name == "mrr@3"
    (tmp_path / "mine.py").write_text(
        "def short(example, prediction, trace=None):\n    return len(prediction.answer) < 5\n"
    )
    short = named_metric(f"{tmp_path / 'mine.py'}:short")
    assert (short(example(), predicted("Oslo")), short(example(), predicted("It is Oslo."))) == (1.0, 0.0)
    assert named_metric("operator:is_not")(example(), predicted("Oslo")) == 1.0


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("tokenf1", "did you mean 'token_f1'"),
        ("recall@x", "no metric"),
        ("none.py:f", "No such file"),
        ("math:nope", "nope"),
    ],
)
def test_a_name_that_there_is_not_is_refused(name: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        named_metric(name)


def test_words_of_the_answer_are_looked_for_in_the_hits_or_in_the_passages_that_were_given() -> None:
    given = dspy.Example(question="Which city?", passages=["Oslo is in Norway."])
    assert grounded(given, predicted("Oslo")) == 1.0
    assert grounded(given, predicted("Rome")) == 0.0
    assert answer_found(dspy.Example(answer="Oslo", passages=["Oslo is in Norway."]), predicted("?")) == 1.0


def test_the_papers_match_follows_the_kind_of_question() -> None:
    assert paper_match(example(["a", "b"], answer_items=(("rome",), ("oslo",))), predicted("rome")) == 1.0
    assert paper_match(example(["false"], type="veracity"), predicted("That is untrue.")) == 1.0
    assert paper_match(example(["false"]), predicted("That is untrue.")) == 0.0
    assert paper_match(example(["yes"], type="yesno"), predicted("Yes, it is.")) == 1.0
    assert paper_match(example(["no"], type="yesno"), predicted("Yes, although no trial showed it.")) == 0.0
    assert not paper_match.is_defined(example(["A long account."], type="summary"))


def test_what_cannot_be_scored_names_the_question() -> None:
    with pytest.raises(EvaluationError, match="exact_match, question 'q1': the example has no `answers`"):
        exact_match(example([]), predicted("Oslo"))
    with pytest.raises(EvaluationError, match="question 'q1': the prediction's `answer` is None"):
        exact_match(example(), predicted(None))


def hits(*document_ids: str) -> list[Hit]:
    return [Hit(Chunk(f"c{i}", name, i, 0, 0, "", 0), 1.0 - i / 10, "q") for i, name in enumerate(document_ids)]


def test_ranking_metrics_see_each_document_once_and_name_the_missing_ones() -> None:
    metric = named_metric("recall@2")
    gold = example(supporting_ids=("a", "b"))
    assert metric.name == "recall@2"
    assert metric(gold, predicted("", hits=hits("a", "a", "b"))) == 1.0
    assert metric(gold, predicted("", hits=hits("a", "x", "b"))) == 0.5
    assert metric.with_feedback()(gold, predicted("", hits=hits("a", "x", "b"))).feedback.endswith("the first 2: b.")
    with pytest.raises(EvaluationError, match="no `supporting_ids`"):
        metric(example(), predicted("", hits=[]))
    with pytest.raises(EvaluationError, match="no `hits`"):
        metric(gold, predicted("Oslo"))


def test_a_similarity_metric_names_its_encoder(keyword_embedder: Callable[..., Any]) -> None:
    metric = similarity_metric(keyword_embedder("oslo"))
    assert metric.name == "answer_similarity(keywords(oslo))"
    assert metric(example(), predicted("oslo")) == pytest.approx(1.0)


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
