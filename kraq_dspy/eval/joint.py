"""Joins a run with a few human questions, whose rows are in its folder `asked`: for tables, reports and the gate.

If the index's own questions were asked, too, their rows are in the folder `own`, and the three decide together.

joint = joint_of_run(Path("runs/now"))  # None if no human questions were asked beside the test set
checks = joint_worse_checks(Path("runs/base"), Path("runs/now"))
"""

import dataclasses
import random
from collections.abc import Collection, Sequence
from pathlib import Path

from kraq_dspy.errors import ConfigError, EvaluationError, counted
from kraq_dspy.eval.calibration import LEAST_QUESTIONS, Calibrated, PairVerdict, calibrated_rows
from kraq_dspy.eval.comparing import systems_to_compare, with_shared_ids
from kraq_dspy.eval.datasets import Example
from kraq_dspy.eval.gate import FIRST_OF, QualityCheck, judged_metrics
from kraq_dspy.eval.grids import Grid, number
from kraq_dspy.eval.metrics.for_dspy import RANKINGS
from kraq_dspy.eval.rows import HEADER_FILE, ResultRow, read_run
from kraq_dspy.workspace import Workspace

ASKED_FOLDER = "asked"
"""Where a run keeps the rows of human questions, as a run of its own."""

OWN_FOLDER = "own"
"""Where it keeps those of the index's own questions."""
MOST_OWN, LEAST_OWN = 60, 20
"""Own questions that are asked, and below how many there is nothing to join."""


def own_questions(space: Workspace, metric: str) -> list[Example]:
    """Questions that the index asked of its communities, with the documents that these stand in: a second test set.

    Sixty of them, always the same ones. None for a metric that wants more than documents, and in an index that has
    fewer than twenty.
    """
    if metric.partition("@")[0] not in RANKINGS:
        return []
    known = [each for each in space.index.questions(source="kraq") if each.document_ids]
    if len(known) < LEAST_OWN:
        return []
    drawn = random.Random(0).sample(known, min(MOST_OWN, len(known)))
    return [Example(each.id, each.text, (), supporting_ids=tuple(each.document_ids)) for each in drawn]


def has_peoples_questions(folder: Path) -> bool:
    """Whether human questions were asked beside the test set of this run."""
    return (folder / ASKED_FOLDER / HEADER_FILE).is_file()


def joint_of_run(folder: Path | None) -> tuple[Calibrated, str] | None:
    """What the test set of a run and human questions say together, and the metric: the first of people's.

    None if human questions and the test set were not asked of the same systems, two at least. Raises EvaluationError as
    `calibrated` does.
    """
    if folder is None or not has_peoples_questions(folder):
        return None
    header, people = read_run(folder / ASKED_FOLDER)
    _, testset = read_run(folder)
    shared = {row.system for row in people} & {row.system for row in testset}
    if len(shared) < 2:
        return None
    own = _own_rows(folder, shared)
    people, testset = ([row for row in rows if row.system in shared] for rows in (people, testset))
    metric = header.extra["table"]["metrics"][0]
    return calibrated_rows(people, testset, metric, own), metric


def joint_grids(folder: Path | None) -> list[Grid]:
    """The table of `joint_of_run`, in front of the others of a report; none if there is nothing to join."""
    joint = joint_of_run(folder)
    return [] if joint is None else [joint_grid(*joint)]


def require_enough(peoples: Sequence[Example]) -> None:
    """Raise EvaluationError, before anything is asked, for too few of human questions."""
    if len(peoples) < LEAST_QUESTIONS:
        raise EvaluationError(
            f"--human has {counted(len(peoples), 'human question')} to score by; expected {LEAST_QUESTIONS} at "
            "least, and better five to ten."
        )


def require_several(n_systems: int) -> None:
    """Raise ConfigError for one system: human questions and a test set judge differences of systems."""
    if n_systems < 2:
        raise ConfigError(
            "--human judges differences of systems, and there is one. Name several (-r dense -r bm25 -r hybrid), or "
            "leave --human out: then the test set decides alone."
        )


def joint_grid(joint: Calibrated, metric: str, *, beside: str = "") -> Grid:
    """The joint difference of each pair of systems, with what it would take to decide it, and the sentences below.

    With `beside`, the differences of the others to that system alone.
    """
    pairs = list(joint.pairs.values())
    if beside:
        pairs = [joint.pair(name, beside) for name in joint.systems if name != beside]
    rows = []
    strong = set()
    for place, pair in enumerate(pairs):
        if pair.is_decided:
            strong.add((place, 1))
        rows.append((f"{pair.first} - {pair.second}", _signed(pair), outlook_of(pair)))
    return Grid(
        f"{metric}, human questions and the test set together",
        ("systems", "difference", "human questions that would decide"),
        tuple(rows),
        frozenset(strong),
        f"{joint.agreement} {joint.outlook}",
    )


def outlook_of(pair: PairVerdict) -> str:
    """Whether a pair is decided, and else how many more questions would decide it.

    "open" is a pair that a thousand would not decide.
    """
    if pair.is_decided:
        return "decided"
    return "open" if pair.more_questions is None else f"{pair.more_questions} more"


def joint_worse_checks(base: Path, now: Path, *, metrics: Sequence[str] | None = None) -> list[QualityCheck]:
    """Whether the joint interval of what a system has more than in the base run lies below 0, for every system of both.

    Before and now are systems of one `calibrated`: both were asked the same test set and the same few of people's
    questions. Only questions that both runs have count, by id or by text (`comparing.with_shared_ids`). Without
    `metrics`, the first of `gate.FIRST_OF` that both runs have decides. A system of which more questions fail
    than then is worse, whatever the others score.

    Raises EvaluationError if one of the runs has no human questions, or both have nothing in common.
    """
    require_peoples_questions(base)
    require_peoples_questions(now)
    testset, pairs = _shared_rows(base, now)
    people, pairs_of_people = _shared_rows(base / ASKED_FOLDER, now / ASKED_FOLDER)
    pairs = [pair for pair in pairs if pair in pairs_of_people]
    named = {label for pair in pairs for label in pair}
    testset, people = ([row for row in rows if row.system in named] for rows in (testset, people))
    own = _shared_own_rows(base, now, named)

    checks = []
    for metric in judged_metrics(_metrics_of(testset), metrics):
        of_own = own if all(metric in row.metrics or row.failure for row in own) else []
        joint = calibrated_rows(people, testset, metric, of_own)
        checks += [_check(joint, metric, before, after) for before, after in pairs]
    if not checks:
        raise EvaluationError(
            f"{str(base)!r} and {str(now)!r} share no system with a metric of: {', '.join(metrics or FIRST_OF)}."
        )
    return checks + _failed_checks([*testset, *people], pairs)


def require_peoples_questions(folder: Path) -> None:
    """Raise EvaluationError for a run whose test set would decide alone."""
    if not has_peoples_questions(folder):
        raise EvaluationError(
            f"The run in {str(folder)!r} has no human questions, so the test set alone would decide. Make it "
            f"again with them (kraq eval ... --human FILE --out {folder}), or leave --human out here."
        )


def _shared_rows(base: Path, now: Path) -> tuple[list[ResultRow], list[tuple[str, str]]]:
    """The rows of systems that both runs have, under the names "before" and "now", with shared ids; and these names."""
    before, after = (read_run(folder)[1] for folder in (base, now))
    rows: list[ResultRow] = []
    pairs = []
    for name_before, name_after in systems_to_compare(before, after):
        own_before = [row for row in before if row.system == name_before]
        own_after = [row for row in after if row.system == name_after]
        labels = f"{name_after}, before", f"{name_after}, now"
        for label, shared in zip(labels, with_shared_ids(own_before, own_after), strict=True):
            rows += [dataclasses.replace(row, system=label) for row in shared]
        pairs.append(labels)
    return rows, pairs


def _own_rows(folder: Path, systems: Collection[str]) -> list[ResultRow]:
    """The rows of the index's own questions, if all systems were asked enough of them."""
    if not (folder / OWN_FOLDER / HEADER_FILE).is_file():
        return []
    return _enough(read_run(folder / OWN_FOLDER)[1], systems)


def _shared_own_rows(base: Path, now: Path, systems: Collection[str]) -> list[ResultRow]:
    """The rows of the own questions that both runs have; none if the index asks others now."""
    if not all((folder / OWN_FOLDER / HEADER_FILE).is_file() for folder in (base, now)):
        return []
    return _enough(_shared_rows(base / OWN_FOLDER, now / OWN_FOLDER)[0], systems)


def _enough(rows: Sequence[ResultRow], systems: Collection[str]) -> list[ResultRow]:
    counts = [sum(row.system == system for row in rows) for system in systems]
    return [row for row in rows if row.system in systems] if min(counts, default=0) >= LEAST_OWN else []


def _check(joint: Calibrated, metric: str, before: str, after: str) -> QualityCheck:
    pair = joint.pair(after, before)
    passed = pair.interval.high >= 0
    name = after.removesuffix(", now")
    words = "no worse than" if passed else "worse than"
    own = f" and {counted(joint.n_own, 'question')} of the index" if joint.n_own else ""
    testset = f"{counted(joint.n_testset, 'row')} of the test set{own} with {100 * joint.weight:.0f} % of the weight"
    text = (
        f"{metric} of {name} is {words} before: {_signed(pair)}, by {counted(joint.n_people, 'human question')} "
        f"and {testset}"
    )
    return QualityCheck(metric, name, passed, text)


def _failed_checks(rows: Sequence[ResultRow], pairs: Sequence[tuple[str, str]]) -> list[QualityCheck]:
    """A check for each system of which more questions fail than before."""
    checks = []
    for before, after in pairs:
        n_before, n_after = (
            sum(row.failure is not None for row in rows if row.system == label) for label in (before, after)
        )
        if n_after > n_before:
            name = after.removesuffix(", now")
            text = f"{counted(n_after, 'question')} of {name} failed, {n_before} before"
            checks.append(QualityCheck("failed", name, False, text))
    return checks


def _metrics_of(rows: Sequence[ResultRow]) -> list[str]:
    return list(dict.fromkeys(metric for row in rows for metric in row.metrics))


def _signed(pair: PairVerdict) -> str:
    estimate, low, high = (
        number(value, signed=True) for value in (pair.interval.estimate, pair.interval.low, pair.interval.high)
    )
    return f"{estimate} [{low}, {high}]"
