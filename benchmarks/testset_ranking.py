"""Holds synthetic test sets against human questions: do they rank retrieval systems alike?

    python benchmarks/testset_ranking.py prepare hotpotqa --data DATA --out runs/ranking
    python benchmarks/testset_ranking.py write hotpotqa --out runs/ranking --lm MODEL --api-base URL
    python benchmarks/testset_ranking.py run hotpotqa --data DATA --out runs/ranking
    python benchmarks/testset_ranking.py report --out runs/ranking

`prepare` draws up to 600 passages with the evidence of up to 150 questions of people, and indexes them. `run` asks
every system of SYSTEMS the questions of every set: people's, those that `make_testset` makes, and the rivals'. The
questions and each system's scores are kept in files of their own, so an interrupted run goes on. `report` compares the
rankings.

`write` lets a language model write rows, with nothing but the index (`--index`, else that of `--out`): `by-model.jsonl`
by `make_testset`, `ragas.jsonl` and `autoq.jsonl` in two other ways (`testset_rivals.py`), with the calls and tokens of
each in `NAME.usage.json`. What was answered is kept in drafts beside them. `--written NAME` writes one of them, so that
three processes may write at the same time. `run` then asks these, too.

Systems (`testset_systems.py`) were registered before the first run. What is tuned (kinds of rows, thresholds, the
drawing) was chosen on CHOSEN_ON and committed before the first run on the others. Of OVERLAP_MEASURED_ON, questions
whose evidence is in the half of the documents on which the overlap was measured (split by seed 0) are left out here.

With `--short`, a set takes few minutes: up to 100 questions of people, the made set and the index's own questions, and
no system that was broken on purpose.
"""

import argparse
import itertools
import json
import random
import shutil
import signal
import time
from collections.abc import Callable, Mapping, Sequence, Sized
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from parts import part_of
from scipy import stats
from testset_rivals import write_autoq, write_ragas
from testset_systems import SYSTEMS, UNBROKEN, UNPOOLED, Find, K, Scores, System, opened

from kraq_dspy import Workspace
from kraq_dspy.asset.corpus.sentences import sentence_spans
from kraq_dspy.eval.datasets import Dataset, load_local
from kraq_dspy.indexing import build_index
from kraq_dspy.records import Chunk, TestsetRow, Usage, content_id
from kraq_dspy.settings import RoleSettings, RunSettings
from kraq_dspy.testset.kinds import SHARES, WITHOUT_ANSWER
from kraq_dspy.testset.making import TestsetPlan, make_testset
from kraq_dspy.testset.testset import Testset
from kraq_dspy.testset.wording import is_about_two

OVERLAP_MEASURED_ON = ("hotpotqa", "squad", "clapnq")
CHOSEN_ON = ("hotpotqa", "bioasq")
"""Sets on which the kinds of rows and how they are drawn were chosen; the others are held out."""
APART = ("musique", "multihop_rag")
MOST_PASSAGES, MOST_QUESTIONS = 600, 150
MOST_MADE = 100
"""Questions of the made set and of each rival."""
RESAMPLES = 2000
MADE_LARGER = "made, 200"
WRITTEN = ("by-model", "ragas", "autoq")
"""Sets that a language model writes: ours, and two other ways."""
MOST_TOKENS = 1024
"""Of a reply of that model: a small one sometimes does not stop."""

Questions = list[tuple[str, frozenset[str]]]
"""Texts, with the ids of the documents that answer."""


SHORT = ("people", "made", "own questions", *WRITTEN)
MOST_SHORT = 100
"""What `--short` asks: these questions, and so many of people's."""


def sampled(dataset: Dataset) -> Dataset:
    """Up to 150 questions with few gold passages, and their evidence among at most 600 passages."""
    measured: frozenset[str] = frozenset()
    if dataset.name in OVERLAP_MEASURED_ON:  # half of the documents set the difficulty
        ids = sorted(document.id for document in dataset.documents)
        random.Random(0).shuffle(ids)
        measured = frozenset(ids[: len(ids) // 2])
    return part_of(dataset, questions=MOST_QUESTIONS, passages=MOST_PASSAGES, measured=measured)


def question_sets(space: Workspace, people: Dataset, draft: Path) -> dict[str, Questions]:
    """Human questions, the made set, and its rivals, as many of each."""
    n = MOST_MADE
    draw = random.Random(0)
    chunks = list(space.index.all(Chunk))
    made = make_testset(space, plan=TestsetPlan(n, answerable_shares()), draft=draft)
    sentences = [
        (chunk.text[start:end], frozenset([chunk.document_id]))
        for chunk in chunks
        for start, end in sentence_spans(chunk.text)
        if 6 <= len(chunk.text[start:end].split()) <= 30
    ]
    titles = [(chunk.title, frozenset([chunk.document_id])) for chunk in chunks if chunk.title and not chunk.position]
    own = [
        (question.text, frozenset(question.document_ids))
        for question in space.index.questions(source="kraq")
        if question.document_ids
    ]
    several = [(text, documents) for text, documents in own if 1 < len(documents) <= 4]
    sets = {
        "people": [(example.question, frozenset(example.supporting_ids)) for example in people.examples],
        "made": [(row.question, frozenset(row.supporting_ids)) for row in made if row.is_answerable],
        "random sentences": draw.sample(sentences, min(n, len(sentences))),
        "titles": draw.sample(titles, min(n, len(titles))),
        "own questions": draw.sample(own, min(n, len(own))),
        "own, 2 to 4 documents": draw.sample(several, min(n, len(several))),
    }
    made.save(draft.with_suffix(".jsonl"))
    print(json.dumps(made.about()), flush=True)
    return {name: questions for name, questions in sets.items() if len(questions) >= 20}


def prepare(name: str, data: Path, out: Path) -> None:
    if (out / name / "index.kraq" / "manifest.json").exists():
        print(name, "is prepared")
        return
    people = sampled(load_local(data / name))
    (out / name).mkdir(parents=True, exist_ok=True)
    build_index(list(people.documents), out / name / "index.kraq")
    print(name, len(people.documents), "passages,", len(people.examples), "questions", flush=True)


@dataclass(frozen=True)
class Writer:
    """The model that writes rows, and how many of each set."""

    lm: str
    api_base: str | None
    n: int
    concurrency: int
    sets: Sequence[str]

    def opened(self, index: Path) -> Workspace:
        """The index, all of whose roles this model has."""
        with Workspace.open(index) as plain:
            settings = plain.models.settings
        role = RoleSettings(model=self.lm, api_base=self.api_base, max_tokens=MOST_TOKENS)
        run = RunSettings(concurrency=self.concurrency)
        return Workspace.open(index, settings=replace(settings, roles={"default": role}, run=run))


def write(name: str, index: Path, out: Path, writer: Writer) -> None:
    """Write the sets one after another; counts are added to those of runs before."""
    folder = out / name
    folder.mkdir(parents=True, exist_ok=True)
    works: dict[str, Callable[[Workspace, Path, int], Sized]] = {
        "by-model": write_by_model,
        "ragas": write_ragas,
        "autoq": write_autoq,
    }
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # what was used is noted before the end

    for label in writer.sets:
        with writer.opened(index) as space:
            started = time.monotonic()
            n_rows = 0
            try:
                n_rows = len(works[label](space, folder / f"{label}.jsonl", writer.n))
            finally:
                seconds = time.monotonic() - started
                figures = {"rows": n_rows, "seconds": seconds, "model": writer.lm}
                note_usage(folder / f"{label}.usage.json", figures, space.models.meter.usage())
                print(name, label, n_rows, "rows,", round(seconds), "s", flush=True)


def write_by_model(space: Workspace, file: Path, n: int) -> Testset:
    """Make the set as a user does, a quarter and a half of it first: what was asked for these is not asked again, and
    an interrupted run leaves a set."""
    testset = Testset(())
    for part in (n // 4, n // 2, n):
        if part:
            testset = make_testset(space, part, draft=file.with_suffix(".draft"))
            testset.save(file)
            file.with_suffix(".about.json").write_text(json.dumps(testset.about(), indent=1) + "\n", "utf-8")
    return testset


def note_usage(file: Path, figures: dict[str, Any], usage: Mapping[tuple[str, str], Usage]) -> None:
    """Add calls and tokens, as a whole and by stage, to what the file says of earlier runs."""
    nothing: dict[str, Any] = {"seconds": 0, "calls": 0, "prompt_tokens": 0, "completion_tokens": 0, "stages": {}}
    noted = json.loads(file.read_text("utf-8")) if file.exists() else nothing
    for (stage, _), used in usage.items():
        so_far = noted["stages"].setdefault(stage, {"calls": 0, "prompt_tokens": 0, "completion_tokens": 0})
        for count in so_far:
            so_far[count] += getattr(used, count)
            noted[count] += getattr(used, count)

    seconds = round(noted["seconds"] + figures["seconds"], 1)
    file.write_text(json.dumps({**noted, **figures, "seconds": seconds}, indent=1) + "\n", "utf-8")


def run(
    name: str,
    data: Path,
    out: Path,
    *,
    anew: bool,
    most_systems: int,
    short: bool = False,
    asked: Sequence[str] = (),
    part: tuple[int, int] = (0, 1),
) -> None:
    """Ask every system what it was not asked before, of `asked` sets or of all.

    A `part` (i, n) is each n-th system from the i-th on: parts may run at the same time.
    """
    folder = out / name
    first, step = part
    systems = [system for system in SYSTEMS[first::step] if not (short and system.broken)]
    with opened(folder / "index.kraq") as (space, encoder):
        if anew or not (folder / "questions.json").exists():
            sets = question_sets(space, sampled(load_local(data / name)), folder / "made.draft")
            to_keep = {label: [[text, sorted(gold)] for text, gold in questions] for label, questions in sets.items()}
            (folder / "questions.json").write_text(json.dumps(to_keep), "utf-8")
            shutil.rmtree(folder / "made", ignore_errors=True)

        sets = stored_sets(folder) | written_sets(folder)
        if short:
            sets = {label: questions[:MOST_SHORT] for label, questions in sets.items() if label in SHORT}
        elif not asked or MADE_LARGER in asked:
            sets |= larger_set(space, folder)
        sets = {label: questions for label, questions in sets.items() if not asked or label in asked}

        left = []
        for system in systems:
            if any(lacking(file_of(folder, label, system), questions) for label, questions in sets.items()):
                left.append(system)
        encoder.encode_queries([question for questions in sets.values() for question, _ in questions])
        for system in left[:most_systems]:
            find = system.make(space)
            for label, questions in sets.items():
                ask(find, questions, file_of(folder, label, system))
            print(name, system.name, flush=True)


def ask(find: Find, questions: Questions, file: Path) -> None:
    """Score those questions that the file has no score of, and keep all."""
    scores = kept_scores(file, questions)
    if len(scores) >= len(questions):
        return
    scores += [recall(gold, find(question)) for question, gold in questions[len(scores) :]]
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"scores": scores, "of": fingerprint(questions)}), "utf-8")


def lacking(file: Path, questions: Questions) -> bool:
    return len(kept_scores(file, questions)) < len(questions)


def kept_scores(file: Path, questions: Questions) -> list[float]:
    """Scores of these questions, or of the first of them; none of what was asked in other words."""
    if not file.exists():
        return []
    saved = json.loads(file.read_text("utf-8"))
    scores: list[float] = saved["scores"]
    return scores if saved.get("of") in (None, fingerprint(questions[: len(scores)])) else []


def fingerprint(questions: Questions) -> str:
    return content_id(*(part for text, gold in questions for part in (text, *sorted(gold))))[:16]


def stored_sets(folder: Path) -> dict[str, Questions]:
    stored = json.loads((folder / "questions.json").read_text("utf-8"))
    return {label: [(text, frozenset(gold)) for text, gold in questions] for label, questions in stored.items()}


def larger_set(space: Workspace, folder: Path) -> dict[str, Questions]:
    """The made set at twice as many rows, from the same seed."""
    file = folder / f"{MADE_LARGER.replace(', ', '-')}.jsonl"
    if not file.exists():
        plan = TestsetPlan(2 * MOST_MADE, answerable_shares())
        make_testset(space, plan=plan, draft=file.with_suffix(".draft")).save(file)
    return {MADE_LARGER: [(row.question, frozenset(row.supporting_ids)) for row in Testset.load(file)]}


def answerable_shares() -> dict[str, float]:
    """The default shares, of kinds that something is gold for."""
    return {kind: share for kind, share in SHARES.items() if kind not in WITHOUT_ANSWER}


def written_sets(folder: Path) -> dict[str, Questions]:
    """What a language model wrote for this index and something is gold for."""
    sets = {}
    for label in WRITTEN:
        rows = answerable_rows(folder, label)
        if rows:
            sets[label] = [(row.question, frozenset(row.supporting_ids)) for row in rows]
    return sets


def file_of(folder: Path, label: str, system: System) -> Path:
    """Where the scores of a system on a set of questions stay."""
    return folder / label.replace(",", "").replace(" ", "-") / f"{system.name.replace(' ', '-')}.json"


def recall(gold: frozenset[str], found: Sequence[str]) -> float:
    return len(gold & set(found[:K])) / len(gold)


def scores_of(folder: Path) -> Scores:
    """float64 `[questions, systems]`, NaN for broken systems that were not asked."""
    columns: list[list[float] | None] = []
    for system in SYSTEMS:
        file = folder / f"{system.name.replace(' ', '-')}.json"
        is_asked = file.exists() or not system.broken
        columns.append(json.loads(file.read_text("utf-8"))["scores"] if is_asked else None)
    n_questions = len(next(column for column in columns if column is not None))
    return np.array([[np.nan] * n_questions if column is None else column for column in columns]).T


def resampled(scores: Scores, seed: int) -> Scores:
    """Means over resampled questions, `[RESAMPLES, systems]`."""
    draw = np.random.default_rng(seed)
    counts = draw.multinomial(len(scores), np.full(len(scores), 1 / len(scores)), size=RESAMPLES)
    means: Scores = counts @ scores / len(scores)
    return means


def verdicts(scores: Scores, pairs: Sequence[tuple[int, int]]) -> dict[tuple[int, int], int]:
    """For each pair 1 or -1 where the interval of the difference, of 95 %, has no 0 in it, else 0."""
    means = resampled(scores, 1)
    verdict_of = {}
    for first, second in pairs:
        low, high = np.percentile(means[:, first] - means[:, second], [2.5, 97.5])
        verdict_of[first, second] = 1 if low > 0 else -1 if high < 0 else 0
    return verdict_of


def compare(people: Scores, other: Scores, places: Sequence[int]) -> dict[str, Any]:
    """How the other set ranks these systems, against human questions."""
    pairs = list(itertools.combinations(places, 2))
    theirs, ours = verdicts(people, pairs), verdicts(other, pairs)
    separated = [pair for pair in pairs if theirs[pair]]
    means, own = people.mean(axis=0)[list(places)], other.mean(axis=0)[list(places)]
    best = np.flatnonzero(own >= own.max() - 1e-9)
    drawn = [
        tau(a[list(places)], b[list(places)]) for a, b in zip(resampled(people, 2), resampled(other, 3), strict=True)
    ]
    return {
        "separated": len(separated),
        "agree": sum(ours[pair] == theirs[pair] for pair in separated),
        "opposite": sum(ours[pair] == -theirs[pair] for pair in separated),
        "undecided": sum(ours[pair] == 0 for pair in separated),
        "lost": float(means.max() - means[best].mean()),
        "tau": tau(means, own),
        "interval": [float(end) for end in np.nanpercentile(drawn, [2.5, 97.5])],
    }


def tau(first: Scores, second: Scores) -> float:
    """Kendall's tau-b; 0 where one of the two tells no system from another."""
    value = float(stats.kendalltau(first, second).statistic)
    return 0.0 if np.isnan(value) else value


def ceiling(people: Scores, places: Sequence[int]) -> float:
    """Half of human questions against the other half, the mean of 50 splits, corrected for the length (Spearman and
    Brown)."""
    halves = []
    for seed in range(50):
        order = np.random.default_rng(seed).permutation(len(people))
        first, second = (people[half].mean(axis=0)[list(places)] for half in np.array_split(order, 2))
        halves.append(tau(first, second))
    mean = float(np.mean(halves))
    return 2 * mean / (1 + mean)


def report(out: Path) -> None:
    """A table for each set on standard output, and `report.json`."""
    figures: dict[str, Any] = {}
    done = (path for path in out.iterdir() if len(list((path / "people").glob("*.json"))) >= len(UNBROKEN))
    for folder in sorted(done):
        people = scores_of(folder / "people")
        top = {"ceiling": ceiling(people, UNBROKEN), "ceiling with broken": ceiling(people, _asked(people))}
        figures[folder.name] = {"questions": len(people), **top, "sets": {}}
        print(
            f"\n{folder.name}: {len(people)} questions of people; ceiling {top['ceiling']:.2f}, with the broken "
            f"{top['ceiling with broken']:.2f}"
        )
        print(
            "| set | rows | agree / opposite / undecided | lost | tau | with the broken | without the pooled | mean "
            "| faults noticed, missed, beyond, better |"
        )
        print("|---|---|---|---|---|---|---|---|---|")
        for place in places_of_scores(folder):
            compared = comparison(people, scores_of(place))
            figures[folder.name]["sets"][place.name] = compared
            print(f"| {place.name} | {' | '.join(cells(compared))} |")
        report_kinds(folder, people)

    report_pooled(figures)
    (out / "report.json").write_text(json.dumps(figures, indent=1) + "\n", "utf-8")


def places_of_scores(folder: Path) -> list[Path]:
    """Folders with the scores of all unbroken systems, on sets that are not people's."""
    places = []
    for path in sorted(folder.iterdir()):
        if path.is_dir() and path.name not in ("people", "index.kraq"):
            names_with_scores = {file.stem for file in path.glob("*.json")}
            if all(SYSTEMS[place].name.replace(" ", "-") in names_with_scores for place in UNBROKEN):
                places.append(path)
    return places


def comparison(people: Scores, scores: Scores) -> dict[str, Any]:
    """How a set ranks the systems that nobody broke, all, and those without the pooled; and which faults it notices."""
    asked_of_both = sorted({*_asked(people)} & {*_asked(scores)})
    return {
        "rows": len(scores),
        "mean": float(scores[:, UNBROKEN].mean()),
        "unbroken": compare(people, scores, UNBROKEN),
        "all": compare(people, scores, asked_of_both),
        "unpooled": compare(people, scores, UNPOOLED),
        "faults": faults(people, scores) if len(asked_of_both) == len(SYSTEMS) else {},
    }


def cells(compared: Mapping[str, Any]) -> list[str]:
    own, every, unpooled = compared["unbroken"], compared["all"], compared["unpooled"]
    low, high = own["interval"]
    return [
        str(compared["rows"]),
        decisions(own),
        f"{own['lost']:.3f}",
        f"{own['tau']:.2f} [{low:.2f}, {high:.2f}]",
        f"{decisions(every)}, {every['tau']:.2f}",
        f"{decisions(unpooled)}, {unpooled['tau']:.2f}",
        f"{compared['mean']:.2f}",
        " / ".join(str(count) for count in compared["faults"].values()),
    ]


def decisions(compared: Mapping[str, Any]) -> str:
    return f"{compared['agree']} / {compared['opposite']} / {compared['undecided']}"


def faults(people: Scores, other: Scores) -> dict[str, int]:
    """Of the faults that human questions notice, how many the other set does; how many more it notices; and how
    often it says that a broken system is better."""
    places = {system.name: place for place, system in enumerate(SYSTEMS)}
    pairs = [(places[name.partition(",")[0]], place) for name, place in places.items() if SYSTEMS[place].broken]
    theirs, ours = verdicts(people, pairs), verdicts(other, pairs)
    noticed = [pair for pair in pairs if theirs[pair] > 0]
    return {
        "noticed": sum(ours[pair] > 0 for pair in noticed),
        "missed": sum(ours[pair] <= 0 for pair in noticed),
        "beyond": sum(ours[pair] > 0 for pair in pairs if pair not in noticed),
        "better": sum(ours[pair] < 0 for pair in pairs),
    }


def report_pooled(figures: Mapping[str, Any]) -> None:
    """Print the decisions and faults of each set of questions over all data sets on which it was asked."""
    print("\n| set | data sets | agree / opposite / undecided | with the broken | faults |")
    labels = sorted({label for of_set in figures.values() for label in of_set["sets"]})
    for label in labels:
        compared = [of_set["sets"][label] for of_set in figures.values() if label in of_set["sets"]]
        sums = []
        for part in ("unbroken", "all"):
            counts = (sum(each[part][name] for each in compared) for name in ("agree", "opposite", "undecided"))
            sums.append(" / ".join(str(count) for count in counts))
        names = ("noticed", "missed", "beyond", "better")
        noticed = " / ".join(str(sum(each["faults"].get(name, 0) for each in compared)) for name in names)
        print(f"| {label} | {len(compared)} | {' | '.join(sums)} | {noticed} |")


def _asked(scores: Scores) -> list[int]:
    """The places of the systems that were asked."""
    return [place for place in range(len(SYSTEMS)) if not np.isnan(scores[:, place]).any()]


def report_kinds(folder: Path, people: Scores) -> None:
    """Print which kinds of rows rank as people do, beside the recall of five systems that are unlike each other."""
    shown = ("bm25", "dense", "hybrid", "pagerank", "adaptive")
    columns = [place for place, system in enumerate(SYSTEMS) if system.name in shown]
    print("\n| kind | rows | agree / opposite / undecided | " + " | ".join(SYSTEMS[place].name for place in columns))

    by_kind = {"people": people}
    for label in ("made", *WRITTEN):
        rows = answerable_rows(folder, label)
        if rows and folder / label in places_of_scores(folder):
            scores = scores_of(folder / label)
            kinds = np.array(["related" if is_about_two(row.question) else row.type for row in rows])
            by_kind |= {f"{label}, {kind}": scores[kinds == kind] for kind in dict.fromkeys(kinds)}

    for kind, some in by_kind.items():
        own = compare(people, some, UNBROKEN)
        means = " | ".join(f"{some[:, place].mean():.2f}" for place in columns)
        print(f"| {kind} | {len(some)} | {decisions(own)} | {means} |")


def answerable_rows(folder: Path, label: str) -> list[TestsetRow]:
    """The rows of a made or written set that systems are scored by, in their order; none where there is no such set."""
    file = folder / f"{label}.jsonl"
    return [row for row in Testset.load(file) if row.supporting_ids] if file.exists() else []


def part_in(words: str) -> tuple[int, int]:
    """Read "0/4". Raises ValueError for anything else."""
    first, _, step = words.partition("/")
    return int(first), int(step)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("prepare", "write", "run", "report"))
    parser.add_argument("sets", nargs="*", default=[])
    parser.add_argument("--data", type=Path, default=Path("data"))
    parser.add_argument("--out", type=Path, default=Path("runs/ranking"))
    parser.add_argument("--anew", action="store_true", help="Ask the made questions again, after they have changed.")
    parser.add_argument("--most-systems", type=int, default=len(SYSTEMS), help="Systems that one run asks.")
    parser.add_argument("--short", action="store_true", help="Ask few questions, and no broken systems.")
    parser.add_argument("--ask", nargs="+", default=(), help="Sets of questions that `run` asks; all if not given.")
    parser.add_argument("--part", default="0/1", help="I/N: each N-th system from the I-th on; parts may run at once.")
    parser.add_argument("--lm", default="", help="The model that writes, e.g. hosted_vllm/NAME.")
    parser.add_argument("--api-base", help="Where it is served, e.g. http://localhost:8000/v1.")
    parser.add_argument("--index", type=Path, help="The index to write about, if it is not OUT/SET/index.kraq.")
    parser.add_argument("--n", type=int, default=200, help="Rows of each written set.")
    parser.add_argument("--concurrency", type=int, default=32, help="Requests to the model under way at once.")
    parser.add_argument("--written", nargs="+", choices=WRITTEN, default=WRITTEN, help="The sets that are written.")
    arguments = parser.parse_args()
    if arguments.command == "write" and not arguments.lm:
        parser.error("write needs a model: --lm NAME")

    writer = Writer(arguments.lm, arguments.api_base, arguments.n, arguments.concurrency, arguments.written)
    work: Mapping[str, Callable[[str], None]] = {
        "prepare": lambda name: prepare(name, arguments.data, arguments.out),
        "write": lambda name: write(
            name, arguments.index or arguments.out / name / "index.kraq", arguments.out, writer
        ),
        "run": lambda name: run(
            name,
            arguments.data,
            arguments.out,
            anew=arguments.anew,
            most_systems=arguments.most_systems,
            short=arguments.short,
            asked=arguments.ask,
            part=part_in(arguments.part),
        ),
    }
    if arguments.command == "report":
        report(arguments.out)
    for name in arguments.sets:
        work[arguments.command](name)


if __name__ == "__main__":
    main()
