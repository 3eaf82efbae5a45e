"""Reads CMMLU: Chinese multiple choice in 67 subjects, without passages (Li et al., 2023)."""

from collections import Counter
from collections.abc import Iterable, Mapping

from kraq_dspy.eval.datasets.dataset import Dataset, Example
from kraq_dspy.eval.datasets.hub import HubTable, RawRow

NAME = "cmmlu"
TABLES = (HubTable("questions", "haonan-li/cmmlu", "*", "test", script=True),)


def convert(tables: Mapping[str, Iterable[RawRow]]) -> Dataset:
    """Questions without a corpus; ids number the questions of a subject from 0."""
    examples = []
    counts: Counter[str] = Counter()
    for row in tables["questions"]:
        subject = row["config"]
        choices = {label: str(row[label]) for label in "ABCD"}
        examples.append(
            Example(
                id=f"cmmlu-{subject}-{counts[subject]}",
                question=row["Question"],
                answers=(choices[row["Answer"].strip()],),
                type="multiple_choice",
                metadata={"subject": subject, "choices": choices, "answer_key": row["Answer"].strip()},
            )
        )
        counts[subject] += 1
    return Dataset(NAME, (), tuple(examples))
