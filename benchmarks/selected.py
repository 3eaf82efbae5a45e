"""Holds what `kraq select` picks by made questions against the best candidate by human questions.

    python benchmarks/selected.py run hotpotqa squad clapnq bioasq --data DATA --out runs/selected
    python benchmarks/selected.py report hotpotqa squad clapnq bioasq --out runs/selected

`run` takes up to 500 passages with the evidence of up to 150 questions of people, makes a test set of 200 rows without
a language model, and selects by either. The pick by made questions is then asked human questions as well. What was
done is kept, and the same command goes on.
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from parts import part_of

from kraq_dspy import Workspace
from kraq_dspy.eval.datasets import Dataset, load_local
from kraq_dspy.eval.selection.candidates import Candidate, SelectionPlan
from kraq_dspy.eval.selection.outcome import Selection
from kraq_dspy.eval.selection.selecting import select
from kraq_dspy.eval.statistics import bootstrap_difference
from kraq_dspy.indexing import build_index
from kraq_dspy.ports import SilentProgress
from kraq_dspy.testset import kinds
from kraq_dspy.testset.making import TestsetPlan, make_testset

PASSAGES, PEOPLE, MADE = 500, 150, 200
MINUTES = 60.0
WITH_EVIDENCE = {kind: share for kind, share in kinds.SHARES.items() if kind not in kinds.WITHOUT_ANSWER}


class Told(SilentProgress):
    """Prints the name of each stage."""

    def start(self, stage: str, total: int | None) -> None:
        print(" ", stage, total or "", flush=True)


def write_part(part: Dataset, folder: Path) -> None:
    """`corpus.jsonl` and `people.jsonl`, as a user would have them."""
    folder.mkdir(parents=True, exist_ok=True)
    corpus = ({"id": each.id, "title": each.title, "text": each.text} for each in part.documents)
    people = (
        {"id": each.id, "question": each.question, "supporting_ids": sorted(each.supporting_ids)}
        for each in part.examples
    )
    _write(folder / "corpus.jsonl", corpus)
    _write(folder / "people.jsonl", people)


def _write(file: Path, rows: Any) -> None:
    file.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")


def run(name: str, data: Path, out: Path) -> None:
    folder = out / name
    if not (folder / "people.jsonl").exists():
        write_part(part_of(load_local(data / name), questions=PEOPLE, passages=PASSAGES), folder)
    if not (folder / "made.jsonl").exists():
        build_index(folder / "corpus.jsonl", folder / "testset.kraq", progress=Told())
        with Workspace.open(folder / "testset.kraq") as space:
            plan = TestsetPlan(MADE, WITH_EVIDENCE)
            make_testset(space, plan=plan, draft=folder / "made.draft").save(folder / "made.jsonl")

    outcome: dict[str, Any] = {}
    for label in ("made", "people"):
        print(f"{name}, by {label}", flush=True)
        selection = selected(folder, label)
        outcome[label] = described(selection)
    picked = Candidate(**outcome["made"]["pick"])
    outcome["pick by people"] = scores_of(folder, picked)
    (folder / "outcome.json").write_text(json.dumps(outcome), "utf-8")


def selected(folder: Path, label: str) -> Selection:
    plan = SelectionPlan(minutes=MINUTES)
    return select(
        folder / "corpus.jsonl", folder / f"{label}.jsonl", plan=plan, out=folder / f"by-{label}", progress=Told()
    )


def described(selection: Selection) -> dict[str, Any]:
    """What the report needs of a selection: the pick, the best, and the scores of those that were asked everything."""
    rows = selection.summary.rows
    scores = {
        tried.candidate.name: {
            row.question_id: row.metrics["recall"] for row in rows if row.system == tried.candidate.name
        }
        for tried in selection.tried
    }
    chosen = selection.chosen
    return {
        "pick": {"retriever": chosen.candidate.retriever, "tokens": chosen.candidate.tokens, "k": chosen.candidate.k},
        "pick name": chosen.candidate.name,
        "best": selection.best.candidate.name,
        "undecided": len(selection.undecided) + 1,
        "questions": selection.n_questions,
        "scores": scores,
        "handed on": {tried.candidate.name: tried.cost.tokens for tried in selection.tried},
        "dropped": dict(selection.dropped),
    }


def scores_of(folder: Path, candidate: Candidate) -> dict[str, float]:
    """What a candidate finds for human questions, by question."""
    plan = SelectionPlan(
        retrievers=(candidate.retriever,), chunk_tokens=(candidate.tokens,), ks=(candidate.k,), minutes=MINUTES
    )
    selection = select(folder / "corpus.jsonl", folder / "people.jsonl", plan=plan, out=folder / "by-people")
    return {row.question_id: row.metrics["recall"] for row in selection.summary.rows if row.system == candidate.name}


def report(names: Sequence[str], out: Path) -> None:
    """Markdown tables on standard output."""
    outcomes = {name: json.loads((out / name / "outcome.json").read_text("utf-8")) for name in names}
    print("| corpus | made rows | people's | picked by made rows | undecided | best by people's | lost by the pick |")
    print("|---|---|---|---|---|---|---|")
    for name, outcome in outcomes.items():
        made, people = outcome["made"], outcome["people"]
        best = people["best"]
        cells = (
            name,
            str(made["questions"]),
            str(people["questions"]),
            f"{made['pick name']} ({_mean(outcome['pick by people']):.3f})",
            str(made["undecided"]),
            f"{best} ({_mean(people['scores'][best]):.3f})",
            _lost(outcome["pick by people"], people["scores"][best]),
        )
        print(f"| {' | '.join(cells)} |")

    print("\n| corpus | picked by human questions | lost by it | best of the pick's own k | lost to that |")
    print("|---|---|---|---|---|")
    for name, outcome in outcomes.items():
        people, k = outcome["people"], outcome["made"]["pick"]["k"]
        best, picked = people["best"], people["pick name"]
        same = {other: scores for other, scores in people["scores"].items() if other.endswith(f"k {k}")}
        rival = max(same, key=lambda other: _mean(same[other]), default=None)
        lost = _lost(people["scores"][picked], people["scores"][best])
        own = "none was asked all" if rival is None else f"{rival} ({_mean(same[rival]):.3f})"
        to_own = "" if rival is None else _lost(outcome["pick by people"], same[rival])
        print(f"| {name} | {picked} | {lost} | {own} | {to_own} |")


def _mean(scores: Mapping[str, float]) -> float:
    return sum(scores.values()) / len(scores)


def _lost(scores: Mapping[str, float], best: Mapping[str, float]) -> str:
    if scores == best:
        return "0.000"
    shared = sorted(scores.keys() & best.keys())
    lost = bootstrap_difference([best[id] for id in shared], [scores[id] for id in shared])
    return f"{lost.estimate:.3f} [{lost.low:.3f}, {lost.high:.3f}]"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("run", "report"))
    parser.add_argument("sets", nargs="+", metavar="NAME")
    parser.add_argument("--data", type=Path, default=Path("data"))
    parser.add_argument("--out", type=Path, default=Path("runs/selected"))
    arguments = parser.parse_args()
    if arguments.command == "report":
        report(arguments.sets, arguments.out)
        return
    for name in arguments.sets:
        run(name, arguments.data, arguments.out)


if __name__ == "__main__":
    main()
