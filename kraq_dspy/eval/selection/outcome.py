"""Holds what a selection came to: the chosen candidate, the others beside it, and the settings that it means."""

import dataclasses
import math
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kraq_dspy.errors import counted
from kraq_dspy.eval.columns import FOUND, QuestionColumns
from kraq_dspy.eval.halves import Decision
from kraq_dspy.eval.reports.grids import decision_grid
from kraq_dspy.eval.reports.page import write_report
from kraq_dspy.eval.reports.summary import RunSummary, TableSummary
from kraq_dspy.eval.selection.candidates import Candidate, chunks_of
from kraq_dspy.eval.selection.race import Cost
from kraq_dspy.eval.statistics import Interval
from kraq_dspy.settings import AskSettings, Settings

SETTINGS_FILE = "kraq.toml"


@dataclass(frozen=True, slots=True)
class Tried:
    """A candidate that was asked every question. `score` is its mean over all of them, `difference` that to the best
    one, paired by question.

    Candidates are ordered by `mean`, in which the two halves of a test set and human questions weigh alike. With two
    halves, `decision` says whether the best one is better; None for the best one itself.
    """

    candidate: Candidate
    score: Interval
    difference: Interval
    cost: Cost
    mean: float
    decision: Decision | None = None

    @property
    def is_undecided(self) -> bool:
        """Whether it cannot be told from the best one; the best one cannot be told from itself."""
        return self.difference.high >= 0 if self.decision is None else self.decision.verdict <= 0


@dataclass(frozen=True)
class Selection:
    """The outcome of `select`.

    Attributes:
        tried: the chosen candidate, then the others, best first.
        dropped: why a candidate got only some of the questions, by the candidate's name.
        metric: the metric that decided.
        settings: the settings of the run. `to_toml` gives the settings of the chosen candidate.
        n_questions: the number of questions.
        notes: remarks that a reader needs.
        corpus: the name of the corpus.
        questions: the name of the questions.
        folder: the folder of the run; None if nothing was kept.
        summary: every row, with the differences to the chosen candidate.
        are_made: whether `kraq testset make` wrote the questions.
        columns: the names of the questions' columns.
        made_half: remarks on the made half of the test set.
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
    columns: QuestionColumns = FOUND
    made_half: Mapping[str, Any] = field(default_factory=dict)

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
    def cheapest(self) -> Tried:
        """The cheapest of those that cannot be told from the best."""
        return min(
            (each for each in self.tried if each.is_undecided), key=lambda each: (each.cost.order, each.candidate.name)
        )

    @property
    def decisions(self) -> tuple[Decision, ...]:
        """What two halves say of the best candidate and each other one; none without two halves."""
        return tuple(each.decision for each in self.tried if each.decision is not None)

    @property
    def verdict(self) -> str:
        """The decision, in a few sentences."""
        chosen, best, cheapest = self.chosen, self.best, self.cheapest
        of_halves = f"; mean of the halves {chosen.mean:.3f}" if self.decisions else ""
        asked = counted(chosen.score.n, "question")
        said = [f"{chosen.candidate.name}: {self.metric} {chosen.score.shown()} on {asked}{of_halves}."]
        if not self.undecided:
            said.append("It is the best, by both halves." if self.decisions else "It is the best, by more than chance.")
        elif len(self.undecided) == len(self.tried) - 1:
            more = "human questions" if self.are_made else "more questions"
            said.append(f"These questions tell none of the {len(self.tried)} candidates from another; {more} would.")
        if chosen is not best:
            said.append(
                f"The best, {best.candidate.name}, is higher by {best.mean - chosen.mean:.3f}, which is not decided, "
                f"and takes {best.cost.tokens:,.0f} tokens a question instead of {chosen.cost.tokens:,.0f}."
            )
        if cheapest is not chosen:
            said.append(
                f"The cheapest that is not decided to be worse, {cheapest.candidate.name}, is lower by "
                f"{best.mean - cheapest.mean:.3f} for {cheapest.cost.tokens:,.0f} tokens a question instead of "
                f"{chosen.cost.tokens:,.0f}."
            )
        return " ".join(said)

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
        in_front = [decision_grid(self.metric, self.decisions, self.made_half)] if self.decisions else []
        return [file, *write_report(summary, place, in_front=in_front)]

    def to_dict(self) -> dict[str, Any]:
        """Write it as JSON values."""
        return {
            "chosen": self.chosen.candidate.name,
            "best": self.best.candidate.name,
            "verdict": self.verdict,
            "metric": self.metric,
            "questions": self.n_questions,
            "cheapest": self.cheapest.candidate.name,
            "tried": [_as_json(tried) for tried in self.tried],
            "dropped": dict(self.dropped),
            "notes": list(self.notes),
            "gate": self.gate,
            "settings": self.to_toml(),
        }

    def __repr__(self) -> str:
        return f"Selection({self.verdict})"


def _as_json(tried: Tried) -> dict[str, Any]:
    plain = dataclasses.asdict(dataclasses.replace(tried, decision=None))
    decision = None if tried.decision is None else tried.decision.to_dict()
    return {**plain, "decision": decision, "is_undecided": tried.is_undecided}
