"""Compares what two halves of a test set decide about pairs of systems with what human questions decide.

    python benchmarks/two_halves.py scores clapnq tales --data DATA --out runs/halves
    python benchmarks/two_halves.py report --out runs/halves
    python benchmarks/two_halves.py choose --out runs/halves

`scores` draws up to 300 passages with the evidence of up to 150 human questions, indexes them by the default
settings, makes a test set of 200 rows, and asks every system of `testset_systems.py` human questions, both halves
and random sentences. The score is recall@5 of documents. Each system's scores are kept, so an interrupted run resumes;
those of a corpus end in OUT/CORPUS.npz, as arrays named "people|SYSTEM", "own|SYSTEM", "made|SYSTEM".

`report` reads these files. A pair of systems is decided if the 95 % interval of the paired bootstrap leaves out 0; what
all human questions decide is the truth. It prints every rule that was tried, also with few of human questions
(which are left out of the truth), by corpus, with an interval over corpora, and what following a decision loses.

`choose` draws half of the corpora 500 times, takes the rule that decides most there with at most 1 % opposite, among
rules that ask for more or less of the surer half and of the other, and prints how it does on the other corpora.
"""

import argparse
import json
import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from parts import part_of
from testset_systems import OTHERS, SIXTEEN, SYSTEMS, K, opened

from kraq_dspy import Workspace
from kraq_dspy.asset.corpus.sentences import sentence_spans
from kraq_dspy.eval import make_testset
from kraq_dspy.eval.datasets import Dataset, load_local
from kraq_dspy.indexing import build_index
from kraq_dspy.records import Chunk

MOST_PASSAGES, MOST_QUESTIONS, MOST_MADE, MOST_SENTENCES = 300, 150, 200, 100
LEAST_ROWS = 20
SURE = 3.0
"""Standard errors."""
RULE = "one half at three standard errors, the other's mean of its sign"
"""What the library decides by."""
SAMPLES, DRAWS, FEW = 6000, 20, (5, 10, 20, 40)
NOT_PEOPLES = ("multihop_rag", "musique")
"""A model asked the questions of the first; those of the second were composed from single ones."""
KEPT_BACK = ("pubmedqa", "xquad_de")
"""Asked after the rule was chosen."""
Array = NDArray[np.float64]
Questions = list[tuple[str, list[str]]]
"""Texts, each with the ids of its documents."""
Rule = Mapping[str, int]


def question_sets(space: Workspace, people: Dataset, folder: Path) -> dict[str, Questions]:
    """Human questions, both halves of a test set, and random sentences."""
    made = make_testset(space, MOST_MADE, draft=folder / "made.draft")
    made.save(folder / "made.jsonl")
    sentences = []
    for chunk in space.index.all(Chunk):
        for start, end in sentence_spans(chunk.text):
            if 6 <= len(chunk.text[start:end].split()) <= 30:
                sentences.append((chunk.text[start:end], [chunk.document_id]))

    def half(name: str) -> Questions:
        return [(row.question, list(row.supporting_ids)) for row in made if row.half == name and row.is_answerable]

    return {
        "people": [(example.question, sorted(example.supporting_ids)) for example in people.examples],
        "own": half("own"),
        "made": half("made"),
        "sentences": random.Random(0).sample(sentences, min(MOST_SENTENCES, len(sentences))),
    }


def keep_scores(name: str, data: Path, out: Path, passages: int) -> None:
    folder = out / name
    folder.mkdir(parents=True, exist_ok=True)
    people = part_of(load_local(data / name), questions=MOST_QUESTIONS, passages=passages)
    if not (folder / "index.kraq" / "manifest.json").exists():
        build_index(list(people.documents), folder / "index.kraq")

    scores: dict[str, dict[str, list[float]]] = {}
    with opened(folder / "index.kraq") as (space, encoder):
        file = folder / "questions.json"
        if not file.exists():
            file.write_text(json.dumps(question_sets(space, people, folder)), "utf-8")
        sets = json.loads(file.read_text("utf-8"))
        print(name, {label: len(questions) for label, questions in sets.items()}, flush=True)
        encoder.encode_queries([question[0] for questions in sets.values() for question in questions])
        for system in SYSTEMS:
            kept = folder / "scores" / f"{system.name.replace(' ', '-')}.json"
            if not kept.exists():
                find = system.make(space)
                kept.parent.mkdir(exist_ok=True)
                kept.write_text(json.dumps({label: [len(set(gold) & set(find(text)[:K])) / len(gold)
                                                    for text, gold, *_ in questions]
                                            for label, questions in sets.items()}), "utf-8")  # fmt: skip
                print(name, system.name, flush=True)
            scores[system.name] = json.loads(kept.read_text("utf-8"))
    arrays = {f"{label}|{system}": values for system, of in scores.items() for label, values in of.items()}
    kept_arrays: dict[str, Any] = {key: np.array(values, np.float32) for key, values in arrays.items()}
    np.savez_compressed(out / f"{name}.npz", **kept_arrays)


class Corpus:
    """The scores of one corpus: `[questions, systems]` by half."""

    def __init__(self, file: Path) -> None:
        self.name = file.stem
        self.stored = np.load(file)

    def scores(self, half: str, systems: Sequence[str]) -> Array:
        scores: Array = np.array([self.stored[f"{half}|{system}"] for system in systems], np.float64).T
        return scores


def said_by(scores: Array, rng: np.random.Generator, z: float = 0.0) -> Array:
    """1, -1 or 0 for every pair of systems, `[systems, systems]`: the interval of the paired bootstrap leaves out 0, or
    the mean is `z` standard errors from it."""
    n, n_systems = scores.shape
    if n < LEAST_ROWS:
        return np.zeros((n_systems, n_systems))
    if z:
        apart = scores[:, :, None] - scores[:, None, :]
        error = apart.std(axis=0, ddof=1) / np.sqrt(n)
        mean = apart.mean(axis=0)
        apart_enough: Array = np.where(np.abs(mean) > z * error, np.sign(mean), 0) * (error > 0)
        return apart_enough
    counts = rng.multinomial(n, np.full(n, 1 / n), SAMPLES)
    means = counts @ scores / n
    first, second = np.triu_indices(n_systems, 1)
    low, high = np.percentile((means[:, first] - means[:, second]).astype(np.float32), [2.5, 97.5], axis=0)
    decisions = np.zeros((n_systems, n_systems))
    decisions[first, second] = (low > 0).astype(float) - (high < 0)
    return decisions - decisions.T


def signs(scores: Array) -> Array:
    means = scores.mean(axis=0) if len(scores) else np.zeros(scores.shape[1])
    return np.sign(means[:, None] - means[None, :])


def said_by_few(scores: Array) -> Array:
    """The same of few questions, by Student's t with 2.2 errors."""
    apart = scores[:, :, None] - scores[:, None, :]
    error = apart.std(axis=0, ddof=1) / np.sqrt(len(scores))
    mean = apart.mean(axis=0)
    decisions: Array = np.where((error > 0) & (np.abs(mean) > 2.2 * error), np.sign(mean), 0)
    return decisions


def rules(corpus: Corpus, systems: Sequence[str], rng: np.random.Generator) -> dict[str, Array]:
    """What each rule says of every pair without human questions."""
    own, made, sentences = (corpus.scores(half, systems) for half in ("own", "made", "sentences"))
    by_own, by_made, by_sentences = (said_by(each, rng) for each in (own, made, sentences))
    both = np.where(by_own == by_made, by_own, 0)
    pooled = np.concatenate([own, made])
    mean_of_both = signs(own) + signs(made)
    votes = by_own + by_made + by_sentences
    halves_of_own, halves_of_made = ([said_by(part, rng) for part in np.array_split(rng.permutation(each), 2)]
                                     for each in (own, made))  # fmt: skip
    one_and_sign = np.where(by_own != 0, by_own * (signs(made) == by_own), by_made * (signs(own) == by_made))
    one_half = min(len(own), len(made)) < LEAST_ROWS
    sure = np.maximum(np.abs(said_by(own, rng, SURE)), np.abs(said_by(made, rng, SURE)))
    sure_and_sign = signs(own) * (signs(own) == signs(made)) * sure * (not one_half)
    means = own.mean(axis=0) if len(own) else np.zeros(len(systems))
    margin = np.abs(means[:, None] - means[None, :])
    return {
        "made alone": by_made,
        "own alone": by_own,
        "random sentences alone": by_sentences,
        "two of three (own, made, sentences), none against": np.sign(votes) * (np.abs(votes) >= 2),
        "both pooled, means of one sign": said_by(pooled, rng) * (np.abs(mean_of_both) == 2),
        "both pooled at z > 3.9": said_by(pooled, rng, 3.9),
        "one decides, the other's mean of its sign": one_and_sign,
        "own alone, by more than .02": by_own * (margin > 0.02),
        "own alone, by more than .04": by_own * (margin > 0.04),
        "two random halves of own": np.where(halves_of_own[0] == halves_of_own[1], halves_of_own[0], 0),
        "two random halves of made": np.where(halves_of_made[0] == halves_of_made[1], halves_of_made[0], 0),
        "both decide alike": both,
        RULE: sure_and_sign,
    }  # fmt: skip


def with_people(
    corpus: Corpus, systems: Sequence[str], halves: Array, rng: np.random.Generator
) -> dict[str, list[tuple[Array, Array]]]:
    """What the rules with few of human questions say, each draw with the truth of the questions that it left."""
    people = corpus.scores("people", systems)
    decisions: dict[str, list[tuple[Array, Array]]] = defaultdict(list)
    for n in FEW:
        if n > 0.6 * len(people):
            continue
        for _ in range(DRAWS):
            order = rng.permutation(len(people))
            few, truth = people[order[:n]], said_by(people[order[n:]], rng, 1.96)
            alone, sign = said_by_few(few), signs(few)
            kept = np.where(sign == -halves, 0, halves)
            decisions[f"{n} of people's alone"].append((alone, truth))
            decisions[f"{n} of people's, else the rule"].append((np.where(alone != 0, alone, halves), truth))
            decisions[f"{n} of people's, else the rule unless their mean is against"].append(
                (np.where(alone != 0, alone, kept), truth)
            )
    return decisions


def counts(decisions: Array, truth: Array) -> Array:
    """Right, opposite and undecided of the pairs that the truth decides; decided of those that it does not."""
    upper = np.triu_indices(len(decisions), 1)
    decisions, truth = decisions[upper], truth[upper]
    known = truth != 0
    right, opposite = (decisions == truth) & known, (decisions == -truth) & known
    open_, unverified = (decisions == 0) & known, (decisions != 0) & ~known
    return np.array([each.sum() for each in (right, opposite, open_, unverified)], float)


def line(name: str, total: Array) -> str:
    right, opposite, undecided, unknown = total
    wrong = 100 * opposite / max(1e-9, right + opposite)
    made = 100 * (right + opposite) / max(1e-9, right + opposite + undecided)
    return f"| {name} | {right:.4g} | {opposite:.3g} | {undecided:.4g} | {wrong:.1f} % | {made:.0f} % | {unknown:.4g} |"


def interval_over_corpora(by_corpus: Sequence[Array], rng: np.random.Generator) -> tuple[float, float]:
    """The 95 % interval of the share of wrong decisions if corpora are drawn again."""
    rows = np.array(by_corpus)
    shares = []
    for _ in range(2000):
        total = rows[rng.integers(0, len(rows), len(rows))].sum(axis=0)
        shares.append(total[1] / max(1.0, total[0] + total[1]))
    return float(np.percentile(shares, 2.5)), float(np.percentile(shares, 97.5))


HEADINGS = "| rule | right | opposite | undecided | wrong of decided | decided of known | decided, not to be verified |"


def report(out: Path, left_out: Sequence[str] = (), systems: Sequence[str] = SIXTEEN) -> None:
    corpora = [Corpus(file) for file in sorted(out.glob("*.npz")) if file.stem not in left_out]
    rng = np.random.default_rng(0)
    by_rule: dict[str, dict[str, Array]] = defaultdict(dict)
    details: dict[str, list[str]] = {"corpus": [], "lost": []}
    lost_by: list[float] = []
    for corpus in corpora:
        people = corpus.scores("people", systems)
        truth = said_by(people, rng)
        for name, decisions in rules(corpus, systems, rng).items():
            by_rule[name][corpus.name] = counts(decisions, truth)
            decided = decisions  # by RULE, the last
        for name, draws in with_people(corpus, systems, decided, rng).items():
            by_rule[name][corpus.name] = np.mean([counts(decisions, own) for decisions, own in draws], axis=0)

        upper = np.triu_indices(len(systems), 1)
        means = people.mean(axis=0)
        gained = (decided * (means[:, None] - means[None, :]))[upper]
        followed = decided[upper] != 0
        against = int(np.sum(followed & (truth[upper] == 0) & (gained < 0)))
        lost = -gained[followed & (gained < 0)]
        lost_by += list(lost)
        n_rows = [len(corpus.scores(half, systems)) for half in ("people", "made", "own")]
        total = by_rule[RULE][corpus.name]
        details["corpus"].append(
            f"| {corpus.name} | {n_rows[0]} / {n_rows[1]} / {n_rows[2]} | {int(sum(total[:3]))} "
            f"| {' / '.join(f'{each:.0f}' for each in by_rule['made alone'][corpus.name][:2])} "
            f"| {' / '.join(f'{each:.0f}' for each in by_rule['own alone'][corpus.name][:2])} "
            f"| {total[0]:.0f} / {total[1]:.0f} | {total[3]:.0f}, {against} | {max(lost, default=0):.3f} |"
        )

    print(f"{len(corpora)} corpora, {len(systems)} systems\n\n{HEADINGS}\n|---|---|---|---|---|---|---|")
    for name, by_corpus in by_rule.items():
        print(line(name, sum(by_corpus.values(), np.zeros(4))))
    print("\n| corpus | people / made / own | known pairs | made: right / opposite | own | the rule "
          "| not to be verified, people's mean against | most lost |\n|---|---|---|---|---|---|---|---|")  # fmt: skip
    print("\n".join(details["corpus"]))
    rule_by_corpus = by_rule[RULE]
    low, high = interval_over_corpora(list(rule_by_corpus.values()), rng)
    total = sum(rule_by_corpus.values(), np.zeros(4))
    n_pairs = len(corpora) * len(systems) * (len(systems) - 1) // 2
    wrong = 100 * total[1] / (total[0] + total[1])
    n_decided = total[0] + total[1] + total[3]
    print(f"\nThe rule decides {n_decided:.0f} of {n_pairs} pairs; wrong of those to be verified: {wrong:.2f} % "
          f"[{100 * low:.1f}, {100 * high:.1f}] over corpora.")  # fmt: skip
    print(f"Following them loses .02 of recall or more in {sum(each >= 0.02 for each in lost_by)}, at most "
          f"{max(lost_by, default=0):.3f}.")  # fmt: skip


def report_broken(out: Path) -> None:
    """How many broken systems human questions notice, and how many of these the halves do."""
    rng = np.random.default_rng(0)
    pairs = [(system.name.partition(",")[0], system.name) for system in SYSTEMS if system.broken]
    noticed = by_rule = either = beyond = better = 0
    for corpus in (Corpus(file) for file in sorted(out.glob("*.npz"))):
        for pair in pairs:
            own, made, people = (said_by(corpus.scores(half, pair), rng)[0, 1] for half in ("own", "made", "people"))
            decided = rules(corpus, pair, rng)[RULE][0, 1]
            if people > 0:
                noticed += 1
                by_rule += decided > 0
                either += own > 0 or made > 0
            else:
                beyond += decided > 0
            better += decided < 0
    print(
        f"\nBroken systems: human questions notice {noticed}; of these the rule {by_rule}, one half at least {either}."
    )
    print(f"The rule notices {beyond} more, and calls {better} better.")


def standard_errors(scores: Array) -> Array:
    """The mean difference of every pair of systems, in its standard errors."""
    apart = scores[:, :, None] - scores[:, None, :]
    error = apart.std(axis=0, ddof=1) / np.sqrt(len(scores))
    apart_by: Array = np.where(error > 0, apart.mean(axis=0) / np.maximum(error, 1e-12), 0)
    return apart_by


def choose(out: Path, systems: Sequence[str] = SIXTEEN) -> None:
    rng = np.random.default_rng(0)
    surer, other = (2.25, 2.5, 2.75, 3, 3.25), (0, 0.5, 1, 1.25, 1.5)
    names = ["both decide alike", *(f"{high} and {low}" for high in surer for low in other)]
    counted: dict[str, dict[str, Array]] = defaultdict(dict)
    for corpus in (Corpus(file) for file in sorted(out.glob("*.npz")) if file.stem not in NOT_PEOPLES):
        own, made, people = (corpus.scores(half, systems) for half in ("own", "made", "people"))
        truth, by_own, by_made = (said_by(each, rng) for each in (people, own, made))
        if not truth.any():
            continue
        of_own, of_made = standard_errors(own), standard_errors(made)
        sizes = np.abs(of_own), np.abs(of_made)
        sign = np.sign(of_own) * (np.sign(of_own) == np.sign(of_made)) * (min(len(own), len(made)) >= LEAST_ROWS)
        decided = [np.where(by_own == by_made, by_own, 0)]
        decided += [sign * (np.maximum(*sizes) > high) * (np.minimum(*sizes) > low) for high in surer for low in other]
        for name, decisions in zip(names, decided, strict=True):
            counted[name][corpus.name] = counts(decisions, truth)

    corpora = list(counted[names[0]])
    taken: dict[str, int] = defaultdict(int)
    held_out, before = np.zeros(4), np.zeros(4)
    for _ in range(500):
        order = [corpora[place] for place in rng.permutation(len(corpora))]
        first, rest = order[: len(order) // 2], order[len(order) // 2 :]

        def fitness(name: str, first: Sequence[str] = tuple(first)) -> tuple[bool, float]:
            right, opposite, *_ = sum((counted[name][corpus] for corpus in first), np.zeros(4))
            share = opposite / max(1.0, right + opposite)
            return (True, right) if share <= 0.01 else (False, -share)

        best = max(names, key=fitness)
        taken[best] += 1
        held_out += sum((counted[best][corpus] for corpus in rest), np.zeros(4)) / 500
        before += sum((counted[names[0]][corpus] for corpus in rest), np.zeros(4)) / 500
    print(f"{len(corpora)} corpora, {len(names)} rules; standard errors of the surer half and of the other")
    print(HEADINGS, "|---|---|---|---|---|---|---|", sep="\n")
    for name in names:
        print(line(name, sum(counted[name].values(), np.zeros(4))))
    print("Chosen on half of the corpora:", sorted(taken.items(), key=lambda each: -each[1]))
    print(line("the chosen, on the others", held_out), line("both decide alike, there", before), sep="\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", choices=("scores", "report", "choose"))
    parser.add_argument("names", nargs="*")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--passages", type=int, default=MOST_PASSAGES)
    options = parser.parse_args()
    for name in options.names:
        keep_scores(name, options.data, options.out, options.passages)
    if options.work == "choose":
        choose(options.out)
    if options.work == "report":
        stored = [file.stem for file in sorted(options.out.glob("*.npz"))]
        report(options.out, left_out=KEPT_BACK)
        print("\nOf people's own questions alone:\n")
        report(options.out, left_out=(*KEPT_BACK, *NOT_PEOPLES))
        if set(KEPT_BACK) & set(stored):
            print("\nCorpora that were kept back:\n")
            report(options.out, left_out=[name for name in stored if name not in KEPT_BACK])
        print("\nSystems that were kept back:\n")
        report(options.out, left_out=KEPT_BACK, systems=OTHERS)
        report_broken(options.out)


if __name__ == "__main__":
    main()
