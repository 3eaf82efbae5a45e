"""Tests that the label of a claim is read from a free answer and compared with the gold one."""

import pytest

from kraq_dspy.errors import EvaluationError
from kraq_dspy.eval.metrics.answers import Labels, label_accuracy, parse_label


@pytest.mark.parametrize(
    ("answer", "label"),
    [
        ("true", "true"),
        ("FALSE.", "false"),
        ("The claim is a mixture of true and false statements.", "mixture"),
        ("Label: Mixture", "mixture"),
        ("The claim is false. No study found it to be true.", "false"),
        ("False: it is not true that lemons do this.", "false"),
        ("This isn’t true.", "false"),
        ("It is partly true.", "mixture"),
        ("The statement is not entirely true.", "mixture"),
        ("This claim is not false.", "true"),
        ("The evidence shows the claim is accurate.", "true"),
        ("The evidence makes it inaccurate.", "false"),
        ("The claim is unproven.", None),
        ("Lemons are sour.", None),
        ("Some call it true, others call it false.", None),
        ("", None),
        ("Untruthful people construe it.", None),
    ],
)
def test_the_label_is_read_from_a_free_answer(answer: str, label: str | None) -> None:
    assert parse_label(answer) == label


def test_accuracy_compares_the_named_label_with_the_gold_one() -> None:
    assert label_accuracy("false", "This is untrue.") == 1.0
    assert label_accuracy("true", "This is untrue.") == 0.0
    assert label_accuracy("true", "Who knows?") == 0.0


def test_other_labels_can_be_given() -> None:
    labels: Labels = {"yes": ("yes",), "no": ("no",), "maybe": ("maybe", "unclear", "uncertain")}
    assert label_accuracy("maybe", "It is unclear.", labels) == 1.0
    assert label_accuracy("no", "I do not know", labels) == 0.0


def test_a_gold_label_that_is_none_of_the_labels_is_refused() -> None:
    with pytest.raises(EvaluationError, match="gold label is 'unproven'; expected one of true, false, mixture"):
        label_accuracy("unproven", "true")
