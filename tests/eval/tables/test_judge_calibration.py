"""Judges against labels."""

import json
from pathlib import Path
from typing import Any

import dspy
import pytest

from kraq_dspy.errors import ConfigError, EvaluationError
from kraq_dspy.eval.agreement import LabelledAnswer, calibrate_judge, made_from, read_labelled
from kraq_dspy.eval.datasets import Example
from kraq_dspy.eval.judges import AnsweredQuestion
from kraq_dspy.eval.rows import RunHeader, read_run
from tests.eval.tables.conftest import Scripted

HEADER = RunHeader("judges", "d", {}, {"seed": 0}, {})


def labelled(*rights: bool) -> list[LabelledAnswer]:
    return [
        LabelledAnswer(AnsweredQuestion(f"q{number}", f"Question {number}?", ("Oslo",), f"answer {number}"), right)
        for number, right in enumerate(rights)
    ]


def verdict(word: str) -> str:
    return f"[[ ## correct ## ]]\n{word}\n\n[[ ## completed ## ]]"


def test_agreement_counts_each_kind_of_verdict(tmp_path: Path, scripted: Scripted) -> None:
    def reply(prompt: str) -> str:
        replies = {"answer 0": "True", "answer 1": "False", "answer 2": "True", "answer 3": "maybe"}
        return verdict(next(word for answer, word in replies.items() if answer in prompt))

    engine, _ = scripted(reply)
    lm = dspy.LM("scripted", cache=False, num_retries=0, engine=engine)
    calibration = calibrate_judge(labelled(True, False, False, True), "binary", lm, HEADER, tmp_path)
    assert calibration.accuracy.estimate == pytest.approx(2 / 3)
    assert (calibration.n, calibration.n_failed) == (3, 1)
    assert calibration.confusion[False, True] == 1
    _, rows = read_run(tmp_path)
    assert [row.question_id for row in rows if row.failure is not None] == ["q3"]
    calls = len(engine.prompts)
    calibrate_judge(labelled(True, False, False, True), "binary", lm, HEADER, tmp_path)
    assert len(engine.prompts) == calls


def test_labels_made_from_gold_answers_are_half_right_and_half_wrong() -> None:
    examples = tuple(
        Example(str(number), f"Capital of {number}?", answers)
        for number, answers in enumerate([("Oslo", "Christiania"), ("Paris",), ("yes",), ()])
    )
    labelled = made_from(examples, "d")
    assert {(each.answered.id, each.answered.answer, each.right) for each in labelled} == {
        ("0/right", "Christiania", True),
        ("0/wrong", "Paris", False),
        ("1/right", "Paris", True),
        ("1/wrong", "Oslo", False),
    }


def test_labelled_answers_are_read_line_by_line(tmp_path: Path) -> None:
    row = {"id": 1, "question": "Who?", "answers": ["Ada"], "answer": "Ada Lovelace", "right": True}
    path = tmp_path / "labels.jsonl"
    path.write_text(json.dumps(row) + "\n\n")
    [answer] = read_labelled(path)
    assert (answer.answered.id, answer.right) == ("1", True)


@pytest.mark.parametrize("change", [{"right": "maybe"}, {"answers": None}, {"right": 1}])
def test_a_line_that_is_no_labelled_answer_is_named(tmp_path: Path, change: dict[str, Any]) -> None:
    row = {"id": 1, "question": "Who?", "answers": ["Ada"], "answer": "Ada Lovelace", "right": True}
    path = tmp_path / "labels.jsonl"
    path.write_text(json.dumps(row) + "\n" + json.dumps({**row, "id": 2, **change}) + "\n")
    with pytest.raises(EvaluationError, match=r"labels\.jsonl, line 2"):
        read_labelled(path)


def test_a_judge_of_another_kind_is_refused(tmp_path: Path) -> None:
    lm = dspy.LM("none")
    with pytest.raises(ConfigError, match="there are: binary, rubric"):
        calibrate_judge(labelled(True), "trinary", lm, HEADER, tmp_path)
