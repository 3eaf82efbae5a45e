"""Tests the raters' sheet of QA-RAG's table 1: written, filled by people or by a stand-in, and scored."""

import csv
import json
from pathlib import Path

import pytest
from dspy.utils import DummyLM

from kraq_dspy.errors import EvaluationError
from kraq_dspy.extend import LanguageModels
from kraq_dspy.papers.audits.raters_sheet import SheetRow, rate_by_model, read_sheet, score_sheet, write_sheet
from kraq_dspy.records import Chunk
from tests.conftest import WarmShell

CHUNKS = [Chunk(f"c{number}", "d", number, 0, 4, f"Ada met person {number}.", 4) for number in range(3)]
PAIR = {"pairs": '[{"question": "Whom did Ada meet?", "answer": "A person"}]'}


def judged(path: Path, **good: str) -> None:
    """Fills the sheet as a person would: c0_1="yes" is the first try at the passage c0."""
    rows = list(csv.DictReader(path.open(encoding="utf-8", newline="")))
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        for row in rows:
            said = good.get(f"{row['passage_id']}_{row['attempt']}", "")
            writer.writerow({**row, "good": said, "rated_by": "Ada" if said else ""})


def test_the_sheet_has_every_try_at_every_passage_and_no_judgement(tmp_path: Path) -> None:
    sheet = tmp_path / "sheet.csv"
    models = LanguageModels(lm=DummyLM([PAIR] * 6))
    write_sheet(CHUNKS, models, sheet, passages=3, tries=2)
    rows = read_sheet(sheet)
    assert [(row.passage_id, row.attempt) for row in rows] == [(f"c{n}", a) for n in range(3) for a in (1, 2)]
    assert {row.pairs for row in rows} == {"Q: Whom did Ada meet?\nA: A person"}
    assert {row.good for row in rows} == {""}


def test_no_cell_of_a_sheet_is_a_formula_and_the_passage_comes_back_as_it_was(tmp_path: Path) -> None:
    text = "=cmd|' /C calc'!A1 and more"
    write_sheet([Chunk("c0", "d", 0, 0, 4, text, 4)], LanguageModels(lm=DummyLM([PAIR])), tmp_path / "s.csv", tries=1)
    [line] = csv.DictReader((tmp_path / "s.csv").open(encoding="utf-8", newline=""))
    assert line["passage"] == f"'{text}"
    assert [row.passage for row in read_sheet(tmp_path / "s.csv")] == [text]


def test_a_filled_sheet_is_scored_by_its_first_and_by_its_best_try(tmp_path: Path) -> None:
    sheet = tmp_path / "sheet.csv"
    write_sheet(CHUNKS, LanguageModels(lm=DummyLM([PAIR] * 6)), sheet, tries=2)
    judged(sheet, c0_1="yes", c1_1="no", c1_2="Yes", c2_1="no", c2_2="no")
    report = score_sheet(read_sheet(sheet))
    assert report.at_once.estimate == pytest.approx(1 / 3)
    assert report.within_tries.estimate == pytest.approx(2 / 3)
    assert (report.n_passages, report.left_out, report.rated_by, report.is_stand_in) == (3, 0, ("Ada",), False)


def test_passages_that_are_not_judged_far_enough_are_left_out() -> None:
    rows = [
        SheetRow("a", 1, "", "", "no"), SheetRow("a", 2, "", "", ""),  # the second try may be good
        SheetRow("b", 1, "", "", ""),
        SheetRow("c", 1, "", "", "yes"), SheetRow("d", 1, "", "", "yes"),
    ]  # fmt: skip
    report = score_sheet(rows)
    assert (report.n_passages, report.left_out, report.at_once.estimate) == (2, 2, 1.0)
    with pytest.raises(EvaluationError, match=r"1 of 2 passages are judged.*`good`"):
        score_sheet(rows[2:4])


def test_a_models_rating_is_labelled_a_stand_in_and_leaves_what_people_said(tmp_path: Path) -> None:
    sheet = tmp_path / "sheet.csv"
    write_sheet(CHUNKS, LanguageModels(lm=DummyLM([PAIR] * 3)), sheet, tries=1)
    judged(sheet, c0_1="no")
    lm = DummyLM([{"evaluation": "Clear.", "stand_alone": "5"}, {"evaluation": "Vague.", "stand_alone": "2"}])
    rows = rate_by_model(sheet, LanguageModels(lm=lm))
    assert [row.good for row in rows] == ["no", "yes", "no"]
    assert [row.rated_by for row in rows] == ["Ada", "stand-in: dummy", "stand-in: dummy"]
    assert score_sheet(rows).is_stand_in


@pytest.mark.parametrize(
    ("text", "message"),
    [("a,b\n1,2\n", "is no sheet for raters"), (None, "There is no sheet .*--index DIR")],
)
def test_a_file_that_is_no_sheet_is_refused(tmp_path: Path, text: str | None, message: str) -> None:
    file = tmp_path / "other.csv"
    if text is not None:
        file.write_text(text)
    with pytest.raises(EvaluationError, match=message):
        read_sheet(file)


def test_another_word_than_yes_or_no_is_named_with_its_row(tmp_path: Path) -> None:
    sheet = tmp_path / "sheet.csv"
    write_sheet(CHUNKS, LanguageModels(lm=DummyLM([PAIR] * 3)), sheet, tries=1)
    judged(sheet, c1_1="maybe")
    with pytest.raises(EvaluationError, match="row 2: good is 'maybe'; expected yes, no or nothing"):
        read_sheet(sheet)


def test_by_command_it_is_written_then_scored(kraq: WarmShell, tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    for number in range(3):
        (tmp_path / "docs" / f"{number}.txt").write_text(f"Ada Lovelace met Charles Babbage in town {number}.")
    assert kraq("index", "docs", "--lm", "embedded", cwd=tmp_path).returncode == 0
    done = kraq("bench", "qa-rag-1", "sheet.csv", "--index", "docs.kraq", "--tries", "2", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "6 tries to judge" in done.stdout
    rows = read_sheet(tmp_path / "sheet.csv")
    judged(tmp_path / "sheet.csv", **{f"{row.passage_id}_{row.attempt}": "yes" for row in rows})
    said = json.loads(kraq("bench", "qa-rag-1", "sheet.csv", "--json", cwd=tmp_path).stdout)
    assert (said["at_once"]["estimate"], said["within_tries"]["estimate"], said["is_stand_in"]) == (1.0, 1.0, False)
