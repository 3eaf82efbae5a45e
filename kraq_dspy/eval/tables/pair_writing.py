"""Makes the rows of QA-RAG's Table 1: how often a passage's pairs are good at once, and after asking again.

The paper's authors corrected ambiguous references by hand; here the critic "stand alone" of the role "judge" says
whether every question can be understood without the passage.
"""

from pathlib import Path
from time import perf_counter

import dspy

from kraq_dspy.eval.asked import measured
from kraq_dspy.eval.datasets import Example
from kraq_dspy.eval.rows import ResultRow
from kraq_dspy.eval.tables import systems
from kraq_dspy.eval.tables.run import Run
from kraq_dspy.models.lms.meter import prices_of
from kraq_dspy.programs.qa_rag import WritePairs
from kraq_dspy.programs.qa_search.critics import BEST, rating
from kraq_dspy.settings import Settings
from kraq_dspy.signatures import RateStandAlone

RESAMPLED = (
    "Asking again takes another sample at temperature 1; the paper prompts again with a correction, and judges by hand."
)
TRIES = 4
"""The paper's hits@<5."""


def measure(run: Run, folder: Path) -> None:
    """A row for each passage; as many as questions would be asked."""
    kept, notes = systems.distinct(run.table.systems_for(run.questions.dataset.name), run.settings)
    writer = run.writer(folder, None, {"notes": [*notes, RESAMPLED]})
    documents = sorted(run.questions.dataset.documents, key=lambda document: document.id)
    passages = [Example(each.id, each.text, ()) for each in documents][: max(1, len(run.questions.examples))]
    for system, settings in kept:
        writing = _Writing(run, settings, system.name)
        run.ask_all(system.name, writing, writer, at_once=run.concurrency, examples=passages)
        writing.models.close()


class _Writing:
    """Writes a passage's pairs until they are good."""

    def __init__(self, run: Run, settings: Settings, name: str) -> None:
        self.models = run.models(settings)
        self._name = name
        self._writers = [WritePairs() for _ in range(TRIES)]
        for turn, writer in enumerate(self._writers):  # another rollout is another sample
            lm = self.models["answerer"]
            writer.set_lm(lm.copy(rollout_id=turn, temperature=1.0) if turn else lm)
        self._critic = dspy.Predict(RateStandAlone)
        self._critic.set_lm(self.models["judge"])
        self._prices = prices_of(settings)

    def __call__(self, passage: Example) -> ResultRow:
        started = perf_counter()
        facts = {"question": passage.question[:200]}
        outcome = measured(self._name, passage, self._prices, lambda: self._first_good(passage.question), facts)
        if isinstance(outcome, ResultRow):
            return outcome
        turn, extra = outcome
        seconds = perf_counter() - started
        return ResultRow(
            passage.id,
            self._name,
            metrics={"hits@1": float(turn == 0), "hits@<5": float(turn is not None)},
            timings={"write": seconds, "total": seconds},
            extra={**extra, "tries": TRIES if turn is None else turn + 1},
        )

    def _first_good(self, text: str) -> int | None:
        """The turn, from 0, whose pairs are good; None where none of them is."""
        return next((turn for turn in range(TRIES) if self._is_good(text, turn)), None)

    def _is_good(self, text: str, turn: int) -> bool:
        """There are pairs, and every question stands alone."""
        pairs = self._writers[turn](passage=text).pairs
        return bool(pairs) and all(rating(self._critic(question=pair.question).stand_alone) == BEST for pair in pairs)
