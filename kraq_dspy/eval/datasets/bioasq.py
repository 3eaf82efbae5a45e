"""Reads BioASQ, task B, phase B: biomedical questions with expert answers and snippets (Tsatsaronis et al., 2015).

The files (`12B1_golden.json`, ...) come after a free registration at the organisers' site; there is no hub copy.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from kraq_dspy._internal.files import json_objects
from kraq_dspy.errors import EvaluationError
from kraq_dspy.eval.datasets.dataset import Dataset, Example
from kraq_dspy.eval.datasets.hub import RawRow
from kraq_dspy.records import Document, content_id

NAME = "bioasq"
ABSTRACTS = "abstracts.jsonl"
"""Beside the golden files: a line with pmid, title and text for each abstract. Without it snippets are the corpus."""


def load_bioasq(files: Iterable[Path], abstracts: Path | None = None) -> Dataset:
    """The questions of golden files, each once; with `abstracts`, these are the corpus, as in the KRAQ papers.

    Raises EvaluationError for other files.
    """
    rows: list[RawRow] = []
    for path in files:
        try:
            rows += json.loads(path.read_text("utf-8"))["questions"]
        except FileNotFoundError:
            raise EvaluationError(f"There is no file {str(path)!r}. {HOW_TO_GET}") from None
        except (json.JSONDecodeError, KeyError, TypeError) as error:
            raise EvaluationError(f"{path.name} is no BioASQ golden file: it has no list 'questions'.") from error
    if abstracts is None:
        return convert({"questions": rows})
    return convert({"questions": rows, "abstracts": [row for _, row in json_objects(abstracts, EvaluationError, NAME)]})


HOW_TO_GET = (
    "Register with BioASQ (participants area), download the golden files of task B, and run: "
    "kraq data fetch bioasq --file 12B1_golden.json --out DIR"
)


def convert(tables: Mapping[str, Iterable[RawRow]]) -> Dataset:
    """A document is a snippet, or an abstract where there are some; a question none of whose abstracts is there keeps
    its snippets. `answer_items` are the items of a list question with their synonyms; `answers` the
    synonyms of all items, "yes" or "no", or for summary questions the ideal answers."""
    abstracts = {
        f"pmid-{row['pmid']}": Document(f"pmid-{row['pmid']}", row.get("title") or "", row["text"])
        for row in tables.get("abstracts", ())
    }
    documents: dict[str, Document] = dict(abstracts)
    examples: dict[str, Example] = {}
    for row in tables["questions"]:
        if row["id"] in examples:
            continue
        named = [f"pmid-{_article(url)}" for url in row.get("documents") or ()] if abstracts else []
        evidence = [abstracts[name] for name in named if name in abstracts] or [
            _snippet(snippet) for snippet in row.get("snippets") or () if (snippet.get("text") or "").strip()
        ]
        for snippet in evidence:
            documents.setdefault(snippet.id, snippet)
        exact = _synonym_lists(row.get("exact_answer"), row["type"])
        ideal = _texts(row.get("ideal_answer"))
        examples[row["id"]] = Example(
            id=row["id"],
            question=row["body"],
            answers=tuple(dict.fromkeys(name for item in exact for name in item)) or ideal,
            supporting_ids=tuple(dict.fromkeys(snippet.id for snippet in evidence)),
            type=row["type"],
            answer_items=exact if row["type"] == "list" else (),
            metadata={"ideal_answer": list(ideal)},
        )
    return Dataset(NAME, tuple(documents.values()), tuple(examples.values()))


def _snippet(snippet: Mapping[str, Any]) -> Document:
    snippet_id = f"pmid-{_article(str(snippet.get('document') or ''))}-{content_id(snippet['text'])[:8]}"
    return Document(snippet_id, "", snippet["text"], metadata={"section": snippet.get("beginSection") or ""})


def _article(url: str) -> str:
    return url.rstrip("/").rpartition("/")[2]


def _synonym_lists(exact_answer: Any, kind: str) -> tuple[tuple[str, ...], ...]:
    """One entry for each item. In the files a yes/no answer is a string, a factoid a list of synonyms or of such lists,
    a list question's answer a list of synonym lists, or of strings where no item has synonyms."""
    if exact_answer is None or exact_answer == "":
        return ()
    if isinstance(exact_answer, str):
        return ((exact_answer,),)
    if all(isinstance(part, str) for part in exact_answer):
        if kind == "list":
            return tuple((item,) for item in exact_answer)
        return (tuple(exact_answer),) if exact_answer else ()
    return tuple(tuple(_texts(part)) for part in exact_answer)


def _texts(value: Any) -> tuple[str, ...]:
    if not value:
        return ()
    return (value,) if isinstance(value, str) else tuple(value)
