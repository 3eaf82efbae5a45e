"""QA search's two steps, optimized on rows and put to work in the program."""

from pathlib import Path
from typing import Any

import pytest

from kraq_dspy.errors import EvaluationError
from kraq_dspy.optimize import compile_program
from kraq_dspy.optimize.rows import split_rows
from kraq_dspy.optimize.targets import make_target
from kraq_dspy.programs.qa_search.program import QASearch
from kraq_dspy.programs.shared.state import load_state
from kraq_dspy.programs.traditional import TraditionalRAG

CATALOGUE = ["How do I open an account?", "Where is my card?"]


def row(question: str, number: object) -> dict[str, Any]:
    return {"question": question, "catalogue": CATALOGUE, "number": number}


ROWS = [
    *(row(f"How do I open an account in {town}?", 1) for town in ("Bonn", "Rome", "Lyon", "Cork", "Graz")),
    *(row(f"Who founded {town}?", -1) for town in ("Bonn", "Rome", "Lyon", "Cork", "Graz")),
]


def test_demonstrations_of_matches_and_of_none_serve_in_qa_search(tmp_path: Path) -> None:
    compile_program("matching", ROWS, method="labeled", out=tmp_path / "matching.json", force=True)
    nothing: Any = None
    program = QASearch(TraditionalRAG(lambda question: []), answers=nothing)
    load_state(program, tmp_path / "matching.json")
    assert {demo["number"] for demo in program.find.demos} == {1, -1}
    assert program.find.demos[0]["catalogue"] == ["1: How do I open an account?", "2: Where is my card?"]
    assert program.confirm.demos == []


def test_pairs_teach_the_second_look(tmp_path: Path) -> None:
    verbs = ("eat", "sell", "fry", "run")
    rows = [{"asked": f"Can I {verb} it?", "stored": f"May I {verb} it?", "same": True} for verb in verbs]
    rows += [{"asked": f"Can I {verb} it?", "stored": f"Why does it {verb}?", "same": False} for verb in verbs]
    split = split_rows(rows, make_target("confirmation").rows)
    assert {example.same for example in split.train} == {True, False}
    assert dict(split.train[0].inputs()).keys() == {"first_question", "second_question"}


@pytest.mark.parametrize("number", [0, 3, "1", True, None])
def test_a_number_that_is_not_in_the_list_is_refused(number: object) -> None:
    with pytest.raises(EvaluationError, match="expected 1 to 2, or -1"):
        split_rows([row("How?", number)], make_target("matching").rows)
