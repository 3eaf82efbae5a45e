"""Cut `examples/hotpotqa-mini` out of HotpotQA: 60 questions and 600 passages, the same at every run.

    python examples/make_hotpotqa_mini.py --data DIR

DIR holds `corpus.jsonl.gz` and `questions.jsonl.gz` (columns in `hotpotqa-mini/README.md`).
"""

import argparse
import gzip
import json
import random
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

QUESTIONS = 60
PASSAGES = 600
COLUMNS = ("id", "question", "answers", "supporting_ids", "type", "level", "split", "context_ids")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, metavar="DIR")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "hotpotqa-mini", metavar="DIR")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    passages = _read(arguments.data / "corpus.jsonl.gz")
    questions, kept = cut(passages, _read(arguments.data / "questions.jsonl.gz"), arguments.seed)
    arguments.out.mkdir(parents=True, exist_ok=True)
    _write(arguments.out / "questions.jsonl", questions)
    _write(arguments.out / "corpus.jsonl", kept)
    print(f"{len(questions)} questions and {len(kept)} passages in {arguments.out}")


def cut(
    passages: Sequence[dict[str, Any]], questions: Sequence[dict[str, Any]], seed: int
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Questions in the source's mix of types, then their supporting and context passages, then others by chance.

    Nothing but the seed chooses, and both lists keep the source's order. Questions with a passage that the source lacks
    or holds twice under two titles are not drawn from.
    """
    chance = random.Random(seed)
    by_id = {passage["id"]: passage for passage in _with_text_of_their_own(passages)}
    by_type = defaultdict(list)
    for question in questions:
        if by_id.keys() >= set(question["supporting_ids"]):
            by_type[question["type"]].append(question)
    n_usable = sum(map(len, by_type.values()))
    chosen: set[str] = set()
    for kind in sorted(by_type):
        n_kind = round(QUESTIONS * len(by_type[kind]) / n_usable)
        chosen.update(question["id"] for question in chance.sample(by_type[kind], n_kind))
    drawn = [question for question in questions if question["id"] in chosen]

    supporting = _unique(name for question in drawn for name in question["supporting_ids"])
    context = _unique(name for question in drawn for name in question["context_ids"] if name in by_id)
    others = sorted(by_id.keys() - set(supporting) - set(context))
    chance.shuffle(others)
    kept = set(_unique([*supporting, *context, *others])[:PASSAGES])
    rows = [{name: question[name] for name in COLUMNS} for question in drawn]
    for row in rows:
        row["context_ids"] = [name for name in row["context_ids"] if name in kept]
    return rows, [passage for passage in by_id.values() if passage["id"] in kept]


def _with_text_of_their_own(passages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    times: defaultdict[str, int] = defaultdict(int)
    for passage in passages:
        times[passage["text"].strip()] += 1
    return [passage for passage in passages if times[passage["text"].strip()] == 1]


def _unique(names: Any) -> list[str]:
    return list(dict.fromkeys(names))


def _read(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def _write(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    path.write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
