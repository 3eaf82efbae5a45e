"""Reads QASPER: questions about NLP papers, with the paragraphs that answer them (Dasigi et al., 2021)."""

from collections.abc import Iterable, Mapping
from typing import Any

from kraq_dspy.eval.datasets.dataset import Dataset, Example
from kraq_dspy.eval.datasets.hub import HubTable, RawRow, as_rows
from kraq_dspy.records import Document

NAME = "qasper"
TABLES = (HubTable("papers", "allenai/qasper", "qasper", "validation", script=True),)


def convert(tables: Mapping[str, Iterable[RawRow]]) -> Dataset:
    """A document is a paragraph (or the abstract), titled with its paper and section.

    `answers` are the annotators', none where all of them found the question unanswerable. Evidence in tables and
    figures has no paragraph and is left out of `supporting_ids`.
    """
    documents: list[Document] = []
    examples = []
    for paper in tables["papers"]:
        paragraphs = list(_paragraphs(paper))
        documents += paragraphs
        place: dict[str, str] = {}
        for paragraph in paragraphs:
            place.setdefault(paragraph.text, paragraph.id)
        for entry in as_rows(paper["qas"]):
            replies = [reply["answer"] for reply in as_rows(entry["answers"])]
            evidence = [text.strip() for reply in replies for text in reply["evidence"]]
            kinds, answers = zip(*(_answer(reply) for reply in replies), strict=True) if replies else ((), ())
            examples.append(
                Example(
                    id=entry["question_id"],
                    question=entry["question"],
                    answers=tuple(dict.fromkeys(answer for answer in answers if answer)),
                    supporting_ids=tuple(dict.fromkeys(place[text] for text in evidence if text in place)),
                    type=next((kind for kind in kinds if kind != "unanswerable"), "unanswerable"),
                    metadata={"paper": paper["id"]},
                )
            )
    return Dataset(NAME, tuple(documents), tuple(examples))


def _paragraphs(paper: RawRow) -> Iterable[Document]:
    if (paper["abstract"] or "").strip():
        yield Document(f"{paper['id']}-abstract", paper["title"], paper["abstract"].strip())
    for section, part in enumerate(as_rows(paper["full_text"])):
        title = f"{paper['title']}: {part['section_name']}" if part["section_name"] else paper["title"]
        for position, text in enumerate(part["paragraphs"]):
            if text.strip():
                yield Document(f"{paper['id']}-{section}.{position}", title, text.strip())


def _answer(reply: Mapping[str, Any]) -> tuple[str, str]:
    """Its kind and its text, as QASPER's own scorer reads them."""
    if reply["unanswerable"]:
        return "unanswerable", ""
    if reply["extractive_spans"]:
        return "extractive", ", ".join(reply["extractive_spans"])
    if reply["free_form_answer"]:
        return "abstractive", reply["free_form_answer"]
    return "boolean", "yes" if reply["yes_no"] else "no"
