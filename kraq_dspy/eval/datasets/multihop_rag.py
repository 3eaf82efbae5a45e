"""Reads MultiHop-RAG: questions over several news articles (Tang and Yang, 2024)."""

from collections.abc import Iterable, Mapping

from kraq_dspy.eval.datasets.dataset import Dataset, Example
from kraq_dspy.eval.datasets.hub import HubTable, RawRow, as_rows
from kraq_dspy.records import Document

NAME = "multihop_rag"
TABLES = (
    HubTable("questions", "yixuantt/MultiHopRAG", "MultiHopRAG", "train"),
    HubTable("corpus", "yixuantt/MultiHopRAG", "corpus", "train"),
)


def convert(tables: Mapping[str, Iterable[RawRow]]) -> Dataset:
    """A document is an article, its id the article's address. Null queries have no evidence and the answer
    "Insufficient information."."""
    documents = {
        row["url"]: Document(
            row["url"],
            row["title"],
            row["body"],
            metadata={key: str(row[key]) for key in ("source", "category", "published_at") if row.get(key)},
        )
        for row in tables["corpus"]
    }
    examples = [
        Example(
            id=f"mhrq-{position}",
            question=row["query"],
            answers=(row["answer"],),
            supporting_ids=tuple(dict.fromkeys(fact["url"] for fact in as_rows(row["evidence_list"]))),
            type=row["question_type"],
            metadata={"facts": [fact["fact"] for fact in as_rows(row["evidence_list"])]},
        )
        for position, row in enumerate(tables["questions"])
    ]
    return Dataset(NAME, tuple(documents.values()), tuple(examples))
