"""Reads the values of a row: texts, lists, yes or no, answers; and cells of csv files that hold such values."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import dspy

from kraq_dspy.errors import EvaluationError
from kraq_dspy.eval.metrics.answers import check_references
from kraq_dspy.optimize.rows import Row

QUESTION_FIELDS = frozenset(
    {"id", "question", "answers", "answer", "answer_items", "supporting_ids", "context_ids", "type", "level", "split"}
)
"""Of rows with questions: those of the data sets that this library reads, so that their files serve as they are."""

YES_OR_NO = {"true": True, "yes": True, "false": False, "no": False}
"""What a cell of a csv file may say."""


def example_of(row: Row, inputs: Mapping[str, Any], gold: Mapping[str, Any]) -> dspy.Example:
    """An example of these inputs and of what is right, with the row's id if it has one."""
    named = {"id": str(row["id"])} if "id" in row else {}
    return dspy.Example(**named, **gold, **inputs).with_inputs(*inputs)


def text_in(row: Row, name: str) -> str:
    """A text that is not blank. Raises EvaluationError for anything else, KeyError if it is missing."""
    value = row[name]
    if not isinstance(value, str) or not value.strip():
        raise EvaluationError(f"{name} is {value!r}; expected text")
    return value


def texts_in(value: Any) -> list[str]:
    """A list of texts. Raises EvaluationError for anything else, one text among it."""
    if isinstance(value, str) or not isinstance(value, Sequence) or not all(isinstance(text, str) for text in value):
        raise EvaluationError(f"expected a list of texts, found {value!r}")
    return list(value)


def optional_texts(row: Row, name: str) -> list[str]:
    """One text or a list of them; empty if the row has none."""
    value = row.get(name) or []
    return [value] if isinstance(value, str) else texts_in(value)


def yes_or_no(row: Row, name: str) -> bool:
    """True or false. Raises EvaluationError for anything else."""
    value = row[name]
    if not isinstance(value, bool):
        raise EvaluationError(f"{name} is {value!r}; expected true or false")
    return value


def answers_in(row: Row) -> dict[str, Any]:
    """`answers`, the `type` of the question, and what else metrics of answers read. Raises EvaluationError without."""
    gold = row.get("answers")
    if gold is None and "answer" in row:
        gold = [row["answer"]]
    if gold is None:
        raise EvaluationError("there are no `answers`; leave questions without a known answer out")

    extra = {field: row[field] for field in ("answer_items", "supporting_ids") if row.get(field)}
    return {"answers": [str(answer) for answer in check_references(gold)], "type": str(row.get("type", "")), **extra}


def list_cell(cell: str) -> list[Any]:
    """A list in a cell: JSON, or one text.

    >>> list_cell('["Oslo", "Christiania"]'), list_cell("Oslo")
    (['Oslo', 'Christiania'], ['Oslo'])
    """
    if cell.lstrip().startswith("["):
        try:
            return list(json.loads(cell))
        except ValueError:  # a text that begins so
            return [cell]
    return [cell]


def truth_cell(cell: str) -> Any:
    """Return True or False if the cell says so, otherwise its text, which a later check rejects by
    its field's name.

    >>> truth_cell("yes"), truth_cell("False"), truth_cell("perhaps")
    (True, False, 'perhaps')
    """
    return YES_OR_NO.get(cell.strip().lower(), cell)


def number_cell(cell: str) -> Any:
    """A whole number where the cell has one, else its text.

    >>> number_cell("-1"), number_cell("first")
    (-1, 'first')
    """
    digits = cell.strip()
    return int(digits) if digits.removeprefix("-").isdecimal() else cell


QUESTION_CELLS = dict.fromkeys(("answers", "answer_items", "supporting_ids", "context_ids"), list_cell)
"""How cells of rows with questions are read, if they are not text."""
