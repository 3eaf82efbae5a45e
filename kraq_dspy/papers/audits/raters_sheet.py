"""Writes the sheet on which people judge question-answer pairs, and scores the filled one (QA-RAG paper, 3.5, table 1).

The paper's authors looked at 20 passages: how often a model's pairs were good at once (hits@1), and how often within
fewer than five tries (hits@<5). They prompted again with a correction; here a further try is another sample at
temperature 1. A model may fill the sheet if there are no people: it is a stand-in, and every report says so.
"""

import csv
import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, fields, replace
from pathlib import Path
from typing import Any

from kraq_dspy._internal.files import replaced
from kraq_dspy._internal.spreadsheets import cell_of, text_of
from kraq_dspy._internal.step import Step
from kraq_dspy.errors import EvaluationError, counted
from kraq_dspy.eval.statistics import Interval, bootstrap_mean
from kraq_dspy.models.lms.roles import LanguageModels, fill_in
from kraq_dspy.ports import Progress, SilentProgress
from kraq_dspy.programs.qa_rag import WritePairs
from kraq_dspy.programs.qa_search.critics import BEST
from kraq_dspy.records import Chunk
from kraq_dspy.signatures import RateStandAlone

RATED_PASSAGES = 20
"""Passages on a sheet that people rate."""

TRIES = 4
"""Of each passage: the paper's "fewer than five"."""

YES, NO = "yes", "no"
STAND_IN = "stand-in: "
"""Begins the name of a rater that is a model."""


@dataclass(frozen=True, slots=True)
class SheetRow:
    """One try at a passage's pairs. `good` is "yes", "no", or "" if nobody has judged it yet."""

    passage_id: str
    attempt: int
    passage: str
    pairs: str
    good: str = ""
    rated_by: str = ""


COLUMNS = tuple(each.name for each in fields(SheetRow))


@dataclass(frozen=True, slots=True)
class HitsReport:
    """`at_once` is hits@1, `within_tries` hits@<5, over passages whose tries were judged as far as they decide.

    `rated_by` names the raters; a model among them makes the whole a stand-in for people's judgement. `left_out` are
    passages that nobody judged far enough.
    """

    at_once: Interval
    within_tries: Interval
    n_passages: int
    left_out: int
    rated_by: tuple[str, ...]

    @property
    def is_stand_in(self) -> bool:
        return any(rater.startswith(STAND_IN) for rater in self.rated_by)


def write_sheet(
    chunks: Sequence[Chunk],
    models: LanguageModels,
    path: Path,
    *,
    passages: int = RATED_PASSAGES,
    tries: int = TRIES,
    seed: int = 0,
    progress: Progress | None = None,
) -> list[SheetRow]:
    """A csv file with `tries` sets of pairs of each of so many passages, drawn by the seed, for people to judge.

    The model is that of the role "extractor". Raises EvaluationError if there are no passages.
    """
    if not chunks:
        raise EvaluationError("There are no passages to write pairs of.")

    drawn = random.Random(seed).sample(list(chunks), min(passages, len(chunks)))
    progress = progress or SilentProgress()
    progress.start("pairs", len(drawn) * tries)
    rows = []
    for attempt in range(1, tries + 1):
        writer = _writer(models, attempt)
        for chunk in drawn:
            pairs = writer(passage=chunk.passage).pairs
            text = "\n".join(f"Q: {pair.question}\nA: {pair.answer}" for pair in pairs)
            rows.append(SheetRow(chunk.id, attempt, chunk.passage, text))
            progress.advance("pairs")
    progress.finish("pairs")

    rows.sort(key=lambda row: (row.passage_id, row.attempt))
    _save(rows, path)
    return rows


def rate_by_model(path: Path, models: LanguageModels) -> list[SheetRow]:
    """Fills what nobody has judged: a try is good if it has pairs and each question stands alone (RateStandAlone).

    The model is that of the role "judge". Raises EvaluationError for a file that is no sheet.
    """
    critic = Step(RateStandAlone)
    fill_in(critic, models, "judge")
    rated_by = f"{STAND_IN}{models.name('judge')}"

    rows = []
    for row in read_sheet(path):
        if not row.good:
            questions = [line.removeprefix("Q: ") for line in row.pairs.splitlines() if line.startswith("Q: ")]
            is_good = bool(questions) and all(critic(question=each).stand_alone == BEST for each in questions)
            row = replace(row, good=YES if is_good else NO, rated_by=rated_by)
        rows.append(row)
    _save(rows, path)
    return rows


def read_sheet(path: Path) -> list[SheetRow]:
    """The rows of a sheet. Raises EvaluationError for a file that is none, and for a judgement that is neither yes nor
    no, naming its row."""
    if not path.exists():
        raise EvaluationError(f"There is no sheet {str(path)!r}. Give --index DIR to have one written.")
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            lines = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise EvaluationError(f"Cannot read the sheet {str(path)!r}: {error}.") from error
    if not lines or not set(COLUMNS) <= lines[0].keys():
        raise EvaluationError(f"{str(path)!r} is no sheet for raters; its columns are: {', '.join(COLUMNS)}.")

    rows = []
    for number, line in enumerate(lines, start=1):
        texts = {name: text_of(line[name] or "") for name in COLUMNS}
        good = texts["good"].strip().lower()
        if good not in ("", YES, NO) or not texts["attempt"].isdecimal():
            raise EvaluationError(
                f"{str(path)!r}, row {number}: good is {texts['good']!r}; expected yes, no or nothing."
            )
        of_row: dict[str, Any] = {"attempt": int(texts["attempt"]), "good": good, "rated_by": texts["rated_by"].strip()}
        rows.append(SheetRow(**texts | of_row))
    return rows


def score_sheet(rows: Sequence[SheetRow], *, seed: int = 0) -> HitsReport:
    """Tell how often pairs were good at once, and within the tries. Raises EvaluationError with
    fewer than two judged.

    >>> judged = [("a", 1, "yes"), ("b", 1, "no"), ("b", 2, "yes")]
    >>> report = score_sheet([SheetRow(id, attempt, "", "", good, "Ada") for id, attempt, good in judged])
    >>> report.at_once.estimate, report.within_tries.estimate
    (0.5, 1.0)
    """
    by_passage: defaultdict[str, dict[int, str]] = defaultdict(dict)
    for row in rows:
        by_passage[row.passage_id][row.attempt] = row.good

    outcomes = [outcome for outcome in map(_outcome, by_passage.values()) if outcome is not None]
    if len(outcomes) < 2:
        raise EvaluationError(
            f"{len(outcomes)} of {counted(len(by_passage), 'passage')} are judged; an interval takes two. Fill "
            "the column `good` "
            "with yes or no, the first try of each passage first."
        )
    raters = dict.fromkeys(row.rated_by or "not named" for row in rows if row.good)
    return HitsReport(
        bootstrap_mean([float(at_once) for at_once, _ in outcomes], seed=seed),
        bootstrap_mean([float(within) for _, within in outcomes], seed=seed),
        len(outcomes),
        len(by_passage) - len(outcomes),
        tuple(raters),
    )


def _outcome(judgements: Mapping[int, str]) -> tuple[bool, bool] | None:
    """Whether the first try is good, and whether any is; None if too little is judged to say so."""
    first = judgements.get(1, "")
    if not first:
        return None
    if YES in judgements.values():
        return first == YES, True
    return None if "" in judgements.values() else (False, False)


def _writer(models: LanguageModels, attempt: int) -> WritePairs:
    """The step, whose second and further tries are other samples."""
    writer = WritePairs()
    fill_in(writer, models, "extractor")
    if attempt > 1:
        writer.set_lm(models["extractor"].copy(temperature=1.0, rollout_id=attempt))
    return writer


def _save(rows: Sequence[SheetRow], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with replaced(path) as draft, draft.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        writer.writerows([cell_of(str(value)) for value in astuple(row)] for row in rows)
