"""Reads LHM-Dienstleistungen-QA: German questions about services of the city of Munich (Schröder et al., 2022)."""

from collections.abc import Iterable, Mapping

from kraq_dspy.eval.datasets.dataset import Dataset, Example
from kraq_dspy.eval.datasets.hub import HubTable, RawRow
from kraq_dspy.records import Document, content_id

NAME = "lhm"
TABLES = tuple(HubTable(split, "it-at-m/LHM-Dienstleistungen-QA", "default", split) for split in ("test", "train"))


def convert(tables: Mapping[str, Iterable[RawRow]]) -> Dataset:
    """A document is the text of a service that a question was asked about."""
    documents: dict[str, Document] = {}
    examples: dict[str, Example] = {}
    for table in TABLES:
        for row in tables[table.name]:
            title, text, question = (str(row[name] or "").strip() for name in ("title", "context", "question"))
            answers = tuple(dict.fromkeys(answer.strip() for answer in row["answers"]["text"] if answer.strip()))
            if not text or not question or not answers:
                continue
            document = Document(f"lhm-{content_id(title, text)[:12]}", title, text)
            documents.setdefault(document.id, document)
            example_id = f"lhm-q-{content_id(question, document.id)[:12]}"
            examples.setdefault(example_id, Example(example_id, question, answers, (document.id,)))
    return Dataset(NAME, tuple(documents.values()), tuple(examples.values()))
