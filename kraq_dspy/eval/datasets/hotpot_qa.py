"""Reads HotPotQA in the distractor setting: two gold passages among ten (Yang et al., 2018)."""

from collections.abc import Iterable, Mapping

from kraq_dspy.eval.datasets.dataset import Dataset, Example
from kraq_dspy.eval.datasets.hub import HubTable, RawRow, as_rows
from kraq_dspy.records import Document

NAME = "hotpot_qa"
TABLES = (HubTable("questions", "hotpotqa/hotpot_qa", "distractor", "validation"),)


def convert(tables: Mapping[str, Iterable[RawRow]]) -> Dataset:
    """A document is the opening paragraph of a Wikipedia page, and its id the page's title."""
    documents: dict[str, Document] = {}
    examples = []
    for row in tables["questions"]:
        shown = [passage["title"] for passage in as_rows(row["context"])]
        for passage in as_rows(row["context"]):
            # Sentences carry the space that parts them.
            text = "".join(passage["sentences"]).strip()
            documents.setdefault(passage["title"], Document(passage["title"], passage["title"], text))
        examples.append(
            Example(
                id=row["id"],
                question=row["question"],
                answers=(row["answer"],),
                supporting_ids=tuple(dict.fromkeys(fact["title"] for fact in as_rows(row["supporting_facts"]))),
                type=row["type"],
                context_ids=tuple(dict.fromkeys(shown)),
                metadata={"level": row["level"]},
            )
        )
    return Dataset(NAME, tuple(documents.values()), tuple(examples))
