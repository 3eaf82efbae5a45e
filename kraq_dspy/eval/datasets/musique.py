"""Reads MuSiQue: questions of two to four hops, twenty passages each (Trivedi et al., 2022)."""

from collections.abc import Iterable, Mapping

from kraq_dspy.eval.datasets.dataset import Dataset, Example
from kraq_dspy.eval.datasets.hub import HubTable, RawRow, as_rows
from kraq_dspy.records import Document, content_id

NAME = "musique"
TABLES = (HubTable("questions", "dgslibisey/MuSiQue", "default", "validation"),)


def convert(tables: Mapping[str, Iterable[RawRow]]) -> Dataset:
    """Answerable questions; `type` is the number of hops ("2hop", "3hop1", ...)."""
    documents: dict[str, Document] = {}
    examples = []
    for row in tables["questions"]:
        if not row.get("answerable", True):
            continue
        shown, supporting = [], []
        for passage in as_rows(row["paragraphs"]):
            title, text = passage["title"], passage["paragraph_text"]
            passage_id = f"mq-{content_id(title, text)[:12]}"
            documents.setdefault(passage_id, Document(passage_id, title, text))
            shown.append(passage_id)
            if passage["is_supporting"]:
                supporting.append(passage_id)
        examples.append(
            Example(
                id=row["id"],
                question=row["question"],
                answers=tuple(dict.fromkeys((row["answer"], *(row.get("answer_aliases") or ())))),
                supporting_ids=tuple(dict.fromkeys(supporting)),
                type=row["id"].partition("__")[0],
                context_ids=tuple(dict.fromkeys(shown)),
                metadata={"decomposition": [dict(step) for step in as_rows(row["question_decomposition"])]},
            )
        )
    return Dataset(NAME, tuple(documents.values()), tuple(examples))
