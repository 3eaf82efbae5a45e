"""Asks a program what an index's questions ask, offline: each answer is in the FAQ cache before the next."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import dspy

from kraq_dspy._internal.concurrency import run_coroutine
from kraq_dspy.asset.store.faq import FaqCache, NewEntry, question_key
from kraq_dspy.asset.store.index import Index
from kraq_dspy.errors import IndexStateError
from kraq_dspy.indexing.faq.sources import present_sources
from kraq_dspy.models.lms.roles import LanguageModels, fill_in
from kraq_dspy.ports import Progress, SilentProgress
from kraq_dspy.programs.qa_search.program import failure_of, is_answered
from kraq_dspy.records import AnswerEvidence, Failure, Question
from kraq_dspy.steps.direct import Done, Item
from kraq_dspy.steps.kept import ProgramRunner

STAGE = "seed"


class AnswerKeeper:
    """Hands each prediction to `store`, which says whether it is an answer, and notes what failed: a `Keeper`."""

    def __init__(self, store: Callable[[str, dspy.Prediction], bool]) -> None:
        self.failures: list[Failure] = []
        self.counts = {True: 0, False: 0}
        self._store = store

    def find(self, item: Item) -> Done | None:
        """Nothing: what the FAQ cache has already is not among the items."""
        return None

    async def keep(self, item: Item, outcome: Done) -> None:
        if flaws := outcome.prediction.get("flaws"):  # a part of an answer is none to prepare
            self.fail(item.id, "; ".join(flaws))
            return
        # In a thread: another process that reviews may hold the FAQ cache for a moment.
        self.counts[await asyncio.to_thread(self._store, item.id, outcome.prediction)] += 1

    def fail(self, item_id: str, reason: str) -> None:
        self.failures.append(Failure(STAGE, item_id, reason))


@dataclass(frozen=True, slots=True)
class SeedReport:
    """`known` are questions that the FAQ cache had, or that somebody took out of it; they were not asked.
    `unanswered` ones got a reply that is no answer: they are in it now, pending. `calls` were paid for."""

    questions: int
    known: int
    answered: int
    unanswered: int
    calls: int
    failures: tuple[Failure, ...]


def seed_answers(
    index: Index,
    faq: FaqCache,
    program: dspy.Module,
    models: LanguageModels,
    *,
    by: str,
    questions: Sequence[Question] | None = None,
    limit: int | None = None,
    approve: bool = False,
    progress: Progress | None = None,
) -> SeedReport:
    """Ask the program what the FAQ cache does not have yet of `questions`, all KRAQ questions of the index unless they
    are given, at most `limit` of them.

    Answers wait for approval unless `approve`; they rest on the question's evidence and on what the program saw. What
    was answered is kept at once, so an interrupted run loses nothing. Raises IndexStateError for an index without
    questions, ModelError when nothing but failures happens, and lets KraqError (a spent budget, a server that is down)
    end the run.
    """
    to_answer = index.questions(source="kraq") if questions is None else questions
    questions_by_id = {question.id: question for question in to_answer}
    texts = {id: question.text for id, question in questions_by_id.items()}
    if not texts:
        index.require_documents()
        raise IndexStateError(f"{str(index.path)!r} has no questions. Finish it first: kraq index {index.path}")
    known = {*faq.known_keys(), ""}  # "" is the key of "?"
    new = {id: text for id, text in texts.items() if question_key(text) not in known}
    items = [Item(id, {"question": text}) for id, text in new.items()][:limit]
    numbers = {item.id: number for number, item in enumerate(items, start=faq.next_number())}

    def store(question_id: str, prediction: dspy.Prediction) -> bool:
        entry = _entry(index, questions_by_id[question_id], prediction, approve)
        entry = replace(entry, number=numbers[question_id])  # by the order of the questions, not of the answers
        faq.add_all([entry], by=by)
        return bool(entry.answer)

    keeper, progress, before = AnswerKeeper(store), progress or SilentProgress(), models.meter.total().calls

    async def ask() -> None:
        try:
            async for _ in ProgramRunner(models, progress).ask(STAGE, None, program, items, keeper, plural="questions"):
                pass
        finally:
            await models.aclose()

    fill_in(program, models)
    progress.start(STAGE, len(items))
    run_coroutine(ask())
    progress.finish(STAGE)
    return SeedReport(
        questions=len(texts),
        known=len(texts) - len(new),
        answered=keeper.counts[True],
        unanswered=keeper.counts[False],
        calls=models.meter.total().calls - before,
        failures=tuple(keeper.failures),
    )


def _entry(index: Index, asked: Question, prediction: dspy.Prediction, approve: bool) -> NewEntry:
    """The entry rests on the question's own evidence, and behind it on what the program found."""
    question, answer = asked.text, str(prediction.get("answer") or "").strip()
    hits = prediction.get("hits") or ()
    own = index.chunks_by_id(asked.evidence)
    chunks = {chunk.id: chunk for chunk in (*own, *(hit.chunk for hit in hits))}.values()
    evidence = tuple(map(AnswerEvidence.of, chunks))
    if not is_answered(prediction):
        response = str(prediction.get("response") or answer)
        return NewEntry(
            question, status="pending", origin="kraq", given=response, evidence=evidence,
            failure=failure_of(prediction),
        )  # fmt: skip
    sources = present_sources(index, [chunk.document_id for chunk in chunks])
    return NewEntry(question, answer, "approved" if approve else "pending", sources, "kraq", evidence=evidence)
