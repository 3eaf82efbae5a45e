from pathlib import Path
from typing import Any

import dspy
import pyarrow as pa
import pytest
from pyarrow import parquet

from kraq_dspy.errors import EvaluationError
from kraq_dspy.eval.questions import QuestionColumns, read_questions

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
