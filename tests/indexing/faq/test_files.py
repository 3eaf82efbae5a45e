"""Entries written to files and read again; rows that are none say where they stand and why."""

import csv
import json
from pathlib import Path

import pytest

from kraq_dspy.asset.store.faq import NewEntry
from kraq_dspy.errors import FaqError
from kraq_dspy.indexing.faq.files import entries_text, read_entries
from kraq_dspy.records import AnswerEvidence, AnswerSource, FaqEntry

ENTRIES = [
    FaqEntry(1, 'Was, "zum Teufel"?', "Zwei\nZeilen; ja.", "approved", (AnswerSource("a; b.txt", "ab"),)),
    FaqEntry(2, "败血症？", "", "pending", origin="failed", given="Je ne sais pas",
                   evidence=(AnswerEvidence("c1", "d1", "Text, with [marks].\nMore."),), asked=3),
    FaqEntry(5, "=1+1?", "[2]", "stale", (AnswerSource("d2"), AnswerSource("d3", "cd")), "synthetic"),
]  # fmt: skip


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_what_was_written_is_read_again(form: str, tmp_path: Path) -> None:
    path = tmp_path / f"entries.{form}"
    path.write_text(entries_text(ENTRIES, form), "utf-8")
    assert list(read_entries(path)) == [
        NewEntry(e.question, e.answer, e.status, e.sources, e.origin, e.given, e.evidence, e.asked) for e in ENTRIES
    ]


def test_a_plain_table_of_questions_and_answers_is_enough(tmp_path: Path) -> None:
    path = tmp_path / "faq.csv"
    path.write_text('question;answer;sources;team\nWhy?;So.;;x\nWhen?;Now.;"a.txt; b.txt";\n', "utf-8")
    assert list(read_entries(path)) == [
        NewEntry("Why?", "So.", origin="import"),
        NewEntry("When?", "Now.", sources=(AnswerSource("a.txt"), AnswerSource("b.txt")), origin="import"),
    ]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"question": "Why?", "status": "good"}', "Line 2: there is no status 'good'; there are: pending"),
        ('{"question": "Why?", "origin": "me"}', "Line 2: there is no origin 'me'"),
        ('{"question": " ?! "}', "Line 2: ' ?! ' is no question"),
        ('{"answer": "So."}', "Line 2: There is no column 'question'"),
        ('{"question": "Why?", "sources": [3]}', "Line 2: sources is "),
        ('{"question": "Why?", "sources": "[oh"}', "Line 2: the column 'sources' holds '[oh', which is no list"),
        ('{"question": "Why?", "evidence": [{"text": "x"}]}', "Line 2: evidence is "),
        ('{"question": "Why?", "asked": "often"}', "Line 2: "),
        ('["Why?"]', "Line 2 is a list"),
        ("{", "Line 2: not valid JSON"),
    ],
)
def test_a_broken_line_is_named_and_does_not_stop_the_rest(line: str, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "entries.jsonl"
    path.write_text(f'{{"question": "A?", "answer": "a"}}\n{line}\n{{"question": "B?"}}\n')
    first, broken, last = read_entries(path)
    assert (first, last) == (NewEntry("A?", "a", origin="import"), NewEntry("B?", origin="import"))
    assert isinstance(broken, str)
    assert broken.startswith(reason)


def test_a_file_that_cannot_be_read_is_one_error(tmp_path: Path) -> None:
    (tmp_path / "no_question.csv").write_text("asked,answer\na,b\n")
    (tmp_path / "empty.jsonl").write_text("")
    for name, message in (
        ("faq.xlsx", "end in .csv"),
        ("absent.csv", "cannot be read"),
        ("no_question.csv", "no column 'question'"),
        ("empty.jsonl", "empty"),
    ):
        with pytest.raises(FaqError, match=message):
            list(read_entries(tmp_path / name))


@pytest.mark.parametrize(
    "text",
    [
        "=cmd|' /C calc'!A0",
        "+1+1",
        "-2+3",
        "@SUM(A1)",
        "\t=1+1",
        "\r=1+1",
        "'=quoted before",
        "''+twice",
        "＝1",
        "'plain",
        "a=b",
    ],
)
def test_no_cell_of_an_export_is_a_formula_and_an_import_reads_what_was_there(tmp_path: Path, text: str) -> None:
    entry = FaqEntry(1, f"{text} ?", text, "pending", given=text)
    file = tmp_path / "answers.csv"
    file.write_text(entries_text([entry], "csv"), "utf-8", newline="")
    with file.open(encoding="utf-8", newline="") as opened:
        [cells] = list(csv.DictReader(opened))
    assert not any(cell[:1] in ("=", "+", "-", "@", "\t", "\r", "＝") for cell in cells.values())
    [read] = read_entries(file)
    assert not isinstance(read, str)
    assert (read.question.strip(), read.given) == (f"{text} ?".strip(), text.replace("\r", "\n"))
    assert json.loads(entries_text([entry], "jsonl"))["answer"] == text  # no spreadsheet opens that
