"""Questions of several indexes for readers who do not know whose they are, and a table of their marks.

    python benchmarks/blind_reading.py draw manual=manual.kraq news=news.kraq --count 50 --out runs/blind
    python benchmarks/blind_reading.py table runs/blind

`draw` takes every n-th question that an index shows, with the three passages of its community that are nearest to it,
and writes all of them shuffled to items.txt, which readers get, and key.jsonl, which they do not. A reader writes
marks-NAME.jsonl, a line for each item: {"n": 0, "well_formed": true, "answerable": true, "mark": "good"}, the mark one
of good, vague, wrong. `table` counts the marks of each index, means of all readers, and how many of an item were alike.
"""

import argparse
import json
import random
from collections import Counter, defaultdict
from itertools import combinations
from pathlib import Path

import numpy as np

from kraq_dspy.asset.store.index import Index
from kraq_dspy.records import Chunk, Question

MARKS = ("good", "vague", "wrong")
SHOWN = 3  # passages beside a question
LONGEST = 1_500  # characters of a passage that are shown


def draw(index: Index, count: int) -> list[dict[str, str]]:
    """Every n-th question that is no duplicate, in the order of their ids."""
    shown = sorted(
        (question for question in index.questions(source="kraq") if question.duplicate_of is None),
        key=lambda question: question.id,
    )
    return [
        {"question": question.text, "model": question.model, "text": "\n\n".join(passages(index, question))}
        for question in shown[:: max(1, len(shown) // count)][:count]
    ]


def passages(index: Index, question: Question) -> list[str]:
    """Those of its community that are nearest to it."""
    ids = list(question.chunk_ids)
    (vector,) = index.question_vectors.vectors([question.id])
    order = np.argsort(-(index.chunk_vectors.vectors(ids) @ vector), kind="stable")[:SHOWN]
    return [chunk.passage[:LONGEST] for chunk in index.get(Chunk, [ids[place] for place in order])]


def write(items: list[dict[str, str]], out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    text = (f"### {n}\nQUESTION: {item['question']}\nTEXT: {item['text']}\n" for n, item in enumerate(items))
    (out / "items.txt").write_text("\n".join(text), "utf-8")
    lines = (json.dumps({"n": n, "kind": item["kind"], "model": item["model"]}) for n, item in enumerate(items))
    (out / "key.jsonl").write_text("\n".join(lines) + "\n", "utf-8")


def rows(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]


def table(folder: Path) -> None:
    key = {row["n"]: row for row in rows(folder / "key.jsonl")}
    readers = [{row["n"]: row for row in rows(path)} for path in sorted(folder.glob("marks-*.jsonl"))]
    if not readers:
        raise SystemExit(f"{folder} has no marks-NAME.jsonl yet: give items.txt to a reader.")
    marks: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for reader in readers:
        for n, row in reader.items():
            by = "template" if key[n]["model"] == "embedded" else "generator"
            able = [] if not (row["well_formed"] and row["answerable"]) else ["able"]
            for group in (f"{key[n]['kind']}", f"{key[n]['kind']}, {by}"):
                marks[group].update(["n", str(row["mark"]), *able])
    print("| questions | n | " + " | ".join(MARKS) + " | well-formed and answered |\n|---|---|---|---|---|---|")
    for group in sorted(marks):
        n = marks[group]["n"]
        shares = " | ".join(f"{marks[group][mark] / n:.2f}" for mark in (*MARKS, "able"))
        print(f"| {group} | {n / len(readers):g} | {shares} |")
    for reader, other in combinations(readers, 2):
        both = reader.keys() & other.keys()
        print(f"marked alike: {sum(reader[n]['mark'] == other[n]['mark'] for n in both)} of {len(both)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    drawing = commands.add_parser("draw")
    drawing.add_argument("indexes", nargs="+", metavar="KIND=INDEX")
    drawing.add_argument("--count", type=int, default=50, help="questions of each index")
    drawing.add_argument("--out", type=Path, required=True)
    drawing.add_argument("--seed", type=int, default=0)
    commands.add_parser("table").add_argument("folder", type=Path)
    options = parser.parse_args()
    if options.command == "table":
        table(options.folder)
        return
    items: list[dict[str, str]] = []
    for kind, _, path in (each.partition("=") for each in options.indexes):
        with Index.open(path) as index:
            items += [{"kind": kind, **item} for item in draw(index, options.count)]
    random.Random(options.seed).shuffle(items)
    write(items, options.out)
    print(f"{len(items)} questions in {options.out / 'items.txt'}")


if __name__ == "__main__":
    main()
