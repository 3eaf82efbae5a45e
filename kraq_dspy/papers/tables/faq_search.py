"""Makes the rows of QA search's tables: prepared answers looked up, a program, and both in turn.

The FAQ cache holds the data set's questions with their gold answers, or pairs that a model makes
from its documents ("synthetic", as in the paper's section 5). Each run makes a new one, which
leaves the index alone. A model words questions otherwise, freely or in few characters, and what it
wrote is kept.
"""

import random
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import dspy
import numpy as np

from kraq_dspy._internal.both_ways import blocking
from kraq_dspy.asset.store.faq import FaqCache, NewEntry
from kraq_dspy.asset.store.served_answers import ServedAnswers
from kraq_dspy.asset.store.vectors.local import LocalVectorStore
from kraq_dspy.errors import ConfigError, EvaluationError, counted
from kraq_dspy.eval.asked import measured
from kraq_dspy.eval.datasets import Example
from kraq_dspy.eval.rows import ResultRow
from kraq_dspy.eval.scoring import RIGHT
from kraq_dspy.indexing.faq.synthesize import SyntheticPlan, critics_of, make_synthetic_pairs
from kraq_dspy.models.lms.meter import prices_of
from kraq_dspy.models.lms.roles import LanguageModels
from kraq_dspy.papers.tables import systems
from kraq_dspy.papers.tables.asking import Work, prepared_space, work_of
from kraq_dspy.papers.tables.replies import kept_replies
from kraq_dspy.papers.tables.run import Run
from kraq_dspy.papers.tables.table import System
from kraq_dspy.ports import Progress, SilentProgress
from kraq_dspy.programs.kraq.question_text import MARKS
from kraq_dspy.programs.qa_search.program import QASearch
from kraq_dspy.records import content_id
from kraq_dspy.signatures import RephraseQuestion
from kraq_dspy.workspace import Workspace

ROUNDTRIP = (
    "The judge has less than two billion parameters: a pair passed where its question and its passage lead to each "
    "other, in place of the paper's three critics."
)
APPROACHES = ("faq", "program", "first of two")

LOOK_UP: Mapping[str, Any] = {"block": 150, "scan": "full", "check": "none", "similarity": 0.0}
"""How the paper looks wordings up: blocks in their order, and no second look; a system may say otherwise."""
_OF_A_LOOK_UP = {"entries", "phrasing", "variants", *LOOK_UP, *systems.OF_THE_SYSTEM}


def measure(run: Run, folder: Path) -> None:
    """Measure the systems that answer first, then those that are made of two others' rows."""
    chosen, notes = run.systems()
    for system, _ in chosen:
        _check(system, [other.name for other, _ in chosen])

    is_synthetic = run.table.faq == "synthetic"
    needs_index = is_synthetic or any(system.use == "program" for system, _ in chosen)
    index = run.index(run.settings) if needs_index else None
    models = run.models(run.settings)
    if is_synthetic and critics_of(_plan(run), models.name("judge")) == "roundtrip":
        notes.append(ROUNDTRIP)

    pairs, pool = _synthetic(run, folder, index.path, models) if index and is_synthetic else _gold_pairs(run)
    writer = run.writer(folder, index, {"notes": notes, "prepared_answers": len(pool)})
    phrasings = Rephrasing(folder, models["rewriter"], run.concurrency, run.progress)
    if run.table.as_paper:
        run.table.as_paper.give_prompts(phrasings.rephrase)

    asked = [(system, settings) for system, settings in chosen if system.use != "first of two"]
    worded = {system.name: _wordings_of(system, pairs, phrasings) for system, _ in asked}
    for system, settings in asked:
        examples = worded[system.name]
        if system.use == "program":
            program = _program(system)
            with prepared_space(run, settings, [program]) as (_, space):
                work, at_once = work_of(run, space, program)
                run.ask_all(system.name, work, writer, at_once=at_once, examples=examples)
            continue

        own_models = models if settings == run.settings else run.models(settings)
        with _faq(run, pool, system) as answers:
            look_up = _look_up(run, system, answers, own_models)
            run.ask_all(system.name, look_up, writer, at_once=run.concurrency, examples=examples)

    for system, _ in chosen:
        if system.use == "first of two":
            for row in joined(system, writer.rows()):
                if (system.name, row.question_id) not in writer.done:
                    writer.write(row)
    models.close()


def _wordings_of(system: System, pairs: Sequence[Example], phrasings: "Rephrasing") -> list[Example]:
    """The wordings that a system is asked. Raises EvaluationError if it has none."""
    phrasing = system.options.get("phrasing", ORIGINAL)
    wordings = phrasings.of(pairs, phrasing, system.options.get("variants", 3))
    if not wordings:
        most = f" of at most {LIMITS[phrasing]} characters" if LIMITS.get(phrasing) else ""
        raise EvaluationError(
            f'{system.name!r} has nothing to ask: of {counted(len(pairs), "question")} the role "rewriter" wrote '
            f"no {phrasing} wording{most} that is a question. Name a larger model ([roles.rewriter] in kraq.toml), "
            "or raise --limit."
        )
    return wordings


def joined(system: System, rows: Sequence[ResultRow]) -> Iterator[ResultRow]:
    """A row for each question of `first`: its own if that is right, else that of `then`, with the time and the calls of
    both. A question that `then` was not asked is left to the first. Where `first` failed, or `then` where the first
    was wrong, the row fails: what both answer is not known."""
    first, then = system.options["first"], system.options["then"]
    second = {question_of(row.question_id): row for row in reversed(rows) if row.system == then}
    for row in rows:
        if row.system != first:
            continue

        other = second.get(question_of(row.question_id))
        took = float(np.sum(row.timings.get("total", 0.0)))
        if other is None or row.metrics.get(RIGHT, 1) == 1:  # right, or nobody knows
            yield replace(row, system=system.name, timings={"first": took, "then": 0.0, "total": took})
            continue

        then_took = float(np.sum(other.timings.get("total", 0.0)))
        usage = _usage_of_both(row, other)
        yield replace(
            other,
            system=system.name,
            question_id=row.question_id,
            timings={"first": took, "then": then_took, "total": took + then_took},
            extra={**other.extra, "question": row.extra.get("question", ""), "usage": usage},
        )


def _usage_of_both(row: ResultRow, other: ResultRow) -> dict[str, float]:
    """The sums of what both rows took; of memory, what the one took that needed more."""
    usage: dict[str, float] = dict(row.extra.get("usage", {}))
    for name, amount in other.extra.get("usage", {}).items():
        own = usage.get(name, 0)
        usage[name] = max(own, amount) if name.endswith("_mb") else own + amount
    return usage


def _check(system: System, names: Sequence[str]) -> None:
    """Raises ConfigError, which names the system."""
    if system.use not in APPROACHES:
        raise ConfigError(f"{system.name!r}: approach is {system.use!r}; expected one of {', '.join(APPROACHES)}.")
    if system.use == "first of two":
        for part in ("first", "then"):
            if system.options.get(part) not in names:
                raise ConfigError(f"{system.name!r}: {part!r} names no system of the table; there are: {names}.")
    elif system.use == "program":
        systems.program_of(_program(system))
    elif unknown := set(system.options) - _OF_A_LOOK_UP:
        raise ConfigError(f"{system.name!r}: a look-up has no option {min(unknown)!r}.")


def _program(system: System) -> System:
    options = {name: value for name, value in system.options.items() if name not in ("phrasing", "variants", "program")}
    return System(system.name, system.options.get("program", "traditional"), options)


def _gold_pairs(run: Run) -> tuple[list[Example], list[NewEntry]]:
    """The questions that are asked, and the entries that an FAQ cache may hold, the asked ones' first."""
    pairs = [example for example in run.questions.examples if example.answers]
    if not pairs:
        raise EvaluationError(f"{run.questions.dataset.name} has no question with an answer.")

    example_ids = {example.id for example in pairs}
    others = [
        example for example in run.questions.dataset.examples if example.answers and example.id not in example_ids
    ]
    random.Random(run.options.seed).shuffle(others)

    by_question = {each.question: NewEntry(each.question, each.answers[0]) for each in (*pairs, *others)}
    return pairs, list(by_question.values())


def _synthetic(run: Run, folder: Path, index: Path, models: LanguageModels) -> tuple[list[Example], list[NewEntry]]:
    folder.mkdir(parents=True, exist_ok=True)
    faq = FaqCache(folder / "synthetic.db")
    plan = _plan(run)
    with Workspace.open(index, settings=run.settings, embedder=run.embedder, lm=models, write=True) as space:
        find = space.retriever("dense")
        make_synthetic_pairs(
            space.index, faq, models, plan, by="kraq eval", approve=True, retriever=find, progress=run.progress
        )

    entries = [entry for entry in faq.entries("approved") if entry.answer]
    faq.close()
    if not entries:
        raise EvaluationError("No critic let a synthetic pair pass: there is nothing to ask.")

    examples = [
        Example(f"synthetic {content_id('pair', entry.question)[:8]}", entry.question, (entry.answer,),
                tuple(source.document_id for source in entry.sources))
        for entry in sorted(entries, key=lambda entry: entry.question)  # and not as their replies came
    ]  # fmt: skip
    random.Random(run.options.seed).shuffle(examples)
    pool = [NewEntry(each.question, each.answers[0]) for each in examples]
    return examples[: run.options.limit_of(run.questions.dataset.name)], pool


def _plan(run: Run) -> SyntheticPlan:
    """The paper's three critics, whatever the size of the judge, where the paper's setup is asked for."""
    limit = None if run.options.limit is None else 2 * run.options.limit
    return SyntheticPlan(limit=limit, critics="ratings" if run.table.as_paper else None)


@contextmanager
def _faq(run: Run, pool: Sequence[NewEntry], system: System) -> Iterator[ServedAnswers]:
    """An FAQ cache of the first `entries` of the pool, for as long as it is searched."""
    with tempfile.TemporaryDirectory() as place:
        faq = FaqCache(Path(place) / "faq.db")
        store = LocalVectorStore(Path(place) / "vectors", run.embedder.dimension)
        try:
            faq.add_all(pool[: system.options.get("entries")], by="kraq eval")
            yield _WithoutExactMatches(faq, store, run.embedder)
        finally:
            store.close()
            faq.close()


class _WithoutExactMatches(ServedAnswers):
    def exact(self, question: str) -> None:
        """None: the model looks even for a question that is there word for word, as the paper does."""


class _UnknowingProgram(dspy.Module):
    """Stands behind the FAQ cache and knows nothing."""

    async def aforward(self, question: str) -> dspy.Prediction:
        return dspy.Prediction(answer="", hits=[])

    forward = blocking(aforward)


def _look_up(run: Run, system: System, answers: ServedAnswers, models: LanguageModels) -> Work:
    """What looks a wording up, and makes a row of what it finds."""
    options = {name: system.options.get(name, default) for name, default in LOOK_UP.items()}
    search = QASearch(_UnknowingProgram(), answers, collect=False, **options)
    search.set_lm(models["answerer"])
    if run.table.as_paper:
        run.table.as_paper.give_prompts(search)
    prices = prices_of(models.settings)

    def work(example: Example) -> ResultRow:
        def row_of(prediction: dspy.Prediction) -> ResultRow:
            right = prediction.entry is not None and prediction.entry.question == example.metadata[ORIGINAL].strip()
            seconds = prediction.search.seconds
            return ResultRow(
                example.id,
                system.name,
                answer=prediction.answer,
                metrics={RIGHT: float(right)},
                timings={"faq": seconds, "total": seconds},
            )

        return measured(system.name, example, prices, lambda: search(question=example.question), row_of)

    return work


SHORT = 30
"""Most characters of a short rephrasing (QA search paper, section 4.2)."""

ORIGINAL = "original"
LIMITS = {"free": 0, "short": SHORT}


@dataclass(frozen=True)
class Rephrasing:
    """Words questions otherwise by a model. What it wrote is kept in `folder`, a file for each kind and count."""

    folder: Path
    lm: dspy.BaseLM
    concurrency: int = 8
    progress: Progress = field(default_factory=SilentProgress)
    rephrase: dspy.Predict = field(default_factory=lambda: dspy.Predict(RephraseQuestion))

    def of(self, examples: Sequence[Example], kind: str, count: int) -> list[Example]:
        """Return up to `count` wordings of each question, as questions of their own: the id is the
        question's with "#1" and so on behind it, and the question as it was is in `metadata`. What
        is too long, or the question itself, does not count, nor does a free wording without a
        question mark where the question has one: small models answer it. Raises ConfigError for an
        unknown kind."""
        if kind == ORIGINAL:
            return [_worded(example, 0, example.question) for example in examples]
        if kind not in LIMITS:
            known = ", ".join((ORIGINAL, *LIMITS))
            raise ConfigError(f"There is no phrasing {kind!r} of a question; there are: {known}.")

        def ask(example: Example) -> list[str]:
            reply = self.rephrase(question=example.question, count=count, most_characters=LIMITS[kind])
            texts = [" ".join(str(text).split()) for text in reply.rephrasings or ()]
            fitting = [text for text in texts if _fits(text, example.question, LIMITS[kind])]
            return list(dict.fromkeys(fitting))[:count]

        file, stage = self.folder / f"rephrased-{kind}-{count}.jsonl", f"rephrase, {kind}"
        wordings = kept_replies(file, stage, examples, ask, self.lm, at_once=self.concurrency, progress=self.progress)
        worded = []
        for example in examples:
            for number, text in enumerate(wordings[example.id], start=1):
                worded.append(_worded(example, number, text))
        return worded


def question_of(wording_id: str) -> str:
    """The id of the question that a wording is of."""
    return wording_id.rpartition("#")[0]


def _fits(text: str, question: str, most: int) -> bool:
    if not text or text == question or (most and len(text) > most):
        return False
    return bool(most) or text.endswith(MARKS) or not question.endswith(MARKS)


def _worded(example: Example, number: int, text: str) -> Example:
    about = {**example.metadata, ORIGINAL: example.question}
    return replace(example, id=f"{example.id}#{number}", question=text, metadata=about)
