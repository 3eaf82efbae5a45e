"""Asks a small model whether 2,000 tokens of evidence cover a statement, and sets that beside the word measure.

    python benchmarks/peers/web_judge.py --lm gguf/qwen2.5-coder-0.5b.gguf [--data ../shared/data] [--out runs/web]
        [--domains history nature] [--systems adaptive dense] [--minutes 30]

`web.py` made the rankings under --out. The statements of summaries are asked, each of evidence for its own question,
and of evidence for another question of the same domain: a judge that says yes to both cannot be believed. What was
judged is kept under --out; --minutes are of the processor.
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # a script finds what is beside it, not what is above

import dspy
from peers.retrieval import first_tokens
from peers.web import content_words, told_by

from kraq_dspy.models.lms.adapter import KraqAdapter
from kraq_dspy.models.lms.roles import make_lm
from kraq_dspy.papers.tables.data import load
from kraq_dspy.settings import RoleSettings

BUDGET = 2000


class JudgeCoverage(dspy.Signature):
    """Say whether the passages state what the statement says.

    True only if all that it says stands in the passages, in whatever words.
    """

    passages: str = dspy.InputField()
    statement: str = dspy.InputField()
    covered: bool = dspy.OutputField()


def pairs(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Each evidence with each statement that it is asked about: those of its own question, and of the next one."""
    for domain in options.domains:
        name = f"wildgraph_{domain}"
        ranked = json.loads((options.out / f"{name}-drop" / "ranked.json").read_text("utf-8"))
        telling_texts = told_by(options.data, name)
        summaries = [each for each in load(options.data, name).examples if each.type == "summary"]
        for number, example in enumerate(summaries):
            other = summaries[(number + 1) % len(summaries)]
            for system in options.systems:
                texts = [ranked["passages"][id][1] for id in ranked["ranked"][system][example.id]]
                evidence = "\n\n".join(first_tokens(texts, BUDGET))
                for own, of in ((True, example), (False, other)):
                    for statement in telling_texts[of.id]:
                        row = {"domain": domain, "question": example.id, "system": system, "own": own}
                        yield {**row, "statement": statement, "evidence": evidence}


def judged(options: argparse.Namespace) -> list[dict[str, Any]]:
    """What was kept, and more as long as there is time."""
    file = options.out / f"judged-{Path(options.lm).name}.jsonl"
    rows = [json.loads(line) for line in file.read_text("utf-8").splitlines()] if file.exists() else []
    known = {key(row) for row in rows}
    lm = make_lm(RoleSettings(model=options.lm, temperature=0.0, max_tokens=20, slots=1, threads=1))
    judge = dspy.Predict(JudgeCoverage)
    with file.open("a", encoding="utf-8") as out, dspy.context(lm=lm, adapter=KraqAdapter(), disable_history=True):
        for row in pairs(options):
            if key(row) in known:
                continue
            if time.process_time() > options.minutes * 60:
                break
            evidence = row.pop("evidence")
            words = content_words(row["statement"])
            row["words"] = len(words & content_words(evidence)) / len(words)
            row["covered"] = bool(judge(passages=evidence, statement=row["statement"]).covered)
            out.write(json.dumps(row) + "\n")
            out.flush()
            rows.append(row)
    return rows


def key(row: dict[str, Any]) -> tuple[str, ...]:
    return row["domain"], row["question"], row["system"], str(row["own"]), row["statement"]


def told_apart(rows: Sequence[dict[str, Any]]) -> float:
    """How often a statement that the judge calls covered has more of its words in the evidence than one that it does
    not; .5 is chance."""
    yes, no = ([row["words"] for row in rows if row["covered"] is covered] for covered in (True, False))
    if not yes or not no:
        return float("nan")
    return float(
        statistics.mean((yes_score > no_score) + 0.5 * (yes_score == no_score) for yes_score in yes for no_score in no)
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lm", required=True)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--out", type=Path, default=Path("runs/web"))
    parser.add_argument("--domains", nargs="+", default=["history", "nature"])
    parser.add_argument("--systems", nargs="+", default=["adaptive", "dense"])
    parser.add_argument("--minutes", type=float, default=30)
    options = parser.parse_args()
    rows = judged(options)
    for system in options.systems:
        for own in (True, False):
            some = [row for row in rows if row["system"] == system and row["own"] is own]
            if not some:
                continue
            covered, words = (statistics.mean(row[name] for row in some) for name in ("covered", "words"))
            whose = "its own question" if own else "another question"
            print(
                f"{system}, evidence for {whose}: {len(some)} statements, {covered:.3f} covered, {words:.3f} of words"
            )
    print(f"words tell the judge's yes from its no in {told_apart(rows):.3f} of pairs")


if __name__ == "__main__":
    main()
