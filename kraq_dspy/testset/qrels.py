"""Writes and reads TREC qrels, the form in which retrieval tools keep which documents answer a question.

A line is `query-id 0 document-id relevance`, parted by spaces or tabs. Files of BEIR, a line
`query-id corpus-id score` below a heading, are read, too.
"""

from collections.abc import Iterable
from pathlib import Path

from kraq_dspy._internal.files import replaced
from kraq_dspy.errors import EvaluationError
from kraq_dspy.records import TestsetRow


def write_qrels(rows: Iterable[TestsetRow], path: str | Path) -> Path:
    """A line for each document that answers a row, with the relevance 1; a row that nothing answers has no line.

    Raises EvaluationError for an id with a space, which ends an id in qrels.
    """
    lines = []
    for row in rows:
        for document in row.supporting_ids:
            if spaced := next((id for id in (row.id, document) if len(id.split()) != 1), None):
                raise EvaluationError(f"The id {spaced!r} has a space, and qrels have none in an id.")
            lines.append(f"{row.id} 0 {document} 1\n")
    with replaced(Path(path)) as draft:
        draft.write_text("".join(lines), "utf-8")
    return Path(path)


def read_qrels(path: str | Path) -> dict[str, tuple[str, ...]]:
    """The documents with a relevance above 0, by the question's id.

    Raises EvaluationError for a file that is not there, and for a line of another form.
    """
    try:
        lines = Path(path).read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise EvaluationError(f"The qrels {str(path)!r} cannot be read: {error}.") from error

    documents: dict[str, list[str]] = {}
    for number, line in enumerate(lines, start=1):
        fields = line.split("\t") if "\t" in line else line.split()
        if not fields or (number == 1 and fields[-1] == "score"):
            continue
        try:
            question, document, relevance = fields[0], fields[-2], float(fields[-1])
        except (IndexError, ValueError):
            raise EvaluationError(
                f"{str(path)!r}, line {number} is {line!r:.80}; expected: query-id 0 document-id relevance."
            ) from None
        if relevance > 0:
            documents.setdefault(question, []).append(document)
    return {question: tuple(dict.fromkeys(ids)) for question, ids in documents.items()}
