"""Reads Dolly 15k: instructions written by people, some with a passage to answer from (Conover et al., 2023).

A source of (question, answer, evidence) for fine-tuning the question generator, not for evaluation.
"""

from collections.abc import Iterable, Mapping

from kraq_dspy.eval.datasets.dataset import Dataset, Example
from kraq_dspy.eval.datasets.hub import HubTable, RawRow
from kraq_dspy.records import Document, content_id

NAME = "dolly"
TABLES = (HubTable("instructions", "databricks/databricks-dolly-15k", "default", "train"),)


def convert(tables: Mapping[str, Iterable[RawRow]]) -> Dataset:
    """The instructions that have a passage; `type` is Dolly's category. Repeated rows count once."""
    documents: dict[str, Document] = {}
    examples: dict[str, Example] = {}
    for row in tables["instructions"]:
        question, passage, answer = row["instruction"].strip(), (row["context"] or "").strip(), row["response"].strip()
        if not (question and passage and answer):
            continue
        passage_id = f"dolly-{content_id(passage)[:12]}"
        documents.setdefault(passage_id, Document(passage_id, "", passage))
        row_id = f"dollyq-{content_id(question, passage, answer)[:12]}"
        examples.setdefault(row_id, Example(row_id, question, (answer,), (passage_id,), row["category"]))
    return Dataset(NAME, tuple(documents.values()), tuple(examples.values()))
