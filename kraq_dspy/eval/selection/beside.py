"""Asks the last candidates of a race a few human questions, and joins these with the test set that they raced by."""

import dataclasses
from collections.abc import Sequence

from kraq_dspy.eval.calibration import Calibrated, calibrated
from kraq_dspy.eval.datasets import Example
from kraq_dspy.eval.datasets.dataset import checksum_of
from kraq_dspy.eval.joint import ASKED_FOLDER
from kraq_dspy.eval.rows import RowWriter, RunHeader
from kraq_dspy.eval.selection.candidates import Candidate
from kraq_dspy.eval.selection.race import Race
from kraq_dspy.records import Document


def joint_of_finalists(
    race: Race,
    finalists: Sequence[Candidate],
    peoples: Sequence[Example],
    documents: Sequence[Document],
    header: RunHeader,
) -> Calibrated | None:
    """Ask the finalists all human questions, and join what they scored with the test set.

    Rows are kept in the folder `human` of the run. Finalists that could not be asked all are dropped, each with the
    reason. None if fewer than two remain: then the test set alone decides.
    """
    about = {**header.extra, "asked": len(peoples), "data": checksum_of(peoples, documents)}
    of_people = dataclasses.replace(header, dataset=f"{header.dataset}-asked", extra=about)
    beside = race.beside(peoples, RowWriter(race.indexes.folder / ASKED_FOLDER, of_people))
    asked = beside.ask(finalists)
    for candidate in finalists:
        if candidate not in asked:
            race.dropped[candidate.name] = beside.dropped[candidate.name]
    if len(asked) < 2:
        return None
    return calibrated(_scores(beside, asked), _scores(race, asked))


def _scores(race: Race, candidates: Sequence[Candidate]) -> dict[str, list[float]]:
    """The scores of each candidate by its name, in the order of the questions' ids."""
    scores = {candidate.name: race.scores(candidate) for candidate in candidates}
    return {name: [by_id[id] for id in sorted(by_id)] for name, by_id in scores.items()}
