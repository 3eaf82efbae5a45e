"""Makes pairs from question-answering data, by a teacher; and from an index and reference questions, without one."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dspy
from dspy.utils.exceptions import AdapterParseError

from kraq_dspy._internal.concurrency import run_coroutine
from kraq_dspy._internal.files import append_line
from kraq_dspy.asset.store.index import Index
from kraq_dspy.errors import ConfigError, TrainingError
from kraq_dspy.eval.datasets import Dataset
from kraq_dspy.eval.datasets.dataset import Example
from kraq_dspy.eval.metrics.questions import nearest_rows
from kraq_dspy.finetune.pairs import Pair, leak
from kraq_dspy.models.lms.adapter import KraqAdapter
from kraq_dspy.models.lms.roles import LanguageModels
from kraq_dspy.ports import Embedder, Progress, SilentProgress
from kraq_dspy.programs.kraq.describe import shown_summary
from kraq_dspy.records import Summary
from kraq_dspy.signatures.learning import SummarizeEvidence
from kraq_dspy.signatures.speculative import ExplainResponse
from kraq_dspy.steps.direct import bounded_map

STAGE = "pairs"
TRIES = 2


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
        self.path = path
        self.rejects = path.with_name(f"{path.name}.rejected")
        self.pairs = self.known = 0
        self.reasons: Counter[str] = Counter()
        self._decided: set[str] = set()
        for file in (path, self.rejects):
            for row in _rows(file):
                if row.get("model", model) != model:
                    raise ConfigError(
                        f"{str(file)!r} holds pairs of the teacher {row['model']!r}, and this one is {model!r}. Give "
                        "another --out, or the same --lm."
                    )
                self._decided.add(row["id"])
        self.known = len(self._decided)

    def is_new(self, pair_id: str) -> bool:
        return pair_id not in self._decided

    def decide(self, pair: Pair, reason: str | None) -> None:
        """Keep the pair, or leave it out for a `reason`."""
        if reason is None:
            self.pairs += 1
            self._append(self.path, pair.row())
        else:
            self.reasons[reason.split(":")[0]] += 1
            self._append(self.rejects, {**pair.row(), "reason": reason})

    def made(self) -> TeachingReport:
        return TeachingReport(self.path, self.pairs, dict(self.reasons), self.known)

    def _append(self, file: Path, row: Mapping[str, Any]) -> None:
        self._decided.add(row["id"])
        try:
            append_line(file, json.dumps(row, ensure_ascii=False))
        except OSError as error:
            raise TrainingError(f"{str(file)!r} cannot be written: {error.strerror}.") from error


def teaching_step(kind: str, demos: Sequence[Mapping[str, Any]] = ()) -> dspy.Predict:
    """What the teacher is asked for pairs of this kind, with worked examples before it, if there are any.

    Raises TrainingError for a demo without one of the step's fields.
    """
    step = dspy.Predict(SummarizeEvidence if kind == "generator" else ExplainResponse)
    names = (*step.signature.input_fields, *step.signature.output_fields)
    for number, demo in enumerate(demos, start=1):
        if missing := [name for name in names if not demo.get(name)]:
            raise TrainingError(f"Demo {number} has no {missing[0]!r}; a demo has {', '.join(names)}.")
    step.demos = [
        dspy.Example(**{name: demo[name] for name in names}).with_inputs(*step.signature.input_fields) for demo in demos
    ]
    return step


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
    """Asks the role "teacher" about every question that has evidence. What is in `out` already is not asked again.

    >>> pairs_from_dataset(load_dataset("musique", Path("data")), Path("pairs.jsonl"), models)  # doctest: +SKIP

    `step` asks the teacher, `teaching_step(kind)` by default: with demos of its own it is shown how. A summary that
    gives its question away is asked for once more, then left out. Raises TrainingError when no question
    names evidence.
    """
    progress = progress or SilentProgress()
    texts = {document.id: f"{document.title}\n{document.text}".strip() for document in dataset.documents}
    usable = [example for example in dataset.examples if example.supporting_ids]
    if kind == "drafter":
        usable = [example for example in usable if example.answers]
    if not usable:
        raise TrainingError(
            f"None of the {len(dataset.examples)} questions of {dataset.name!r} names its evidence "
            f"(supporting_ids){' and an answer' if kind == 'drafter' else ''}: there is nothing to make pairs from."
        )
    usable = usable[:limit]
    teacher = models["teacher"]
    writer = PairWriter(out, str(teacher.model))
    write = _summarised if kind == "generator" else _explained
    step = step or teaching_step(kind)

    async def work(example: Example) -> tuple[Pair, str | None]:
        passages = [texts[document_id] for document_id in example.supporting_ids]
        return await write(step, dataset.name, example, passages, str(teacher.model))

    async def run() -> None:
        left = [example for example in usable if writer.is_new(_key(kind, dataset.name, example))]
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
    return writer.made()


def pairs_from_index(
    index: Index,
    references: Sequence[str],
    embedder: Embedder,
    out: Path,
    *,
    source: str,
    least_similarity: float = 0.5,
) -> TeachingReport:
    """Each community's summary with the reference question nearest to it, where that is near enough; asks no model.

    >>> pairs_from_index(space.index, questions, space.embedder, Path("pairs.jsonl"), source="faq")  # doctest: +SKIP

    A question goes with the community that is nearest to it alone, and a community with one question. Raises
    TrainingError without summaries or references.
    """
    index.require_encoder(embedder)
    summaries = {summary.community_id: summary for summary in index.all(Summary)}
    if not summaries or not references:
        raise TrainingError(f"There are {len(summaries)} summaries and {len(references)} reference questions.")
    writer = PairWriter(out, "")
    ids = sorted(summaries)
    nearest, cosines = nearest_rows(
        embedder.encode_queries(list(references)), embedder.encode_passages([summaries[each].text for each in ids])
    )
    best: dict[int, tuple[float, int]] = {}
    for place, (near, cosine) in enumerate(zip(nearest.tolist(), cosines.tolist(), strict=True)):
        if cosine >= least_similarity and (near not in best or cosine > best[near][0]):
            best[near] = (cosine, place)
    for near, (cosine, place) in sorted(best.items()):
        summary, question = summaries[ids[near]], references[place]
        pair = Pair.generator(
            shown_summary(summary.title, summary.text), question, source=source,
            example_id=f"{summary.community_id} {question}", extra={"similarity": round(cosine, 4)},
        )  # fmt: skip
        if writer.is_new(pair.id):
            writer.decide(pair, leak(pair.inputs["summary"], question))
    return writer.made()


async def _summarised(
    step: dspy.Predict, source: str, example: Example, passages: Sequence[str], model: str
) -> tuple[Pair, str | None]:
    reason: str | None = None
    summary = ""
    for turn in range(TRIES):
        # Another rollout is another sample: the same request would get the same summary.
        config = {"rollout_id": turn, "temperature": 1.0} if turn else {}
        prediction, reason = await _asked(step, passages=list(passages), question=example.question, config=config)
        if prediction is None:
            break
        text = str(prediction.summary).strip()
        summary = shown_summary(str(prediction.title or "").strip(), text)
        reason = leak(summary, example.question) if text else "an empty summary"
        if reason is None:
            break
    about: dict[str, Any] = {"document_ids": example.supporting_ids, "model": model}
    return Pair.generator(summary, example.question, source=source, example_id=example.id, **about), reason


async def _explained(
    step: dspy.Predict, source: str, example: Example, passages: Sequence[str], model: str
) -> tuple[Pair, str | None]:
    response = example.answers[0]
    prediction, reason = await _asked(step, question=example.question, passages=list(passages), response=response)
    rationale = "" if prediction is None else str(prediction.rationale).strip()
    if reason is None and not rationale:
        reason = "an empty rationale"
    about: dict[str, Any] = {"document_ids": example.supporting_ids, "model": model}
    pair = Pair.drafter(example.question, passages, rationale, response, source=source, example_id=example.id, **about)
    return pair, reason


async def _asked(predict: dspy.Predict, **inputs: Any) -> tuple[dspy.Prediction | None, str | None]:
    """The prediction, or why there is none; errors of the server end the run, and the same command goes on."""
    try:
        return await predict.acall(**inputs), None
    except AdapterParseError as error:
        return None, f"a reply that cannot be read: {str(error)[:200]}"


def _key(kind: str, source: str, example: Example) -> str:
    blank: dict[str, Any] = {"source": source, "example_id": example.id}
    if kind == "generator":
        return Pair.generator("", "", **blank).id
    return Pair.drafter("", (), "", "", **blank).id


def _rows(file: Path) -> list[dict[str, Any]]:
    rows = []
    with suppress(FileNotFoundError):
        for number, line in enumerate(file.read_bytes().splitlines(), start=1):
            try:
                row = json.loads(line)
                rows.append({**row, "id": row["id"]})
            except (ValueError, KeyError, TypeError):
                raise ConfigError(
                    f"{str(file)!r}, line {number}: no pair. Give another --out, or mend the line."
                ) from None
    return rows
