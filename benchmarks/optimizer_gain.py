"""Before and after, for every optimizer, with a model that learns from its prompt (`learner.py`; no language model).

    python benchmarks/optimizer_gain.py --data ../shared/data

Answering: questions of HotpotQA with their supporting paragraphs, word F1. Judging: gold answers and gold answers of
other questions, agreement with what they are. Learned from one half of the rows, measured on the other.
"""

import argparse
import gzip
import json
from pathlib import Path
from typing import Any

from learner import Learner, learner_model
from stand_in import machine

from kraq_dspy.config import EncoderSettings
from kraq_dspy.embedders import load_embedder
from kraq_dspy.eval.tables.data import load
from kraq_dspy.eval.tables.judge_calibration import made_from
from kraq_dspy.optimize import OPTIMIZERS, Method, Resources, Sizes, compile_program
from kraq_dspy.optimize.rows import Row


def answering(data: Path, count: int) -> list[Row]:
    def lines(name: str) -> list[Any]:
        with gzip.open(data / "hotpotqa" / name, "rt", encoding="utf-8") as file:
            return [json.loads(line) for line in file]

    texts = {document["id"]: document["text"] for document in lines("corpus.jsonl.gz")}
    rows: list[Row] = []
    for question in lines("questions.jsonl.gz"):
        passages = [texts[id] for id in dict.fromkeys(question["supporting_ids"]) if id in texts]
        if passages and question["answers"] and question["answers"][0] not in ("yes", "no") and len(rows) < count:
            rows.append({"question": question["question"], "answers": question["answers"], "passages": passages})
    return rows


def judging(data: Path, count: int) -> list[Row]:
    """Half of the gold answers are wrapped in a sentence, so that a verdict takes more than comparing strings."""
    rows: list[Row] = []
    for number, each in enumerate(made_from(load(data, "hotpotqa", limit=count, seed=0))):
        answer = f"I think that it was {each.answered.answer} in the end" if number % 3 else each.answered.answer
        rows.append(
            {
                "question": each.answered.question,
                "answers": list(each.answered.gold),
                "answer": answer,
                "right": each.right,
            }
        )
    return rows[:count]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=120)
    parser.add_argument("--only", choices=list(OPTIMIZERS))
    arguments = parser.parse_args()
    embedder = load_embedder(EncoderSettings())
    tasks = (
        ("answering", answering(arguments.data, arguments.rows), "token_f1"),
        ("judging", judging(arguments.data, arguments.rows), "agreement"),
    )
    print(f"{machine()}; {arguments.rows} rows, half of them to learn from; 95 % intervals; seed 0")
    print("| step | optimizer | before | after | difference | p | calls | estimate | s |")
    print("|---|---|---|---|---|---|---|---|---|")
    for task, rows, metric in tasks:
        for optimizer in [arguments.only] if arguments.only else OPTIMIZERS:
            engine = Learner()
            compiled = compile_program(
                task,
                rows,
                method=Method(optimizer, sizes=Sizes(demos=4, candidates=6, rounds=3, threads=2)),
                resources=Resources(models={"default": learner_model(engine)}, embedder=embedder),
                metric=metric,
                force=True,
            )
            c = compiled.comparison
            print(
                f"| {task} | {optimizer} | {c.baseline.estimate:.3f} | {c.system.estimate:.3f} | "
                f"{c.difference.estimate:+.3f} [{c.difference.low:+.3f}, {c.difference.high:+.3f}] | "
                f"{c.test.p_value:.4f} | {compiled.usage.calls:,} | {compiled.estimated:,} | {compiled.seconds:.0f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
