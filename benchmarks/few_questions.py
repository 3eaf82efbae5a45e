"""Puts a few human questions beside a test set: how many pairs of systems do they decide, and how many wrongly?

    python benchmarks/few_questions.py scores hotpotqa --data DATA --out runs/few
    python benchmarks/few_questions.py report --out runs/few

`scores` draws up to 400 passages with the evidence of up to 150 human questions, indexes them, makes a test set by
rule and its rivals, and asks the systems of `few_systems.py` all of it. Each system's scores are kept, so an
interrupted run goes on.

`report` draws 5, 10, 20 and 40 human questions, 200 times each, and counts what these decide alone, what the test set
decides alone, and what both decide together (`calibrated`). Truth are the pairs that all human questions decide,
and for the coverage of intervals the questions that were not drawn, whose own error is counted. A rival, and the test
set with its systems permuted, take the test set's place.
"""

import argparse
import itertools
import json
import math
import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from few_systems import FEW_SYSTEMS
from numpy.typing import NDArray
from parts import part_of
from scipy import stats
from testset_ranking import Questions, answerable_shares, ask, file_of, stored_sets
from testset_systems import opened

from kraq_dspy import Workspace
from kraq_dspy.asset.corpus.sentences import sentence_spans
from kraq_dspy.eval import TestsetPlan, make_testset
from kraq_dspy.eval.calibration import calibrated
from kraq_dspy.eval.datasets import Dataset, load_local
from kraq_dspy.eval.statistics import paired_difference
from kraq_dspy.indexing import build_index
from kraq_dspy.records import Chunk

MOST_PASSAGES, MOST_QUESTIONS = 400, 150
MOST_MADE, MOST_OF_RIVALS = 120, 60
PEOPLE = (5, 10, 20, 40)
ALONE = (5, 7, 10, 13, 16, 20, 25, 30, 40, 50, 60, 80)
"""Numbers at which human questions decide alone: what n with a test set are worth is read off between these."""
DRAWS = 200
MADE, OWN = "made", "own-questions"
BOTH = "made and own questions"
LEAST_ROWS = 20
"""Rows of what is called a test set: where fewer could be made, there is none."""
RIVALS = ("sentences", "titles", OWN)
CHOSEN_ON = ("hotpotqa", "squad", "multihop_rag", "papers", "finance", "meetings", "tales", "policies")
"""Sets that the way of joining was chosen on; others confirm it."""
Array = NDArray[np.float64]


def question_sets(space: Workspace, people: Dataset, draft: Path) -> dict[str, Questions]:
    """Human questions, the test set, and what somebody could take in its place."""
    draw = random.Random(0)
    chunks = list(space.index.all(Chunk))
    made = make_testset(space, plan=TestsetPlan(MOST_MADE, answerable_shares()), draft=draft)

    sentences, titles, own = [], [], []
    for chunk in chunks:
        for start, end in sentence_spans(chunk.text):
            if 6 <= len(chunk.text[start:end].split()) <= 30:
                sentences.append((chunk.text[start:end], frozenset([chunk.document_id])))
        if chunk.title and not chunk.position:
            titles.append((chunk.title, frozenset([chunk.document_id])))
    for question in space.index.questions(source="kraq"):
        if question.document_ids:
            own.append((question.text, frozenset(question.document_ids)))

    return {
        "people": [(example.question, frozenset(example.supporting_ids)) for example in people.examples],
        "made": [(row.question, frozenset(row.supporting_ids)) for row in made if row.is_answerable],
        "sentences": draw.sample(sentences, min(MOST_OF_RIVALS, len(sentences))),
        "titles": draw.sample(titles, min(MOST_OF_RIVALS, len(titles))),
        "own questions": draw.sample(own, min(MOST_OF_RIVALS, len(own))),
    }


def keep_scores(name: str, data: Path, out: Path, asked: list[str], passages: int) -> None:
    folder = out / name
    folder.mkdir(parents=True, exist_ok=True)
    people = part_of(load_local(data / name), questions=MOST_QUESTIONS, passages=passages)
    if not (folder / "index.kraq" / "manifest.json").exists():
        build_index(list(people.documents), folder / "index.kraq")

    with opened(folder / "index.kraq") as (space, encoder):
        file = folder / "questions.json"
        if not file.exists():
            sets = question_sets(space, people, folder / "made.draft")
            to_keep = {label: [[text, sorted(gold)] for text, gold in questions] for label, questions in sets.items()}
            file.write_text(json.dumps(to_keep), "utf-8")

        sets = {label: questions for label, questions in stored_sets(folder).items() if label in asked and questions}
        print(name, {label: len(questions) for label, questions in sets.items()}, flush=True)
        encoder.encode_queries([text for questions in sets.values() for text, _ in questions])
        for system in FEW_SYSTEMS:
            find = system.make(space)
            for label, questions in sets.items():
                ask(find, questions, file_of(folder, label, system))
            print(name, system.name, flush=True)


@dataclass
class Tally:
    """Sums over draws: pairs decided right, opposite and not at all; what the pick loses; intervals that cover."""

    right: float = 0.0
    opposite: float = 0.0
    lost: float = 0.0
    covered: float = 0.0
    width: float = 0.0
    n: int = 0

    def add(self, differences: Array, halves: Array, pick: int, case: "Case", rest: Array) -> None:
        """Count one draw. `differences` and `halves` are those of the pairs; `rest` the scores that were not drawn."""
        decided = np.where(np.abs(differences) > halves, np.sign(differences), 0)
        self.right += float(np.sum((decided == case.truth) & (case.truth != 0)))
        self.opposite += float(np.sum(decided * case.truth < 0))

        apart = rest[:, case.first] - rest[:, case.second]
        error = apart.std(axis=0, ddof=1) / math.sqrt(len(rest))
        reach = np.sqrt(halves**2 + (1.96 * error) ** 2)
        self.covered += float(np.mean(np.abs(differences - apart.mean(axis=0)) <= reach + 1e-9))
        self.width += float(np.mean(halves))
        means = case.people.mean(axis=0)
        self.lost += float(means.max() - means[pick])
        self.n += 1

    def mean(self) -> dict[str, float]:
        return {name: getattr(self, name) / self.n for name in ("right", "opposite", "lost", "covered", "width")}


class Case:
    """A data set's scores: people's, `[questions, systems]`, and the test sets' by name; and what people's decide."""

    def __init__(self, folder: Path) -> None:
        self.name = folder.name
        self.people = scores_in(folder / "people")
        asked = [label for label in ("made", *RIVALS) if len(list((folder / label).glob("*.json"))) == len(FEW_SYSTEMS)]
        testsets = {label: scores_in(folder / label) for label in asked}
        testsets = {label: scores for label, scores in testsets.items() if len(scores) >= LEAST_ROWS}
        both = [testsets[label] for label in (MADE, OWN) if label in testsets]
        order = np.random.default_rng(0).permutation(len(FEW_SYSTEMS))
        self.testsets: dict[str, list[Array]] = {
            BOTH: both,
            f"{BOTH}, systems permuted": [each[:, order] for each in both],
        }
        self.testsets |= {label: [scores] for label, scores in testsets.items()}
        self.first, self.second = map(np.array, zip(*itertools.combinations(range(len(FEW_SYSTEMS)), 2), strict=True))
        verdicts = []
        for first, second in zip(self.first, self.second, strict=True):
            paired = paired_difference(self.people[:, first], self.people[:, second], resamples=2000)
            verdicts.append(math.copysign(1, paired.interval.estimate) if paired.is_decided else 0)
        self.truth = np.array(verdicts)

    @property
    def n_decided(self) -> int:
        return int(np.count_nonzero(self.truth))

    def draws(self, n: int) -> Iterator[tuple[Array, Array]]:
        """Human questions that are drawn, and the others."""
        for seed in range(DRAWS):
            order = np.random.default_rng([seed, n]).permutation(len(self.people))
            yield self.people[order[:n]], self.people[order[n:]]


def scores_in(folder: Path) -> Array:
    files = [folder / f"{system.name.replace(' ', '-')}.json" for system in FEW_SYSTEMS]
    return np.array([json.loads(file.read_text("utf-8"))["scores"] for file in files]).T


def alone(case: Case, n: int) -> dict[str, float]:
    """Paired t-tests over human questions alone."""
    tally = Tally()
    critical = float(stats.t.ppf(0.975, n - 1))
    for drawn, rest in case.draws(n):
        apart = drawn[:, case.first] - drawn[:, case.second]
        error = np.maximum(apart.std(axis=0, ddof=1) / math.sqrt(n), 0.5 / n)
        tally.add(apart.mean(axis=0), critical * error, int(drawn.mean(axis=0).argmax()), case, rest)
    return tally.mean()


def with_testsets(case: Case, testsets: Sequence[Array], n: int) -> dict[str, float]:
    """`calibrated` as users call it."""
    tally = Tally()
    names = [system.name for system in FEW_SYSTEMS]
    for drawn, rest in case.draws(n):
        joint = calibrated(*(dict(zip(names, scores.T, strict=True)) for scores in (drawn, *testsets)))
        pairs = [
            joint.pairs[names[first], names[second]] for first, second in zip(case.first, case.second, strict=True)
        ]
        differences = np.array([pair.interval.estimate for pair in pairs])
        halves = np.array([max(pair.interval.high - pair.interval.estimate, pair.interval.estimate - pair.interval.low)
                           for pair in pairs])  # fmt: skip
        tally.add(differences, halves, int(np.argmax([joint.means[name] for name in names])), case, rest)
    return tally.mean()


def testset_alone(case: Case, testsets: Sequence[Array]) -> dict[str, float]:
    testset = np.concatenate(testsets)
    apart = testset[:, case.first] - testset[:, case.second]
    error = np.maximum(apart.std(axis=0, ddof=1) / math.sqrt(len(testset)), 0.5 / len(testset))
    tally = Tally()
    tally.add(apart.mean(axis=0), 1.96 * error, int(testset.mean(axis=0).argmax()), case, case.people)
    return tally.mean()


def worth(right: float, by_number: dict[int, float]) -> str:
    """How many of human questions alone decide as many pairs."""
    numbers = sorted(by_number)
    if right <= by_number[numbers[0]]:
        return f"<= {numbers[0]}"
    for low, high in itertools.pairwise(numbers):
        if by_number[low] <= right <= by_number[high]:
            return f"{low + (high - low) * (right - by_number[low]) / (by_number[high] - by_number[low]):.0f}"
    return f"> {numbers[-1]}"


def report(out: Path) -> None:
    """Tables on standard output, and `few.json`."""
    figures: dict[str, Any] = {}
    for folder in sorted(path.parent for path in out.glob("*/questions.json")):
        done = [len(list((folder / label).glob("*.json"))) for label in ("people", "made")]
        if min(done) < len(FEW_SYSTEMS):
            continue
        case = Case(folder)
        numbers = [n for n in ALONE if n <= len(case.people) - 20]
        by_people = {n: alone(case, n) for n in numbers}
        figures[case.name] = {
            "people": len(case.people), "decided": case.n_decided, "alone": by_people,
            "test set alone": {label: testset_alone(case, testset) for label, testset in case.testsets.items()},
            "joined": {label: {n: with_testsets(case, testset, n) for n in PEOPLE if n in by_people}
                       for label, testset in case.testsets.items()},
        }  # fmt: skip
        show(case.name, figures[case.name])
        sys.stdout.flush()
    (out / "few.json").write_text(json.dumps(figures, indent=1) + "\n", "utf-8")


def show(name: str, of_set: dict[str, Any]) -> None:
    group = "chosen on" if name in CHOSEN_ON else "confirming"
    print(f"\n{name} ({group}): {of_set['people']} human questions decide {of_set['decided']} pairs of 120\n")
    print("| questions | way | right / opposite / undecided | pick loses | coverage | width | as many alone |")
    print("|---|---|---|---|---|---|---|")
    by_people = {n: each["right"] for n, each in of_set["alone"].items()}

    def line(n: object, way: str, each: dict[str, float], as_many: str) -> None:
        left = of_set["decided"] - each["right"] - each["opposite"]
        print(f"| {n} | {way} | {each['right']:.1f} / {each['opposite']:.2f} / {left:.1f} | {each['lost']:.3f} "
              f"| {each['covered']:.3f} | {each['width']:.3f} | {as_many} |")  # fmt: skip

    for label, each in of_set["test set alone"].items():
        line("-", f"{label} alone", each, "")
    for n in PEOPLE:
        if n in by_people:
            line(n, "people alone, paired t", of_set["alone"][n], "")
            for label, by_number in of_set["joined"].items():
                line(n, f"with {label}", by_number[n], worth(by_number[n]["right"], by_people))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", choices=["scores", "report"])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--sets", nargs="+", default=["people", "made", "sentences", "titles", "own questions"])
    parser.add_argument("--passages", type=int, default=MOST_PASSAGES)
    given = parser.parse_args()
    if given.work == "report":
        report(given.out)
    for name in given.names:
        keep_scores(name, given.data, given.out, given.sets, given.passages)


if __name__ == "__main__":
    main()
