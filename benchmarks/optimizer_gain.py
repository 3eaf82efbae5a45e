"""Before and after, for every optimizer, with a language model or with one that learns from its prompt (`learner.py`).

    python benchmarks/optimizer_gain.py --data ../shared/data
    python benchmarks/optimizer_gain.py --data ../shared/data --lm gguf/smollm2-135m --rows 80 --out runs/gain.jsonl

Answering: questions of HotpotQA with their supporting paragraphs, word F1. Judging: gold answers and gold answers of
other questions, agreement with what they are. Learned from one half of the rows, measured on the other. A real model
is its own teacher, and reflects for GEPA; a finished optimizer is a line of `--out`, which the same command leaves out.
"""

import argparse
import gzip
import json
from pathlib import Path
from typing import Any

import dspy
from learner import Learner, learner_model
from stand_in import machine

from kraq_dspy.config import EncoderSettings, RoleSettings
from kraq_dspy.embedders import load_embedder
from kraq_dspy.eval.tables.data import load
from kraq_dspy.eval.tables.judge_calibration import made_from
from kraq_dspy.lms.roles import make_lm
from kraq_dspy.optimize import OPTIMIZERS, Method, Resources, Sizes, compile_program
from kraq_dspy.optimize.rows import Row
from kraq_dspy.ports import Embedder


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


def gain(task: str, optimizer: str, options: argparse.Namespace, lm: dspy.BaseLM, embedder: Embedder) -> dict[str, Any]:
    """One optimizer on one task: scores before and after on rows that it did not see, calls, seconds."""
    rows, metric = {"answering": (answering, "token_f1"), "judging": (judging, "agreement")}[task]
    compiled = compile_program(
        task,
        rows(options.data, options.rows),
        method=Method(
            optimizer,
            sizes=Sizes(
                demos=options.demos, candidates=options.candidates, rounds=options.rounds, threads=options.concurrency
            ),
        ),
        resources=Resources(models={"default": lm}, embedder=embedder),
        metric=metric,
        force=True,
    )
    comparison = compiled.comparison
    return {
        "task": task,
        "optimizer": optimizer,
        "before": comparison.baseline.estimate,
        "after": comparison.system.estimate,
        "difference": [comparison.difference.estimate, comparison.difference.low, comparison.difference.high],
        "p": comparison.test.p_value,
        "calls": compiled.usage.calls,
        "estimated": compiled.estimated,
        "seconds": compiled.seconds,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=120)
    parser.add_argument("--only", choices=list(OPTIMIZERS), nargs="+", default=list(OPTIMIZERS))
    parser.add_argument("--tasks", choices=["answering", "judging"], nargs="+", default=["answering", "judging"])
    parser.add_argument("--lm", help="a model string in place of the stand-in that learns")
    parser.add_argument("--max-tokens", type=int, default=300, help="of a reply of --lm")
    parser.add_argument("--demos", type=int, default=4)
    parser.add_argument("--candidates", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--concurrency", type=int, default=2)
    parser.add_argument("--out", type=Path, help="a line of JSON for every optimizer that is done")
    options = parser.parse_args()
    embedder = load_embedder(EncoderSettings())
    real = (
        make_lm(RoleSettings(model=options.lm, temperature=0.0, max_tokens=options.max_tokens)) if options.lm else None
    )
    before = options.out.read_text("utf-8").splitlines() if options.out and options.out.exists() else []
    done = {(row["task"], row["optimizer"]): row for row in map(json.loads, before)}
    print(f"{machine()}; {options.lm or 'learner.py'}; {options.rows} rows, half of them to learn from; 95 %; seed 0")
    print("| step | optimizer | before | after | difference | p | calls | estimate | s |")
    print("|---|---|---|---|---|---|---|---|---|")
    for task in options.tasks:
        for optimizer in options.only:
            row = done.get((task, optimizer))
            if row is None:
                row = gain(task, optimizer, options, real or learner_model(Learner()), embedder)
                if options.out:
                    with options.out.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(row) + "\n")
            print(
                "| {task} | {optimizer} | {before:.3f} | {after:.3f} | {0:+.3f} [{1:+.3f}, {2:+.3f}] | {p:.4f} | "
                "{calls:,} | {estimated:,} | {seconds:.0f} |".format(*row["difference"], **row),
                flush=True,
            )


if __name__ == "__main__":
    main()
