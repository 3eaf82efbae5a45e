"""Reads CMU-Wiki-QA: questions about Wikipedia articles with short answers, without passages (Smith et al., 2008)."""

from collections.abc import Iterable, Mapping

from kraq_dspy.eval.datasets.dataset import Dataset, Example
from kraq_dspy.eval.datasets.hub import HubTable, RawRow
from kraq_dspy.records import content_id

NAME = "cmu_wiki_qa"
TABLES = (HubTable("questions", "sedthh/cmu_wiki_qa", "default", "train"),)


def convert(tables: Mapping[str, Iterable[RawRow]]) -> Dataset:
    """Questions without a corpus; a question that is there more than once has all its answers."""
    answers: dict[str, list[str]] = {}
    for row in tables["questions"]:
        question, answer = row["INSTRUCTION"].strip(), row["RESPONSE"].strip()
        if question and answer:
            answers.setdefault(question, []).append(answer)
    return Dataset(
        NAME,
        (),
        tuple(
            Example(f"cmu-{content_id(question)[:12]}", question, tuple(dict.fromkeys(each)))
            for question, each in answers.items()
        ),
    )
