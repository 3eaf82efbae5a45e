"""Holds what a selection came to: the chosen candidate, the others beside it, and the settings that it means."""

import dataclasses
import math
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kraq_dspy.errors import counted
from kraq_dspy.eval.calibration import Calibrated
from kraq_dspy.eval.joint import joint_grid
from kraq_dspy.eval.questions import FOUND, QuestionColumns
from kraq_dspy.eval.report_page import write_report
from kraq_dspy.eval.selection.candidates import Candidate, chunks_of
from kraq_dspy.eval.selection.race import Cost
from kraq_dspy.eval.statistics import Interval
from kraq_dspy.eval.summary import RunSummary, TableSummary
from kraq_dspy.settings import AskSettings, Settings

SETTINGS_FILE = "kraq.toml"


@dataclass(frozen=True, slots=True)
class Tried:
    """A candidate that was asked every question. `difference` is to the best one, paired by question.

    If human questions were asked beside the test set, `score` is that of the test set, `joint_mean` the mean that both
    foretell of human questions, and `difference` is joint, too.
    """

    candidate: Candidate
    score: Interval
    difference: Interval
    cost: Cost
    joint_mean: float | None = None

    @property
    def mean(self) -> float:
        """The mean that candidates are ordered by: the joint one, if there is one."""
        return self.score.estimate if self.joint_mean is None else self.joint_mean

    @property
    def is_undecided(self) -> bool:
        """Whether it cannot be told from the best one; the best one cannot be told from itself."""
        return self.difference.high >= 0


@dataclass(frozen=True)
class Selection:
    """The outcome of a selection. `tried` begins with the chosen candidate; then come the others,
    best first.

    `dropped` says why others were not asked everything. `settings` are those of the run; `to_toml` gives those that the
    chosen candidate means. `summary` has every row, with the differences to the chosen one. `are_made`: the questions
    are those of `kraq testset make`, not people's. `joint` is what these say together with a few of people's
    (`human`); None without them. `columns` are those of the questions, which the gate names too.
    """

    tried: tuple[Tried, ...]
    dropped: Mapping[str, str]
    metric: str
    settings: Settings
    n_questions: int
    notes: tuple[str, ...]
    corpus: str
    questions: str
    folder: Path | None
    summary: RunSummary
    are_made: bool = False
    joint: Calibrated | None = None
    columns: QuestionColumns = FOUND

    @property
    def chosen(self) -> Tried:
        return self.tried[0]

    @property
    def best(self) -> Tried:
        """The one with the highest mean, which need not be the chosen one."""
        return max(self.tried, key=lambda tried: tried.mean)

    @property
    def undecided(self) -> tuple[Tried, ...]:
        """Others that cannot be told from the best one."""
        return tuple(other for other in self.tried[1:] if other.is_undecided)

    @property
    def verdict(self) -> str:
        """The decision, in a sentence or two."""
        chosen, best = self.chosen, self.best
        asked = counted(chosen.score.n, "question")
        what = f"{chosen.candidate.name}: {self.metric} {_interval(chosen.score)} on {asked}."
        if self.joint is not None:
            what = (
                f"{chosen.candidate.name}: {self.metric} {chosen.mean:.3f} by {self.joint.n_people} of people's "
                f"questions and the test set together ({_interval(chosen.score)} on its {asked})."
            )
        if not self.undecided:
            return f"{what} It is the best, by more than chance explains."
        if len(self.undecided) == len(self.tried) - 1:
            return (
                f"{what} These questions tell none of the {len(self.tried)} candidates from another: the cheapest is "
                f"chosen, and {self._more} would tell more."
            )
        if chosen is best:
            return f"{what} It is the best and the cheapest of {len(self.undecided) + 1} that cannot be told apart."

        return (
            f"{what} It cannot be told from the best, {best.candidate.name} ({best.mean:.3f}; difference "
            f"{_interval(chosen.difference, signed=True)}), and is the cheapest of {len(self.undecided) + 1} such."
        )

    @property
    def _more(self) -> str:
        """Questions that would tell more: people's, unless these are people's or were asked beside."""
        if self.joint is not None:
            return "more of human questions"
        return "human questions" if self.are_made else "more questions"

    @property
    def least(self) -> float:
        """The mean below which the gate fails: the lower end of the chosen one's interval, in whole points."""
        return max(0, math.floor(100 * self.chosen.score.low)) / 100

    @property
    def gate(self) -> str:
        """The command that fails when retrieval becomes worse, for the index docs.kraq."""
        k = self.chosen.candidate.k
        metric = self.metric if self.metric == "answer_found" else f"{self.metric}@{k}"
        words = ["kraq", "eval", "docs.kraq", self.questions, "--retrieval-only", "--k", str(k)]
        return shlex.join([*words, *self.columns.options(), "--fail-under", f"{metric}={self.least:g}"])

    def to_toml(self) -> str:
        """A kraq.toml with the chosen chunks and retriever, and above it what was measured and the gate."""
        chosen = self.chosen.candidate
        settings = dataclasses.replace(
            self.settings,
            chunks=chunks_of(chosen.tokens, self.settings.chunks),
            ask=AskSettings(retriever=chosen.retriever),
        )

        index = shlex.join(["kraq", "index", self.corpus, "--out", "docs.kraq", "--config", SETTINGS_FILE])
        return (
            f"# Chosen by kraq select. {self.verdict}\n"
            f"# Index:  {index}\n"
            f'# Answer: kraq ask docs.kraq "..." -P k={chosen.k}\n'
            f"# Gate:   {self.gate}\n\n"
            f"{settings.to_toml()}\n"
        )

    def write(self, folder: str | Path) -> list[Path]:
        """Write `kraq.toml` and `report.html` into the folder, and return where they are."""
        place = Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        file = place / SETTINGS_FILE
        file.write_text(self.to_toml(), "utf-8")
        table = self.summary.table
        summary = TableSummary(table["title"], table["kind"], (self.summary,))
        together = [] if self.joint is None else [joint_grid(self.joint, self.metric, beside=self.best.candidate.name)]
        return [file, *write_report(summary, place, in_front=together)]

    def to_dict(self) -> dict[str, Any]:
        """Write it as JSON values."""
        return {
            "chosen": self.chosen.candidate.name,
            "best": self.best.candidate.name,
            "verdict": self.verdict,
            "metric": self.metric,
            "questions": self.n_questions,
            "tried": [dataclasses.asdict(tried) | {"is_undecided": tried.is_undecided} for tried in self.tried],
            "dropped": dict(self.dropped),
            "notes": list(self.notes),
            "gate": self.gate,
            "settings": self.to_toml(),
            **({} if self.joint is None else {"joint": self.joint.to_dict()}),
        }

    def __repr__(self) -> str:
        return f"Selection({self.verdict})"


def _interval(value: Interval, *, signed: bool = False) -> str:
    form = "+.3f" if signed else ".3f"
    return f"{value.estimate:{form}} [{value.low:{form}}, {value.high:{form}}]"
