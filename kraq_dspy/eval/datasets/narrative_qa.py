"""Reads NarrativeQA: questions about whole books and film scripts, two answers each (Kočiský et al., 2018)."""

from collections import Counter
from collections.abc import Iterable, Mapping

from kraq_dspy.eval.datasets.dataset import Dataset, Example
from kraq_dspy.eval.datasets.hub import HubTable, RawRow, as_rows
from kraq_dspy.records import Document

NAME = "narrative_qa"
TABLES = (HubTable("questions", "deepmind/narrativeqa", "default", "validation"),)


def convert(tables: Mapping[str, Iterable[RawRow]]) -> Dataset:
    """A document is a whole story; question ids number the questions of a story from 0."""
    documents: dict[str, Document] = {}
    examples = []
    counts: Counter[str] = Counter()
    for row in tables["questions"]:
        story = row["document"]
        if story["id"] not in documents:
            title = (story.get("summary") or {}).get("title") or ""
            documents[story["id"]] = Document(
                story["id"], title, story["text"], metadata={"kind": story.get("kind") or ""}
            )
        answers = tuple(dict.fromkeys(answer["text"] for answer in as_rows(row["answers"])))
        question_id = f"{story['id']}-{counts[story['id']]}"
        counts[story["id"]] += 1
        examples.append(Example(question_id, row["question"]["text"], answers, (story["id"],), "narrative"))
    return Dataset(NAME, tuple(documents.values()), tuple(examples))
