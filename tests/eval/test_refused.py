"""Rates of refusals and of false answers are told wherever questions say that the documents do not answer them."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from kraq_dspy import Workspace
from kraq_dspy.eval import Example, evaluate
from kraq_dspy.eval.refused import is_answerable, refusal_rates
from kraq_dspy.eval.rows import ResultRow
from tests.orchids import ANSWERED, FOREIGN, index_of_orchids
from tests.whole_program import app

ROWS: list[dict[str, Any]] = [
    {"question": ANSWERED[0], "answer": "John Lindley", "answerable": True},
    {"question": ANSWERED[2], "answer": "Phalaenopsis amabilis", "answerable": True},
    {"question": FOREIGN[0], "answerable": False},
    {"question": FOREIGN[1], "type": "unanswerable"},
    {"question": "Who named Phalaenopsis in 1999?", "answerable": "false"},  # near enough to get an answer
]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return index_of_orchids(tmp_path_factory.mktemp("refused") / "orchids.kraq")


def row(id: str, *, answerable: bool, below_threshold: bool = False, passed_over: bool | None = False) -> ResultRow:
    told = {
        "answerable": answerable,
        "below_threshold": below_threshold,
        "passed_over": passed_over,
        "answerable_score": 0.5,
    }
    return ResultRow(id, "rag", extra={"refusal": told})


def test_a_refusal_is_of_the_threshold_or_of_the_answer() -> None:
    rates = refusal_rates(
        [
            row("a", answerable=False, below_threshold=True),
            row("b", answerable=False, passed_over=True),
            row("c", answerable=False),
            row("d", answerable=False, passed_over=None),
            row("e", answerable=True),
            row("f", answerable=True, passed_over=True),
            ResultRow("g", "rag", failure="the model was away"),
        ]
    )
    assert rates is not None
    assert (rates.unanswerable, rates.answerable) == (4, 2)
    assert rates.refused.estimate == 0.5
    assert rates.by_threshold.estimate == 0.25
    assert rates.false_answers.estimate == 0.5
    assert rates.false_refusals is not None
    assert rates.false_refusals.estimate == 0.5


def test_without_unanswerable_questions_there_are_no_rates() -> None:
    assert refusal_rates([row("a", answerable=True, below_threshold=True)]) is None
    assert refusal_rates([ResultRow("a", "rag")]) is None


@pytest.mark.parametrize(
    ("example", "expected"),
    [
        (Example("q", "Who?", ("Ada",)), True),
        (Example("q", "Who?", (), type="unanswerable"), False),
        (Example("q", "Who?", (), type="null_query"), False),
        (Example("q", "Who?", (), metadata={"answerable": False}), False),
        (Example("q", "Who?", (), metadata={"answerable": "No"}), False),
        (Example("q", "Who?", (), metadata={"answerable": True}), True),
    ],
)
def test_a_question_says_by_its_type_or_a_column_whether_it_is_answered(example: Example, expected: bool) -> None:
    assert is_answerable(example) is expected


def test_an_evaluation_tells_the_rates_of_programs_and_of_retrievers(path: Path) -> None:
    with Workspace.open(path) as space:
        result = evaluate({"rag": space.program("traditional"), "dense": space.retriever("dense")}, ROWS, space=space)
    rag, dense = (system.refusals for system in result.summary.systems)
    for rates in (rag, dense):
        assert rates is not None
        assert (rates.unanswerable, rates.answerable) == (3, 2)
        assert rates.by_threshold.estimate == pytest.approx(2 / 3)
        assert rates.refused.estimate + rates.false_answers.estimate == pytest.approx(1)
        assert rates.false_refusals is not None
        assert rates.false_refusals.estimate == 0
    assert rag is not None
    assert dense is not None
    assert rag.refused.estimate >= dense.refused.estimate == pytest.approx(2 / 3)  # a retriever passes nothing over
    assert all(row.answer for row in result.rows if row.system == "rag")  # nothing is refused under an evaluation

    table = result.to_pandas()
    by_question = table[table.system == "dense"].set_index("question").loc[[each["question"] for each in ROWS]]
    assert list(by_question.answerable) == [True, True, False, False, False]
    assert list(by_question.refused) == [False, False, True, True, False]
    assert "Questions that the documents do not answer" in str(result)


def test_an_evaluation_of_answered_questions_says_nothing_of_refusals(path: Path) -> None:
    result = evaluate(path, ROWS[:2])
    assert result.summary.systems[0].refusals is None
    assert "do not answer" not in str(result)
    assert "refused" not in result.to_pandas()


def test_the_command_shows_the_rates_in_json_and_on_the_page(path: Path, tmp_path: Path) -> None:
    questions = tmp_path / "rows.jsonl"
    questions.write_text("".join(json.dumps(each) + "\n" for each in ROWS))
    words = ["eval", str(path), str(questions), "--out", str(tmp_path / "run"), "--json"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    [system] = json.loads(done.stdout)["runs"][0]["systems"]
    assert system["refusals"]["unanswerable"] == 3
    assert system["refusals"]["by_threshold"]["estimate"] == pytest.approx(2 / 3)
    page = (tmp_path / "run" / "report.html").read_text("utf-8")
    assert "Questions that the documents do not answer" in page
    assert "false refusals" in page
