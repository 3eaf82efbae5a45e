"""Makes pairs from question-answering data, by a teacher."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dspy
from dspy.utils.exceptions import AdapterParseError

from kraq_dspy._internal.concurrency import run_coroutine
from kraq_dspy._internal.step import attempts
from kraq_dspy.errors import ConfigError, TrainingError, counted
from kraq_dspy.eval.datasets import Dataset
from kraq_dspy.eval.datasets.dataset import Example
from kraq_dspy.finetune.pairs import Pair, leak
from kraq_dspy.models.lms.adapter import KraqAdapter
from kraq_dspy.models.lms.roles import LanguageModels
from kraq_dspy.ports import Progress, SilentProgress
from kraq_dspy.programs.kraq.describe import shown_summary
from kraq_dspy.records import content_id
from kraq_dspy.signatures.learning import SummarizeEvidence
from kraq_dspy.signatures.speculative import ExplainResponse
from kraq_dspy.steps.bounded import bounded_map
from kraq_dspy.steps.journal import JournalFile

STAGE = "pairs"
TRIES = 2
TEACHING = {"generator": SummarizeEvidence, "drafter": ExplainResponse}
"""The teacher's step, by the model that will learn from it."""
Written = tuple[dict[str, Any], dict[str, Any], str | None]
"""Inputs and outputs of a pair, and why it is left out, if it is."""


@dataclass(frozen=True, slots=True)
class TeachingReport:
    """What a run wrote. `rejected` counts by reason; `known` are rows that an earlier run had decided."""

    path: Path
    pairs: int
    rejected: Mapping[str, int]
    known: int


class PairWriter:
    """Rows as they come: pairs to `path`, what was left out and why to PATH.rejected. A row is decided once."""

    def __init__(self, path: Path, model: str) -> None:
        """Raises ConfigError for files with pairs of another teacher than `model`, or that cannot be read."""
        self.model = model
        self.pairs = 0
        self.reasons: Counter[str] = Counter()
        self._pairs = _decided(path, model)
        self._rejected = _decided(path.with_name(f"{path.name}.rejected"), model)
        self.known = len({*self._pairs, *self._rejected})

    def is_new(self, pair_id: str) -> bool:
        return pair_id not in self._pairs and pair_id not in self._rejected

    def decide(self, pair: Pair, reason: str | None) -> None:
        """Keep the pair, or leave it out for a `reason`."""
        journal, line = self._pairs, pair.row()
        if reason is None:
            self.pairs += 1
        else:
            journal, line = self._rejected, {**line, "reason": reason}
            self.reasons[reason.split(":")[0]] += 1
        try:
            journal.keep(line)
        except OSError as error:
            raise TrainingError(f"{str(journal.path)!r} cannot be written: {error.strerror}.") from error


def _decided(path: Path, model: str) -> JournalFile[str, str]:
    """The teachers' names by the id of the pair, of a file of pairs."""
    journal: JournalFile[str, str] = JournalFile(
        path, lambda line: (line["id"], line.get("model", model)), "the pairs of an earlier run", ConfigError
    )
    for other in journal.values():
        if other != model:
            raise ConfigError(
                f"{str(path)!r} holds pairs of the teacher {other!r}, and this one is {model!r}. Give another --out, "
                "or the same --lm."
            )
    return journal


def pairs_from_dataset(
    dataset: Dataset,
    out: Path,
    models: LanguageModels,
    *,
    kind: str = "generator",
    step: dspy.Predict | None = None,
    limit: int | None = None,
    progress: Progress | None = None,
) -> TeachingReport:
    """Let the role "teacher" write training pairs of the questions of a data set that have evidence.

    Args:
        dataset: the data set.
        out: the JSON lines file to write. The same call resumes, and repeats no call of the model.
        models: the models by role.
        kind: the model to train: "generator" or "drafter".
        step: the predictor that writes a pair; by default `TEACHING[kind]`.
        limit: the most questions; None for all.
        progress: is called as the work advances.

    Returns:
        How many pairs there are, and how many were rejected.

    Raises:
        TrainingError: if no question names evidence.

    If a summary contains the question, kraq calls the teacher once more. If the second summary contains the question,
    too, kraq drops the pair.

    >>> pairs_from_dataset(load_dataset("musique", Path("data")), Path("pairs.jsonl"), models)  # doctest: +SKIP
    """
    progress = progress or SilentProgress()
    texts = {document.id: f"{document.title}\n{document.text}".strip() for document in dataset.documents}
    usable = [example for example in dataset.examples if example.supporting_ids]
    if kind == "drafter":
        usable = [example for example in usable if example.answers]
    if not usable:
        raise TrainingError(
            f"None of the {counted(len(dataset.examples), 'question')} of {dataset.name!r} names its evidence "
            f"(supporting_ids){' and an answer' if kind == 'drafter' else ''}: there is nothing to make pairs from."
        )
    usable = usable[:limit]
    teacher = models["teacher"]
    writer = PairWriter(out, str(teacher.model))
    write = _summarised if kind == "generator" else _explained
    step = step or dspy.Predict(TEACHING[kind])

    def id_of(example: Example) -> str:
        return content_id(kind, dataset.name, example.id)

    async def work(example: Example) -> tuple[Pair, str | None]:
        passages = [texts[document_id] for document_id in example.supporting_ids]
        try:
            inputs, outputs, reason = await write(step, example, passages)
        except AdapterParseError as error:
            inputs, outputs = {"question": example.question}, {}
            reason = f"a reply that cannot be read: {str(error)[:200]}"
        pair = Pair(id_of(example), inputs, outputs, dataset.name, example.id, example.supporting_ids, writer.model)
        return pair, reason

    async def run() -> None:
        left = [example for example in usable if writer.is_new(id_of(example))]
        progress.start(STAGE, len(usable))
        progress.advance(STAGE, len(usable) - len(left))
        try:
            with dspy.context(lm=teacher, adapter=KraqAdapter()):
                async for pair, reason in bounded_map(work, left, models.settings.run.concurrency):
                    writer.decide(pair, reason)
                    progress.advance(STAGE)
        finally:
            await models.aclose()
        progress.finish(STAGE)

    run_coroutine(run())
    return TeachingReport(out, writer.pairs, dict(writer.reasons), writer.known)


async def _summarised(step: dspy.Predict, example: Example, passages: list[str]) -> Written:
    summary, reason = "", None
    for options in attempts(TRIES - 1):
        prediction = await step.acall(passages=passages, question=example.question, **options)
        text = str(prediction.summary).strip()
        summary = shown_summary(str(prediction.title or "").strip(), text)
        reason = leak(summary, example.question) if text else "an empty summary"
        if reason is None:
            break
    return {"summary": summary}, {"question": example.question}, reason


async def _explained(step: dspy.Predict, example: Example, passages: list[str]) -> Written:
    inputs, response = {"question": example.question, "passages": passages}, example.answers[0]
    rationale = str((await step.acall(**inputs, response=response)).rationale).strip()
    return inputs, {"rationale": rationale, "response": response}, None if rationale else "an empty rationale"
