"""Measures how far a judge agrees with answers whose rightness is known: accuracy and Cohen's kappa.

A judge that was not calibrated is a rumour: report this beside every judged figure.
"""

import json
import random
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dspy
import numpy as np
from numpy.typing import NDArray

from kraq_dspy._internal.files import json_objects
from kraq_dspy.errors import ConfigError, EvaluationError
from kraq_dspy.eval.datasets import Example
from kraq_dspy.eval.judges import AnsweredQuestion, BinaryJudge, Judge, RubricJudge, judge_answers
from kraq_dspy.eval.metrics.answers import normalise_answer
from kraq_dspy.eval.rows import ResultRow, RowWriter, RunHeader, read_run
from kraq_dspy.eval.statistics import Interval, bootstrap_mean
from kraq_dspy.models.lms.adapter import KraqAdapter
from kraq_dspy.ports import Progress, SilentProgress

AGREEMENT_FILE = "agreement.json"
JUDGES_FOLDER = Path("runs/judges")
CONFIDENCE, SEED = 0.95, 0  # those of `bootstrap_mean`


@dataclass(frozen=True, slots=True)
class Agreement:
    """`accuracy` and `kappa` over the `n` questions that the judge decided; `n_failed` it did not.

    `confusion[(gold, judged)]` counts the questions.
    """

    accuracy: Interval
    kappa: Interval
    confusion: Mapping[tuple[Hashable, Hashable], int]
    n: int
    n_failed: int
    judge: str


def judge_agreement(
    gold: Mapping[str, Hashable],
    judged: Mapping[str, Hashable],
    *,
    judge: str,
    resamples: int = 10_000,
) -> Agreement:
    """Labels by question id. Gold labels without a judgement count as failed, not as wrong.

    `judge` is the model's name. The interval of kappa is the percentile bootstrap's: questions are drawn with
    replacement, which is a multinomial draw of the confusion matrix. Raises EvaluationError for a judgement of an
    unknown question, when nothing was judged, or where kappa is undefined.
    """
    unknown = judged.keys() - gold.keys()
    if unknown:
        raise EvaluationError(f"The judge decided {min(unknown)!r}, which has no gold label.")
    if not judged:
        raise EvaluationError(f"The judge decided none of the {len(gold)} questions.")
    labels = sorted({*gold.values(), *judged.values()}, key=str)
    index = {label: position for position, label in enumerate(labels)}
    counts = np.zeros((len(labels), len(labels)), dtype=np.int64)
    for question_id, label in judged.items():
        counts[index[gold[question_id]], index[label]] += 1
    n = int(counts.sum())
    hits = [float(gold[question_id] == label) for question_id, label in judged.items()]
    drawn = np.random.default_rng(SEED).multinomial(n, counts.ravel() / n, size=resamples)
    kappas = _kappas(drawn.reshape(resamples, len(labels), len(labels)))
    kappas = kappas[~np.isnan(kappas)]  # a draw of one label alone says nothing about agreement beyond chance
    kappa = cohen_kappa(counts)
    low, high = np.quantile(kappas, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return Agreement(
        accuracy=bootstrap_mean(hits, resamples=resamples),
        kappa=Interval(kappa, float(low), float(high), CONFIDENCE, n, resamples, SEED, "percentile bootstrap"),
        confusion={
            (gold_label, judged_label): int(counts[index[gold_label], index[judged_label]])
            for gold_label in labels
            for judged_label in labels
        },
        n=n,
        n_failed=len(gold) - n,
        judge=judge,
    )


def write_agreement(agreement: Agreement, dataset: str, folder: Path) -> Path:
    """`agreement.json`, which later reports of the same judge show beside its figures (`known_agreements`)."""
    file = folder / AGREEMENT_FILE
    content = {
        "judge": agreement.judge,
        "dataset": dataset,
        "n": agreement.n,
        "accuracy": agreement.accuracy.estimate,
        "kappa": [agreement.kappa.estimate, agreement.kappa.low, agreement.kappa.high],
    }
    file.write_text(json.dumps(content, indent=1) + "\n", "utf-8")
    return file


def known_agreements(model: str, folder: Path = JUDGES_FOLDER) -> list[str]:
    """What `kraq eval judges` measured of judges by this model, in words, from the files under `folder`."""
    agreements = []
    for file in sorted(folder.glob(f"*/*/{AGREEMENT_FILE}")):
        known = json.loads(file.read_text("utf-8"))
        if known["judge"].endswith(f", {model}"):
            kind, (kappa, low, high) = known["judge"].partition(",")[0], known["kappa"]
            agreements.append(
                f"{kind} kappa {kappa:.2f} [{low:.2f}, {high:.2f}], {known['n']} answers of {known['dataset']}"
            )
    return agreements


def cohen_kappa(confusion: NDArray[np.int64]) -> float:
    """Agreement beyond chance, in [-1, 1]; 0 is what chance gives (Cohen, 1960). `confusion[gold, judged]` are counts.

    Raises EvaluationError when empty, or when both gave one and the same label throughout: chance agreement is 1 then.
    """
    if not confusion.sum():
        raise EvaluationError("The confusion matrix is empty.")
    kappa = float(_kappas(confusion[None])[0])
    if np.isnan(kappa):
        raise EvaluationError(
            "Cohen's kappa is undefined: judge and gold labels are one and the same label throughout. Calibrate on "
            "questions with right and wrong answers."
        )
    return kappa


def _kappas(confusions: NDArray[np.int64]) -> NDArray[np.float64]:
    shares = confusions / confusions.sum(axis=(1, 2), keepdims=True)
    observed = np.trace(shares, axis1=1, axis2=2)
    chance = (shares.sum(axis=1) * shares.sum(axis=2)).sum(axis=1)
    undefined = np.isclose(chance, 1.0, rtol=0, atol=1e-12)
    return np.where(undefined, np.nan, (observed - chance) / np.where(undefined, 1.0, 1.0 - chance))


JUDGES: dict[str, type[Judge]] = {"binary": BinaryJudge, "rubric": RubricJudge}
METRIC = "judged_right"


@dataclass(frozen=True, slots=True)
class LabelledAnswer:
    """An answer, and whether people (or the way it was made) say that it is right."""

    answered: AnsweredQuestion
    right: bool


def read_labelled(path: Path) -> list[LabelledAnswer]:
    """JSON lines with id, question, answers (gold), answer and right (true or false); for lists `answer_items`.

    Raises EvaluationError naming the line.
    """
    labelled = []
    for place, row in json_objects(path, EvaluationError, "the labelled answers"):
        try:
            right = row["right"]
            answered = AnsweredQuestion(
                str(row["id"]),
                row["question"],
                tuple(row["answers"]),
                row["answer"],
                tuple(tuple(item) for item in row.get("answer_items", ())),
            )
        except (KeyError, TypeError) as error:
            raise EvaluationError(
                f"{place}: {type(error).__name__} {error}. Expected an object with id, question, "
                "answers, answer and right."
            ) from error
        if not isinstance(right, bool):
            raise EvaluationError(f"{place}: right is {right!r}; expected true or false.")
        labelled.append(LabelledAnswer(answered, right))
    return labelled


def made_from(examples: Sequence[Example], dataset: str, *, seed: int = 0) -> list[LabelledAnswer]:
    """Two answers to each question: a gold one, and the gold one of another question of the same type.

    An easy set: a judge that fails it is useless, one that passes it may still misjudge what programs answer. Where a
    question has several gold answers, the judge is shown the first, and judges the last. Questions without a gold
    answer, or with one that is yes or no, are left out.
    """
    usable = [each for each in examples if each.answers and normalise_answer(each.answers[0]) not in ("yes", "no")]
    labelled = []
    for example, other in zip(usable, _others(usable, seed), strict=True):
        gold = (example.answers[0],)
        right = AnsweredQuestion(f"{example.id}/right", example.question, gold, example.answers[-1])
        labelled.append(LabelledAnswer(right, True))
        if other is not None:
            wrong = AnsweredQuestion(f"{example.id}/wrong", example.question, gold, other)
            labelled.append(LabelledAnswer(wrong, False))
    if not labelled:
        raise EvaluationError(f"{dataset}: no question has a gold answer to calibrate a judge by.")
    return labelled


def calibrate_judge(
    labelled: Sequence[LabelledAnswer],
    kind: str,
    lm: dspy.LM,
    header: RunHeader,
    folder: Path,
    *,
    concurrency: int = 8,
    progress: Progress | None = None,
) -> Agreement:
    """Asks the judge about what `folder` has no row of yet, then compares all its verdicts with the labels.

    Raises ConfigError for an unknown kind, EvaluationError when nothing could be judged.
    """
    if kind not in JUDGES:
        raise ConfigError(f"There is no judge {kind!r}; there are: {', '.join(JUDGES)}.")
    judge = JUDGES[kind]()
    judge.set_lm(lm)
    progress = progress or SilentProgress()
    writer = RowWriter(folder, header)
    todo = [each.answered for each in labelled if (kind, each.answered.id) not in writer.done]
    progress.start(f"{kind} judge", len(labelled))
    progress.advance(f"{kind} judge", len(labelled) - len(todo))
    for start in range(0, len(todo), 4 * concurrency):
        for row in _judged(judge, kind, todo[start : start + 4 * concurrency], concurrency):
            writer.write(row)
            progress.advance(f"{kind} judge")
    _, rows = read_run(folder)
    agreement = agreement_of(labelled, rows, kind, str(lm.model))
    write_agreement(agreement, header.dataset, folder)
    return agreement


def agreement_of(labelled: Sequence[LabelledAnswer], rows: Sequence[ResultRow], kind: str, model: str) -> Agreement:
    gold = {each.answered.id: each.right for each in labelled}
    judged = {
        row.question_id: bool(row.metrics[METRIC]) for row in rows if row.system == kind and METRIC in row.metrics
    }
    return judge_agreement(gold, judged, judge=f"{kind} judge, {model}")


def _judged(judge: Judge, kind: str, answered: Sequence[AnsweredQuestion], concurrency: int) -> Iterator[ResultRow]:
    with dspy.context(adapter=KraqAdapter()):
        verdicts = judge_answers(judge, answered, concurrency=concurrency)
    reasons = {failure.item_id: failure.reason for failure in verdicts.failures}
    graded = {verdict.question_id: verdict for verdict in verdicts.verdicts}
    for each in answered:
        extra: dict[str, Any] = {"question": each.question, "gold": list(each.gold)}
        if each.id in reasons:
            yield ResultRow(each.id, kind, answer=each.answer, failure=reasons[each.id], extra=extra)
            continue
        verdict = graded[each.id]
        extra |= {"grade": verdict.grade, "feedback": verdict.feedback}
        yield ResultRow(each.id, kind, answer=each.answer, metrics={METRIC: verdict.score}, extra=extra)


def _others(examples: Sequence[Example], seed: int) -> list[str | None]:
    """For each example, a gold answer of another one of its type that is none of its own; None where there is none."""
    rng = random.Random(seed)
    by_type: dict[str, list[Example]] = {}
    for example in examples:
        by_type.setdefault(example.type, []).append(example)
    others: list[str | None] = []
    for example in examples:
        own = {normalise_answer(answer) for answer in example.answers}
        candidates = by_type[example.type]
        start = rng.randrange(len(candidates))
        turned = candidates[start:] + candidates[:start]
        others.append(next((each.answers[0] for each in turned if normalise_answer(each.answers[0]) not in own), None))
    return others
