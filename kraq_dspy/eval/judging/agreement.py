"""Measures how far a judge agrees with people: accuracy and Cohen's kappa against gold labels.

A judge that was not calibrated is a rumour: report this beside every judged figure.
"""

import json
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kraq_dspy.errors import EvaluationError
from kraq_dspy.eval.statistics import Interval, bootstrap_mean

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
