"""multihop_rag and qasper as whole documents, as far as the data sets hold them: what a corpus summary is made of.

    python benchmarks/whole_documents.py --data ../shared/data --out runs/whole

Both sets come as pieces. A document of multihop_rag is an article: the pieces that hold its facts, and the facts that
no piece holds; pieces without a fact name no article, and are documents of their own. A document of qasper is a paper:
its evidence paragraphs. Questions name the documents of their evidence.
"""

import argparse
import gzip
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

Row = dict[str, Any]


def multihop_rag(data: Path) -> tuple[list[Row], dict[str, str]]:
    """The documents, and of which document each fact is."""
    facts = {row["id"]: row for row in rows(data / "multihop_rag" / "corpus.jsonl.gz")}
    texts: dict[str, list[str]] = {row["title"]: [] for row in facts.values()}
    loose: list[Row] = []
    fact_ids: set[str] = set()
    for piece in rows(data / "multihop_rag" / "chunks.jsonl.gz"):
        titles = sorted({facts[fact_id]["title"] for fact_id in piece["fact_ids"]})
        fact_ids.update(piece["fact_ids"])
        for title in titles:
            texts[title].append(piece["text"])
        if not titles:
            loose.append({"id": piece["id"], "title": "", "text": piece["text"]})
    for fact_id, fact in facts.items():
        if fact_id not in fact_ids:
            texts[fact["title"]].append(fact["text"])
    articles = [{"id": title, "title": title, "text": "\n\n".join(parts)} for title, parts in texts.items()]
    return articles + loose, {fact_id: fact["title"] for fact_id, fact in facts.items()}


def qasper(data: Path) -> tuple[list[Row], dict[str, str]]:
    """The documents, and of which document each paragraph is."""
    texts: dict[str, list[str]] = {}
    paper_of: dict[str, str] = {}
    for row in rows(data / "qasper" / "corpus.jsonl.gz"):
        texts.setdefault(row["title"], []).append(row["text"])
        paper_of[row["id"]] = row["title"]
    return [{"id": title, "title": title, "text": "\n\n".join(parts)} for title, parts in texts.items()], paper_of


def rows(path: Path) -> list[Row]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def write(path: Path, content: Iterable[Row]) -> None:
    path.write_text("".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in content), "utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder with multihop_rag and qasper")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    for name, read in (("multihop_rag", multihop_rag), ("qasper", qasper)):
        documents, document_of = read(options.data)
        folder = options.out / name
        folder.mkdir(parents=True, exist_ok=True)
        questions = rows(options.data / name / "questions.jsonl.gz")
        for question in questions:
            question["supporting_ids"] = list(dict.fromkeys(document_of[id] for id in question["supporting_ids"]))
        write(folder / "corpus.jsonl", documents)
        write(folder / "questions.jsonl", questions)
        words = sum(len(row["text"].split()) for row in documents)
        size = f"{len(documents):,} documents of {words / len(documents):.0f} words"
        print(f"{folder}: {size}, {len(questions):,} questions")


if __name__ == "__main__":
    main()
