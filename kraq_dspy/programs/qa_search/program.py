"""Puts QA search before any program: a question that was answered before gets the answer that was prepared.

The paper's Algorithm 1, with three things of our own: candidates narrowed by embedding, a second look at what was
found, and a record of what the program behind it failed at.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from time import perf_counter
from typing import Any, Literal

import dspy
from dspy import ContextWindowExceededError
from dspy.utils.exceptions import AdapterParseError

from kraq_dspy._internal.both_ways import call
from kraq_dspy._internal.clock import announce
from kraq_dspy._internal.options import require_options
from kraq_dspy._internal.rag_prediction import RagPrediction
from kraq_dspy._internal.step import CALL_ERRORS, Step, log_failure, prediction as prediction_of, raise_if_final
from kraq_dspy.errors import ConfigError, counted
from kraq_dspy.language.declining import declines
from kraq_dspy.ports import PreparedAnswers as PreparedAnswers
from kraq_dspy.programs.qa_search.near_miss import contradiction
from kraq_dspy.records import AnswerEvidence, FaqEntry, Hit
from kraq_dspy.signatures import ConfirmSameQuestion, FindSameQuestion
from kraq_dspy.spec import Note, ProgramSpec, Space, option
from kraq_dspy.state import SavableModule

logger = logging.getLogger(__name__)

SCANS = ("narrow", "nearest", "full", "exhaustive")
BY_EMBEDDING = ("narrow", "nearest")
CHECKS = ("model", "rules", "none")
NO_MATCH = -1

BROKE_OFF, NOTHING_FOUND, NO_ANSWER, REJECTED = FAILURES = ("broke off", "nothing found", "no answer", "rejected")
"""A call failed; no passage was found; it had passages and gave no answer; it judged its own answer wrong."""


@dataclass(frozen=True, slots=True)
class Rejected:
    """A matching entry that a later check rejected, and the reason."""

    entry: FaqEntry
    reason: str


@dataclass(slots=True)
class FaqSearch:
    """How kraq searched the FAQ cache for a question.

    Attributes:
        exact: whether the cache has the question word for word. Then kraq calls no model.
        blocks: the number of blocks of entries that the model saw.
        calls: the number of model calls.
        invalid: replies that name no entry of their block.
        failed: calls without a reply.
        rejected: matching entries that a later check rejected.
        collected: whether kraq added the question for review.
        seconds: the time of the search.
    """

    exact: bool = False
    blocks: int = 0
    calls: int = 0
    invalid: int = 0
    failed: int = 0
    rejected: list[Rejected] = field(default_factory=list)
    collected: bool = False
    seconds: float = 0.0


@dataclass(frozen=True)
class QASearchOptions:
    over: str = option("traditional", "Program that answers if no answer is prepared.")
    block: int = option(100, "FAQ cache questions that the model sees at once.", least=1)
    scan: Literal["narrow", "nearest", "full", "exhaustive"] = option(
        "narrow",
        "narrow (a block of the nearest questions), nearest (the one nearest, unasked), full (block by block up to a "
        "match) or exhaustive (all blocks).",
    )
    similarity: float = option(
        0.0, "Cosine similarity that a question needs to be looked at (narrow, nearest).", least=0, most=1
    )
    check: Literal["model", "rules", "none"] = option("model", "Against near-misses: model, rules or none.")
    collect: bool = option(True, "Note questions without an answer, for review.")


class QASearch(SavableModule):
    """Looks a question up in an FAQ cache. If the cache has no answer, `program` answers (QA search paper, Algorithm
    1).

    Args:
        program: answers if the FAQ cache has no answer.
        answers: the FAQ cache (`space.answers`).
        block: the number of entries that the model sees in one call, 1 or more.
        scan: which entries the model sees: "narrow", "nearest", "full" or "exhaustive".
        check: how a match is confirmed: "model", "rules" or "none".
        collect: add questions that the program cannot answer to the FAQ cache, for review (docs/guide/qa_search.md).
        similarity: the least cosine of an entry, in [0, 1]; for "narrow" and "nearest".

    Raises:
        ConfigError: for an unknown `scan` or `check`, a similarity without embeddings, and a program that searches
            this FAQ cache already.
        ValueError: for a `block` below 1.

    If the FAQ cache has the question word for word, kraq calls no model. Otherwise the model sees numbered questions.
    It replies with the number of the question that means the same, or with -1. `scan` chooses the numbered questions:

    - "narrow": the `block` entries nearest by embedding, in one call;
    - "nearest": no call; the nearest entry is the match;
    - "full", as in the paper: one block after the other, until a block has a match;
    - "exhaustive": all blocks; the first match counts.

    Then kraq checks the found match. With `check="rules"`, rules reject a match with another number or name. With
    `check="model"`, the model also compares the two questions. If the check rejects a match, kraq asks the model
    again about the other questions of the block.

    The prediction of a match has the stored `answer` and no `hits`. Without a match, the prediction is that of
    `program`. In both cases the prediction also has `source` ("faq" or "program"), `entry` (None without a match) and
    `search` (a `FaqSearch`).

    >>> from kraq_dspy import Workspace
    >>> space = Workspace.open("ada.kraq")
    >>> space.ask("Where did Ada live?", QASearch(space.program("traditional"), space.answers)).source
    'program'
    """

    def __init__(
        self,
        program: dspy.Module,
        answers: PreparedAnswers,
        block: int = QASearchOptions.block,
        scan: str = "narrow",
        check: str = "model",
        collect: bool = True,
        similarity: float = 0.0,
    ) -> None:
        super().__init__()
        require_options(QASearchOptions, block=block, similarity=similarity)
        for value, known, what in ((scan, SCANS, "scan"), (check, CHECKS, "check")):
            if value not in known:
                raise ConfigError(f"There is no {what} {value!r} of QA search; there are: {', '.join(known)}.")

        if similarity > 0 and scan not in BY_EMBEDDING:
            raise ConfigError(
                f"QA search with the scan {scan!r} embeds nothing, so it knows no similarity: leave it out, or choose "
                f"the scan {' or '.join(map(repr, BY_EMBEDDING))}."
            )

        for _, inner in program.named_sub_modules(QASearch):
            if inner.answers is answers:
                raise ConfigError("The program searches this FAQ cache already: wrap it once.")

        self.program = program
        self.answers = answers
        self.block = block
        self.scan = scan
        self.check = check
        self.collect = collect
        self.similarity = similarity
        self.find = Step(FindSameQuestion)
        self.confirm = Step(ConfirmSameQuestion)

    async def aforward(self, question: str, **inputs: Any) -> dspy.Prediction:
        started = perf_counter()
        await announce("searching prepared answers")
        search = FaqSearch()
        entry = await self._look_up(question, search)
        search.seconds = perf_counter() - started
        if entry is not None:
            timings = {"faq": search.seconds, "wall": search.seconds}
            return RagPrediction(
                answer=entry.answer, hits=[], source="faq", entry=entry, search=search, timings=timings
            )

        try:
            prediction = await call(self.program, question=question, **inputs)
        except CALL_ERRORS as error:
            await call(self._note, question, None, search, error)
            raise

        await call(self._note, question, prediction, search)
        merged = prediction_of(prediction, source="program", entry=None, search=search)
        inner = prediction.get("timings")
        if inner is None or isinstance(inner, Mapping):
            merged.timings = {**(inner or {}), "faq": search.seconds, "wall": perf_counter() - started}
        return merged

    async def _look_up(self, question: str, search: FaqSearch) -> FaqEntry | None:
        """The entry, if one passes: asks which of a block's means the same, then whether it really
        does."""
        blocks = await call(self._blocks, question, search)
        if search.exact:
            entry: FaqEntry = blocks[0][0]
            return entry
        if self.scan != "nearest":
            return await self._scan_blocks(question, blocks, search)

        nearest = blocks[0][0] if blocks else None
        return nearest if nearest and await self._passes(question, nearest, search) else None

    async def _scan_blocks(self, question: str, blocks: list[Sequence[FaqEntry]], search: FaqSearch) -> FaqEntry | None:
        """The first entry that the model names and that passes. A block that is too long is halved;
        what is left of one after a rejection is asked about once more."""
        first: FaqEntry | None = None
        again = False  # whether the next block is what was left of one after a rejection
        while blocks:
            block = blocks.pop(0)
            search.blocks += not again
            search.calls += 1
            listed = [numbered(entry.number, entry.question) for entry in block]
            reply = await _reply(self.find, question=question, catalogue=listed)
            if isinstance(reply, ContextWindowExceededError) and len(block) > 1:
                half = len(block) // 2
                blocks[:0] = [block[:half], block[half:]]
                search.blocks -= not again
                continue

            named = _named(reply, block, search)
            if named is not None and await self._passes(question, named, search):
                if self.scan != "exhaustive":
                    return named
                first = first or named
                again = False
                continue

            left = [other for other in block if other is not named]
            again = named is not None and not again and bool(left)
            if again:
                blocks.insert(0, left)
        return first

    async def _passes(self, question: str, entry: FaqEntry, search: FaqSearch) -> bool:
        """Whether the entry's answer would do; where it would not, the reason is in `search.rejected`."""
        objection = None if self.check == "none" else contradiction(question, entry.question)
        if objection is None and self.check == "model":
            search.calls += 1
            reply = await _reply(self.confirm, first_question=question, second_question=entry.question)
            if isinstance(reply, Exception):
                search.failed += 1
                objection = "the second look failed"
            elif reply.same is not True:
                objection = "the model says that they ask for different things"

        if objection is not None:
            search.rejected.append(Rejected(entry, objection))
            logger.info("Entry %d is no match: %s", entry.number, objection)
        return objection is None

    def _blocks(self, question: str, search: FaqSearch) -> list[Sequence[FaqEntry]]:
        """Return what is to be asked about; the entry alone where the question is there word for
        word, noted in `search`."""
        if not question.strip():
            raise ValueError("The question is empty.")

        exact = self.answers.exact(question)
        if exact is not None:
            search.exact = True
            return [[exact]]
        if self.scan in BY_EMBEDDING:
            count = self.block if self.scan == "narrow" else 1
            nearest = self.answers.nearest(question, count, self.similarity)
            return [nearest] if nearest else []
        entries = self.answers.entries()
        return [entries[start : start + self.block] for start in range(0, len(entries), self.block)]

    def _note(
        self, question: str, prediction: dspy.Prediction | None, search: FaqSearch, error: Exception | None = None
    ) -> None:
        """Put a question that was not answered on the list for review."""
        if not self.collect or (prediction is not None and is_answered(prediction)):
            return

        if error is not None:
            raise_if_final(error)  # a server that is down says nothing of the question
        hits: Sequence[Hit] = () if prediction is None else prediction.get("hits") or ()
        evidence = [AnswerEvidence.of(hit.chunk) for hit in hits]
        response = "" if prediction is None else str(prediction.get("response") or prediction.get("answer") or "")
        self.answers.collect(question, response, evidence, failure_of(prediction))
        search.collected = True


def is_answered(prediction: dspy.Prediction) -> bool:
    """Whether it has an answer that neither says that it does not know nor is judged wrong by the program itself."""
    return not declines(str(prediction.get("answer") or "")) and prediction.get("valid") is not False


def failure_of(prediction: Any) -> str:
    """Tell how a program ended that did not answer; None stands for one that broke off."""
    if prediction is None:
        return BROKE_OFF
    if prediction.get("valid") is False:
        return REJECTED
    return NO_ANSWER if prediction.get("hits") else NOTHING_FOUND


def _named(reply: "dspy.Prediction | Exception", block: Sequence[FaqEntry], search: FaqSearch) -> FaqEntry | None:
    """The entry of the block that the reply names, None if it names none; counts what is no reply."""
    by_number = {entry.number: entry for entry in block}
    if isinstance(reply, AdapterParseError):
        search.invalid += 1
        return None
    if isinstance(reply, Exception):
        search.failed += 1
        return None

    search.invalid += reply.number not in (NO_MATCH, *by_number)
    return by_number.get(reply.number)


def numbered(number: int, question: str) -> str:
    """Tell how the model sees an FAQ cache's question: on one line, after its number."""
    return f"{number}: {' '.join(question.split())}"


async def _reply(step: dspy.Module, **inputs: Any) -> "dspy.Prediction | Exception":
    """The model's reply, or what went wrong with this call alone."""
    try:
        return await call(step, **inputs)
    except CALL_ERRORS as error:
        log_failure(logger, "A look into the FAQ cache failed", error)
        return error


def make_qa_search(space: Space, program: dspy.Module, options: QASearchOptions) -> QASearch:
    own = {name: value for name, value in asdict(options).items() if name != "over"}
    return QASearch(program, space.answers, **own)


def notes(answer: dspy.Prediction) -> Iterator[Note]:
    """Return the matching entry with its sources, the rejected entries, and whether the question
    was noted."""
    search, entry = answer.search, answer.entry
    if entry is not None:
        how = "word for word" if search.exact else counted(search.calls, "call")
        yield Note(f"entry {entry.number}, version {entry.version} ({how}): ", entry.question, tone="found")
        if entry.sources:
            yield Note("from ", ", ".join(source.document_id for source in entry.sources), 300)
    else:
        yield Note(f"not in the FAQ cache: {counted(search.blocks, 'block')}, {counted(search.calls, 'call')}")

    for rejected in search.rejected:
        label = f"  entry {rejected.entry.number} is another question: "
        yield Note(label, f"{rejected.entry.question} ({rejected.reason})", 240, "doubtful")
    if search.invalid or search.failed:
        bad = f"replies that named no entry: {search.invalid}, calls that failed: {search.failed}"
        yield Note(bad, tone="doubtful")
    if search.collected:
        yield Note("noted for review: kraq serve DIR --open --edit")


QA_SEARCH = ProgramSpec(
    "qa-search",
    "A prepared answer; without one, another program answers.",
    make_qa_search,
    "QASearch",
    QASearchOptions,
    takes="program",
    measured={"collect": False},
    keys=("source", "entry", "search"),
    notes=notes,
    source="QA search paper, Algorithm 1",
)
