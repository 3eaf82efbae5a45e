"""Tests that rows for an optimizer are read, and that what is wrong with a file is named by its line."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from kraq_dspy.errors import EvaluationError
from kraq_dspy.optimize import make_target
from kraq_dspy.optimize.rows import Row, read_rows, split_rows

ANSWERING = make_target("answering").rows
JUDGING = make_target("judging").rows


def test_rows_are_read_from_json_lines_gzipped_or_not(tmp_path: Path) -> None:
    plain, packed = tmp_path / "dev.jsonl", tmp_path / "dev.jsonl.gz"
    text = '{"question": "東京?"}\n\n{"question": "two?"}\n'
    plain.write_text(text, "utf-8")
    packed.write_bytes(gzip.compress(text.encode()))
    assert read_rows(plain) == read_rows(packed) == [{"question": "東京?"}, {"question": "two?"}]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1}\n{"a": \n', "line 2 is not JSON"),
        ("[1, 2]\n", "line 1 is list; expected an object"),
        ("\n \n", "has no rows"),
        (b"\xff\xfe", "Cannot read"),
        (None, "No such file"),
    ],
)
def test_a_file_that_cannot_be_used_is_named_with_its_line(
    tmp_path: Path, text: str | bytes | None, message: str
) -> None:
    path = tmp_path / "dev.jsonl"
    if text is not None:
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(EvaluationError, match=message):
        read_rows(path)


def test_rows_without_answers_are_named(answering: Callable[[int], list[Row]]) -> None:
    rows = answering(10)
    for answers, message in (([], "no gold answers"), ([" "], "blank reference"), ("Paris", r"Write \['Paris'\]")):
        with pytest.raises(EvaluationError, match=rf"(?s)dev row 4 \(q3\): .*{message}"):
            split_rows([*rows[:3], {**rows[3], "answers": answers}, *rows[4:]], ANSWERING)
    without = {name: value for name, value in rows[3].items() if name != "answers"}
    with pytest.raises(EvaluationError, match=r"dev row 4 \(q3\): there are no `answers`"):
        split_rows([*rows[:3], without, *rows[4:]], ANSWERING)


def test_an_unknown_field_is_named_with_the_one_that_was_meant(answering: Callable[[int], list[Row]]) -> None:
    with pytest.raises(EvaluationError, match=r"dev row 1.*unknown field 'passage'; did you mean 'passages'"):
        split_rows([{**answering(1)[0], "passage": "x"}], ANSWERING)


def test_a_missing_field_is_named_with_those_that_are_there(judging: Callable[[int], list[Row]]) -> None:
    row = {name: value for name, value in judging(1)[0].items() if name != "right"}
    with pytest.raises(EvaluationError, match=r"the field 'right' is missing; it has id, question"):
        split_rows([row], JUDGING)


def test_a_label_that_is_no_boolean_is_refused(judging: Callable[[int], list[Row]]) -> None:
    with pytest.raises(EvaluationError, match="right is 'yes'; expected true or false"):
        split_rows([{**judging(1)[0], "right": "yes"}], JUDGING)


def test_a_list_that_a_test_set_is_asked_with_may_be_one_text_but_no_number() -> None:
    facts = make_target("testset-fact").rows
    assert facts.example({"passage": "Ada lived on Eigg.", "about": "Eigg"}).about == ["Eigg"]
    assert facts.example({"passage": "Ada lived on Eigg.", "about": ["Ada", "Eigg"]}).about == ["Ada", "Eigg"]
    with pytest.raises(EvaluationError, match="dev row 1: about: expected a list of texts, found 3"):
        split_rows([{"passage": "Ada lived on Eigg.", "about": 3}], facts)
    with pytest.raises(EvaluationError, match=r"dev row 1: passage is \['Ada'\]; expected text"):
        split_rows([{"passage": ["Ada"], "about": ["Ada"]}], facts)


def test_too_few_rows_are_refused(answering: Callable[[int], list[Row]]) -> None:
    with pytest.raises(EvaluationError, match=r"Found 3 rows to learn from \(3 and 3 after the split\)"):
        split_rows(answering(6), ANSWERING)


def test_repeated_inputs_never_stand_on_both_sides_and_are_reported(answering: Callable[[int], list[Row]]) -> None:
    rows = answering(12)
    shouted = {**rows[0], "id": "again", "question": rows[0]["question"].upper() + " "}
    other = {**rows[1], "id": "other", "answers": ["1700"]}
    split = split_rows([*rows, shouted, other], ANSWERING)
    assert len(split.train) + len(split.dev) == 12
    [repeats] = split.problems
    assert "2 dev row(s) have the inputs of an earlier row" in repeats
    assert "dev row 13 (again) repeats dev row 1 (q0) and 1 more" in repeats


def test_training_rows_that_repeat_dev_rows_are_left_out_and_reported(answering: Callable[[int], list[Row]]) -> None:
    rows = answering(20)
    split = split_rows(rows[:10], ANSWERING, train=rows[8:])
    assert {example.id for example in split.dev} == {row["id"] for row in rows[:10]}
    assert {example.id for example in split.train} == {row["id"] for row in rows[10:]}
    [message] = split.problems
    assert message.startswith(
        "2 train row(s) have the inputs of an earlier row and were left out: train row 1 (q8) repeats dev row 9"
    )


def test_the_split_follows_from_the_seed_and_the_digest_from_the_rows(answering: Callable[[int], list[Row]]) -> None:
    first, again, other = (split_rows(answering(20), ANSWERING, seed=seed) for seed in (0, 0, 1))
    assert first == again
    assert first.train != other.train
    assert first.digest == other.digest != split_rows(answering(21), ANSWERING).digest


def test_the_files_of_the_data_sets_can_be_used_as_they_are(tmp_path: Path) -> None:
    questions = Path(__file__).resolve().parents[2] / "examples" / "hotpotqa-mini" / "questions.jsonl"
    rows = [{**row, "passages": ["Some text."]} for row in read_rows(questions)]
    split = split_rows(rows, ANSWERING)
    assert len(split.train) == len(split.dev) == 30
    assert json.dumps([example.answers for example in split.dev])
