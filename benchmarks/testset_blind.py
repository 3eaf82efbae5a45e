"""Draws rows of synthetic test sets for a reader who does not know how they were checked.

    python benchmarks/testset_blind.py runs/ranking --sets hotpotqa bioasq --file by-model.jsonl --out runs/blind

Of each kind up to `--count` rows are drawn, of all sets together and shuffled, into OUT/KIND.jsonl: the question, its
answers, and the text of its passages. Which checks a row passed, how its gold was found and which set it is from stand
in OUT/key/KIND.jsonl, which the reader does not get. Of an unanswerable row the passages are those that are hidden.
"""

import argparse
import json
import random
from collections import defaultdict
from pathlib import Path
from typing import Any

from kraq_dspy import Workspace
from kraq_dspy.records import Chunk, TestsetRow
from kraq_dspy.testset.testset import Testset, as_line


def shown(row: TestsetRow, texts: dict[str, str]) -> dict[str, Any]:
    """What the reader sees of a row."""
    passages = [texts[passage.chunk_id] for passage in row.passages if passage.chunk_id in texts]
    return {"id": row.id, "type": row.type, "question": row.question, "answers": row.answers, "passages": passages}


def drawn(folder: Path, sets: list[str], file: str, *, count: int, seed: int) -> dict[str, list[dict[str, Any]]]:
    """Rows by kind, each with what the reader sees of it and what not."""
    by_kind: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for name in sets:
        with Workspace.open(folder / name / "index.kraq") as space:
            texts = {chunk.id: chunk.passage for chunk in space.index.all(Chunk)}
        for row in Testset.load(folder / name / file):
            by_kind[row.type].append({"shown": shown(row, texts), "hidden": {"set": name, **as_line(row)}})

    chosen = {}
    for kind, rows in sorted(by_kind.items()):
        rows.sort(key=lambda row: (row["hidden"]["set"], row["hidden"]["id"]))
        chosen[kind] = random.Random(f"{kind} {seed}").sample(rows, min(count, len(rows)))
    return chosen


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="Of testset_ranking.py.")
    parser.add_argument("--sets", nargs="+", required=True)
    parser.add_argument("--file", default="by-model.jsonl")
    parser.add_argument("--count", type=int, default=50, help="Rows of each kind at most.")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()

    (arguments.out / "key").mkdir(parents=True, exist_ok=True)
    chosen = drawn(arguments.folder, arguments.sets, arguments.file, count=arguments.count, seed=arguments.seed)
    for kind, rows in chosen.items():
        for part, place in (("shown", arguments.out), ("hidden", arguments.out / "key")):
            lines = [json.dumps(row[part], ensure_ascii=False) + "\n" for row in rows]
            (place / f"{kind}.jsonl").write_text("".join(lines), "utf-8")
        print(kind, len(rows))


if __name__ == "__main__":
    main()
