"""Reads OpenBookQA: multiple choice from facts of elementary science (Mihaylov et al., 2018)."""

from collections.abc import Iterable, Mapping

from kraq_dspy.eval.datasets.dataset import Dataset, Example
from kraq_dspy.eval.datasets.hub import HubTable, RawRow, as_rows
from kraq_dspy.records import Document, content_id

NAME = "openbook_qa"
TABLES = (HubTable("questions", "allenai/openbookqa", "additional", "test"),)


def convert(tables: Mapping[str, Iterable[RawRow]]) -> Dataset:
    """A document is a fact of the book. The answer is the text of the right choice; `metadata` has all choices."""
    documents: dict[str, Document] = {}
    examples = []
    for row in tables["questions"]:
        fact = row["fact1"].strip()
        fact_id = f"obqa-{content_id(fact)[:12]}"
        documents.setdefault(fact_id, Document(fact_id, "", fact))
        choices = {choice["label"]: choice["text"] for choice in as_rows(row["choices"])}
        examples.append(
            Example(
                id=row["id"],
                question=row["question_stem"],
                answers=(choices[row["answerKey"].strip()],),
                supporting_ids=(fact_id,),
                type="multiple_choice",
                metadata={"choices": choices, "answer_key": row["answerKey"].strip()},
            )
        )
    return Dataset(NAME, tuple(documents.values()), tuple(examples))
