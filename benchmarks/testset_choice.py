"""Compares ways to draw a test set, over rankings that are computed once: how the shares of kinds were chosen.

    python benchmarks/testset_choice.py rank hotpotqa squad clapnq --data DATA --out runs/ranking
    python benchmarks/testset_choice.py compare hotpotqa squad clapnq --out runs/ranking

`rank` makes the candidates that `make_testset` draws from, more than any set has, and asks all of them and people's
questions of the unbroken systems of `testset_ranking.py` but three slow ones. `compare` draws sets of 80 by every way
in WAYS with ten seeds, and holds each against people's questions; nothing is retrieved. Run it on TUNED_ON alone: the
other sets tell whether the choice holds elsewhere.
"""

import argparse
import itertools
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
from testset_ranking import SYSTEMS, TUNED_ON, UNBROKEN, Scores, ceiling, opened, recall, sampled, tau, verdicts

from kraq_dspy.eval.datasets import load_local
from kraq_dspy.eval.testset import as_line, as_row
from kraq_dspy.eval.testset_making import TestsetPlan, make_candidates
from kraq_dspy.programs.testset import difficulty, item_response
from kraq_dspy.programs.testset.difficulty import Candidate

MADE = 90
SLOW = ("dense, chunks of 64", "dense, chunks of 32", "adaptive, k 3")
JUDGED = [place for place in UNBROKEN if SYSTEMS[place].name not in SLOW]
"""The unbroken systems but those that take longest."""
DRAWN = 80
SEEDS = range(10)
EVERY_KIND: Mapping[str, float] = {"fact": 0.4, "bridge": 0.2, "list": 0.1, "comparison": 0.05, "broad": 0.25}
"""Shares of what is made, answerable kinds alone."""
WAYS: Mapping[str, Mapping[str, float]] = {
    "facts": {"fact": 1},
    "bridges": {"bridge": 1},
    "broad": {"broad": 1},
    "facts and bridges": {"fact": 0.5, "bridge": 0.5},
    "facts and broad": {"fact": 0.5, "broad": 0.5},
    "a third each": {"fact": 0.34, "bridge": 0.33, "broad": 0.33},
    "more facts": {"fact": 0.5, "bridge": 0.2, "list": 0.05, "comparison": 0.05, "broad": 0.2},
    "more bridges": {"fact": 0.25, "bridge": 0.4, "list": 0.05, "comparison": 0.05, "broad": 0.25},
    "more broad": {"fact": 0.25, "bridge": 0.2, "list": 0.05, "comparison": 0.05, "broad": 0.45},
}


def rank(name: str, data: Path, out: Path) -> None:
    folder = out / name
    people = sampled(load_local(data / name))
    with opened(folder / "index.kraq") as (space, encoder):
        candidates = make_candidates(space, TestsetPlan(MADE, EVERY_KIND), draft=folder / "choice.draft")
        asked = [(one.question, frozenset(one.supporting_ids)) for one in people.examples]
        asked += [(one.row.question, frozenset(one.row.supporting_ids)) for one in candidates]
        encoder.encode_queries([question for question, _ in asked])
        print(name, Counter(one.row.type for one in candidates), flush=True)

        scores = np.zeros((len(asked), len(SYSTEMS)))
        for place in JUDGED:
            find = SYSTEMS[place].make(space)
            scores[:, place] = [recall(gold, find(question)) for question, gold in asked]
    np.save(folder / "choice.npy", scores)
    lines = [json.dumps({"row": as_line(one.row), "source": one.source, "told": one.told}) for one in candidates]
    (folder / "choice.jsonl").write_text("\n".join(lines) + "\n", "utf-8")


def stored(folder: Path) -> tuple[Scores, Scores, list[Candidate]]:
    """Scores of people's questions and of the candidates, and these."""
    scores = np.load(folder / "choice.npy")
    lines = map(json.loads, (folder / "choice.jsonl").read_text("utf-8").splitlines())
    candidates = [Candidate(as_row(line["row"]), line["source"], line["told"]) for line in lines]
    n_people = len(scores) - len(candidates)
    return scores[:n_people], scores[n_people:], candidates


def judged(people: Scores, own: Scores) -> tuple[float, ...]:
    """Agree, opposite, undecided, lost and tau of the unbroken systems, without intervals."""
    pairs = list(itertools.combinations(JUDGED, 2))
    true, said = verdicts(people, pairs), verdicts(own, pairs)
    separated = [pair for pair in pairs if true[pair]]
    agree = sum(said[pair] == true[pair] for pair in separated)
    opposite = sum(said[pair] == -true[pair] for pair in separated)
    means, means_of_own = people.mean(axis=0)[JUDGED], own.mean(axis=0)[JUDGED]
    best = np.flatnonzero(means_of_own >= means_of_own.max() - 1e-9)
    lost = float(means.max() - means[best].mean())
    return agree, opposite, len(separated) - agree - opposite, lost, tau(means, means_of_own)


def drawn(candidates: list[Candidate], shares: Mapping[str, float], seed: int, rule: str) -> list[int]:
    """Places of the rows that are drawn. `rule` leaves out a part of it: "told" or "overlap"."""
    if rule == "no told":
        candidates = [replace(one, told=item_response.MOST_TOLD) for one in candidates]
    if rule == "no overlap":
        candidates = [replace(one, row=replace(one.row, overlap=1.0)) for one in candidates]
    if rule == "first wording":
        candidates = list({one.source: one for one in reversed(candidates)}.values())[::-1]
    rows = difficulty.draw(candidates, DRAWN, shares, seed=seed)
    chosen = {row.id for row in rows}
    return [place for place, one in enumerate(candidates) if one.row.id in chosen]


def compare(name: str, out: Path) -> None:
    people, scores, candidates = stored(out / name)
    print(f"\n{name}: {len(people)} questions of people, ceiling {ceiling(people, JUDGED):.2f}")
    print("| way | rule | rows | agree / opposite / undecided | lost | tau | mean | overlap |")
    print("|---|---|---|---|---|---|---|---|")
    places = {one.row.id: place for place, one in enumerate(candidates)}
    rules = ("", "no told", "no overlap", "first wording")
    for way, rule in itertools.product(WAYS, rules):
        known = [one for one in candidates if one.row.type in WAYS[way]]
        results, rows = [], []
        for seed in SEEDS:
            kept = [places[known[place].row.id] for place in drawn(known, WAYS[way], seed, rule)] if not rule else None
            if kept is None:
                kept = rows_by_rule(known, places, WAYS[way], seed, rule)
            results.append(judged(people, scores[kept]))
            rows.append(kept)
        agree, opposite, undecided, lost, rank_tau = np.mean(results, axis=0)
        mean = np.mean([scores[kept][:, JUDGED].mean() for kept in rows])
        shared = np.mean([np.median([candidates[place].row.overlap for place in kept]) for kept in rows])
        print(
            f"| {way} | {rule or 'all'} | {len(rows[0])} | {agree:.0f} / {opposite:.1f} / {undecided:.0f} | {lost:.3f} "
            f"| {rank_tau:.2f} | {mean:.2f} | {shared:.2f} |"
        )


def rows_by_rule(
    known: list[Candidate], places: Mapping[str, int], shares: Mapping[str, float], seed: int, rule: str
) -> list[int]:
    if rule == "first wording":
        known = list({one.source: one for one in reversed(known)}.values())[::-1]
    return [places[known[place].row.id] for place in drawn(known, shares, seed, rule)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("rank", "compare"))
    parser.add_argument("sets", nargs="*", default=list(TUNED_ON))
    parser.add_argument("--data", type=Path, default=Path("data"))
    parser.add_argument("--out", type=Path, default=Path("runs/ranking"))
    arguments = parser.parse_args()
    for name in arguments.sets:
        if arguments.command == "rank":
            rank(name, arguments.data, arguments.out)
        else:
            compare(name, arguments.out)


if __name__ == "__main__":
    main()
