"""Reads TriviaQA, the reading comprehension part with Wikipedia pages (Joshi et al., 2017)."""

from collections.abc import Iterable, Mapping

from kraq_dspy.eval.datasets.dataset import Dataset, Example
from kraq_dspy.eval.datasets.hub import HubTable, RawRow, as_rows
from kraq_dspy.eval.metrics.normalise import normalise_answer
from kraq_dspy.records import Document

NAME = "trivia_qa"
TABLES = (HubTable("questions", "mandarjoshi/trivia_qa", "rc.wikipedia", "validation"),)


def convert(tables: Mapping[str, Iterable[RawRow]]) -> Dataset:
    """Documents are whole pages. Evidence in TriviaQA is found, not marked: `supporting_ids` are the pages in which an
    alias of the answer occurs, `context_ids` all pages of the question."""
    documents: dict[str, Document] = {}
    words: dict[str, str] = {}
    examples = []
    for row in tables["questions"]:
        pages = [
            *(("wikipedia", "wiki_context", page) for page in as_rows(row.get("entity_pages"))),
            *(("web", "search_context", page) for page in as_rows(row.get("search_results"))),
        ]
        shown: list[str] = []
        for kind, column, page in pages:
            if not (page.get(column) or "").strip():
                continue
            page_id = f"{kind}/{page['filename']}"
            if page_id not in documents:
                documents[page_id] = Document(page_id, page.get("title") or "", page[column])
                words[page_id] = f" {normalise_answer(page[column])} "
            shown.append(page_id)
        answer = row["answer"]
        answers = tuple(dict.fromkeys((answer["value"], *answer["aliases"])))
        sought = [f" {normalise_answer(alias)} " for alias in answers if alias.strip()]
        context_ids = tuple(dict.fromkeys(shown))
        examples.append(
            Example(
                id=row["question_id"],
                question=row["question"],
                answers=answers,
                supporting_ids=tuple(page for page in context_ids if any(alias in words[page] for alias in sought)),
                type="trivia",
                context_ids=context_ids,
            )
        )
    return Dataset(NAME, tuple(documents.values()), tuple(examples))
