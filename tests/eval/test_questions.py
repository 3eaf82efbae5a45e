"""Tests that questions are read from every form that people have them in, and that what cannot be read is named."""

from pathlib import Path
from typing import Any

import dspy
import pyarrow as pa
import pytest
from pyarrow import parquet

from kraq_dspy.errors import EvaluationError
from kraq_dspy.eval import QuestionColumns, read_questions

ROWS = [
    {"query": "Which city?", "expected": "Oslo", "documents": '["norway", "cities"]'},
    {"query": "Who?", "expected": "", "documents": ""},
]


@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl", "parquet", "json", "in memory", "dspy"])
def test_columns_are_found_in_every_form(tmp_path: Path, kind: str) -> None:
    import csv
    import json

    file = tmp_path / f"questions.{kind}"
    source: Any = file
    if kind in ("csv", "tsv"):
        with file.open("w", newline="") as out:
            writer = csv.DictWriter(out, list(ROWS[0]), delimiter="\t" if kind == "tsv" else ",")
            writer.writeheader()
            writer.writerows(ROWS)
    elif kind == "jsonl":
        file.write_text("\n".join(map(json.dumps, ROWS)))
    elif kind == "json":
        file.write_text(json.dumps(ROWS))
    elif kind == "parquet":
        parquet.write_table(pa.Table.from_pylist(ROWS), file)
    else:
        source = ROWS if kind == "in memory" else [dspy.Example(**row).with_inputs("query") for row in ROWS]
    first, second = read_questions(source)
    assert (first.id, first.question, first.answers, first.supporting_ids) == (
        "q1", "Which city?", ("Oslo",), ("norway", "cities"),
    )  # fmt: skip
    assert (second.answers, second.supporting_ids) == ((), ())


def test_columns_can_be_named_and_others_come_along() -> None:
    rows = [{"id": 7, "Frage": "Wer?", "Antwort": "Ada", "level": "easy"}]
    [example] = read_questions(rows, QuestionColumns(question="Frage", answers="Antwort"))
    assert (example.id, example.question, example.answers) == ("7", "Wer?", ("Ada",))
    assert example.to_dspy().level == "easy"


@pytest.mark.parametrize(
    ("source", "columns", "says"),
    [
        ([], {}, "no questions"),
        ([{"text": "Who?"}], {}, "row 1 has no question; its columns are: 'text'.*--question-column"),
        ([{"question": "Who?"}], {"answers": "gold"}, "no column 'gold'"),
        ([{"id": 1, "question": "Who?"}, {"id": 1, "question": "Where?"}], {}, "more than once"),
        (["Who?"], {}, "row 1 is a str"),
        ("nowhere.csv", {}, "There is no file"),
    ],
)
def test_what_cannot_be_read_is_told(source: Any, columns: dict[str, str], says: str) -> None:
    with pytest.raises(EvaluationError, match=says):
        read_questions(source, QuestionColumns(**columns))


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    (tmp_path / "q.xlsx").write_bytes(b"PK")
    with pytest.raises(EvaluationError, match=r"expected \.csv"):
        read_questions(tmp_path / "q.xlsx")
    (tmp_path / "q.parquet").write_bytes(b"nothing")
    with pytest.raises(EvaluationError, match="cannot be read"):
        read_questions(tmp_path / "q.parquet")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("semicolons.csv", b"question;answer\nWo liegt Tarnvik?;im Norden\n"),
        ("tabs.csv", b"question\tanswer\nWo liegt Tarnvik?\tim Norden\n"),
        ("wide.csv", "question,answer\nWo liegt Tarnvik?,im Norden\n".encode("utf-16")),
        ("empty_rows.csv", b"question,answer\n,\nWo liegt Tarnvik?,im Norden,,\n,,\n   ,\n\n"),
        ("excel.csv", b"sep=;\r\nquestion;answer\r\nWo liegt Tarnvik?;im Norden\r\n"),
        ("lines.json", b'{"question": "Wo liegt Tarnvik?", "answer": "im Norden"}\n{"question": "Wer?"}\n'),
        ("one.json", b'{"data": [{"question": "Wo liegt Tarnvik?", "answer": "im Norden"}]}'),
        (
            "squad.json",
            b'{"data": [{"paragraphs": [{"context": "...", "qas": [{"id": "1", "question": "Wo liegt Tarnvik?",'
            b' "answers": [{"text": "im Norden", "answer_start": 5}]}]}]}]}',
        ),
    ],
)
def test_files_are_read_as_those_of_a_corpus(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    first = read_questions(tmp_path / name)[0]
    assert (first.question, first.answers) == ("Wo liegt Tarnvik?", ("im Norden",))


def test_the_encoding_of_a_file_can_be_said(tmp_path: Path) -> None:
    file = tmp_path / "q.csv"
    file.write_bytes("question,answer\nWo schließt der Hafen?,Montag\n".encode("cp1252"))
    with pytest.raises(EvaluationError, match="--encoding cp1252"):
        read_questions(file)
    assert read_questions(file, encoding="cp1252")[0].question == "Wo schließt der Hafen?"


def test_a_comma_that_is_not_quoted_makes_no_answer(tmp_path: Path) -> None:
    (tmp_path / "q.csv").write_text("question,answer\nWhere?,Oslo\nWho, really?,Jonas Berg\n")
    with pytest.raises(EvaluationError, match=r"Row 2 \(line 3\) has 3 cells for 2 columns"):
        read_questions(tmp_path / "q.csv")


def test_rows_come_from_the_objects_that_others_hold_them_in() -> None:
    import datasets
    import pandas
    from pydantic import BaseModel

    class Sample(BaseModel):  # as RAGAS has it
        user_input: str
        reference: str | None = None

    class Golden(BaseModel):  # as DeepEval has it
        input: str
        expected_output: str | None = None

    columns = {"question": ["Who?", "Where?"], "answer": ["Ada", None]}
    table = datasets.Dataset.from_dict(columns)
    sources: list[Any] = [
        columns,
        pandas.DataFrame(columns),
        pa.table(columns),
        table,
        datasets.DatasetDict({"test": table}),
        [Sample(user_input="Who?", reference="Ada"), Sample(user_input="Where?")],
        [Golden(input="Who?", expected_output="Ada"), Golden(input="Where?")],
    ]
    for source in sources:
        read = [(example.question, example.answers) for example in read_questions(source)]
        assert read == [("Who?", ("Ada",)), ("Where?", ())]
    with pytest.raises(EvaluationError, match="parts 'train', 'test'"):
        read_questions(datasets.DatasetDict({"train": table, "test": table}))  # type: ignore[arg-type]


def test_names_of_ones_own_columns_do_not_hide_those_of_a_row_that_kraq_wrote() -> None:
    of_kraq = {"question": "Who?", "supporting_ids": ["a"], "passages": [], "checks": []}

    [example] = read_questions([of_kraq], QuestionColumns("ask", "", "files"))

    assert (example.question, example.supporting_ids) == ("Who?", ("a",))
    with pytest.raises(EvaluationError, match="has no column 'ask'"):
        read_questions([{"question": "Who?"}], QuestionColumns("ask"))
