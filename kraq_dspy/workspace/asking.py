"""Asks programs about an index: at once or in an event loop, whole or as the answer comes."""

import logging
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import dspy
from dspy.streaming import StatusMessage, StreamResponse

from kraq_dspy._internal.both_ways import call, each, is_blocking, parts_of
from kraq_dspy._internal.clock import answer_listeners
from kraq_dspy._internal.rag_prediction import RagPrediction
from kraq_dspy.asset.corpus.normalise import normalised
from kraq_dspy.errors import ConfigError, KraqError, UnknownRecordError
from kraq_dspy.indexing.faq.evidence import evidence_for
from kraq_dspy.models.lms.envelope import Flaw, flaws_heard, with_flaws
from kraq_dspy.models.lms.roles import answerer_for, fill_in, own_adapter
from kraq_dspy.programs.conversation import HistoryLike, StandaloneQuestion
from kraq_dspy.records import Chunk, Hit
from kraq_dspy.retrievers.hits import hits_checked_by
from kraq_dspy.spec import options_of
from kraq_dspy.workspace.choices import DEFAULT_PROGRAM, choose_program
from kraq_dspy.workspace.choosing import ProgramMaker
from kraq_dspy.workspace.not_searched import asked_for_name, without_search
from kraq_dspy.workspace.refusing import Answerability, AnswerabilityJudge, refusal
from kraq_dspy.workspace.suggesting import STARTERS, SuggestedQuestion, next_questions, offered_questions, starters

logger = logging.getLogger(__name__)

NEXT = 3
"""Questions that are suggested after an answer."""

PARTS = (StatusMessage, StreamResponse)
"""What comes of a streamed answer before its prediction."""


@dataclass(frozen=True, slots=True)
class Request:
    """A question to `Workspace.ask`, and how to answer it.

    Args:
        question: the question.
        program: the name of a program, or a module that takes `question`.
        history: the conversation before the question, the oldest turn first. The model of the role "rewriter"
            completes the question. The program gets the complete question; the prediction has it as
            `standalone_question`.
        next_questions: the most questions to offer with the answer.
        refuse: refuse a question that the documents do not answer, without calling the program. The prediction of a
            refusal (`is_refusal`) has the nearest answerable questions as `next_questions`.
        anyway: pass thanks, greetings, and questions about an unnamed "he" or "she" to the program. Otherwise kraq
            replies to these itself.
        inputs: further inputs of the program and its signature.

    >>> Request("Where was he born?", history=[("Who wrote Don Juan?", "Lord Byron.")]).next_questions
    3
    """

    question: str
    program: dspy.Module | str = DEFAULT_PROGRAM
    history: HistoryLike = None
    next_questions: int = NEXT
    refuse: bool = False
    anyway: bool = False
    inputs: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, question: "str | Request", program: dspy.Module | str, options: Mapping[str, Any]) -> "Request":
        """The request; or one of a question, whose `options` that are no field are inputs of the program."""
        if isinstance(question, Request):
            return question
        own = {name: value for name, value in options.items() if name in cls.__slots__}
        inputs = {name: value for name, value in options.items() if name not in own}
        return cls(question, program, **{**own, "inputs": {**own.get("inputs", {}), **inputs}})


class Answering(ProgramMaker):
    """An opened index that is asked, and that suggests what to ask it."""

    @cached_property
    def _programs(self) -> dict[str, dspy.Module]:
        """Those that `ask` made, by name."""
        return {}

    def ask(
        self, question: "str | Request", program: dspy.Module | str = DEFAULT_PROGRAM, **options: Any
    ) -> dspy.Prediction:
        """Answer a question with a program, or with a program of this name; by default with
        "traditional".

        >>> space.ask("Who wrote Don Juan?").answer  # doctest: +SKIP
        >>> space.ask("Who wrote Don Juan?", program="speculative")  # doctest: +SKIP
        >>> space.ask("Who wrote Don Juan?", MyRAG(space.retriever("adaptive")))  # doctest: +SKIP
        >>> said = [("Who wrote Don Juan?", "Lord Byron.")]
        >>> space.ask("Where was he born?", history=said).standalone_question  # doctest: +SKIP
        'Where was Lord Byron born?'

        Args:
            question: what is asked, or a whole `Request`, which says the rest itself.
            program: a name (`programs`), or a module of your own that takes `question`.
            **options: the other fields of `Request`, such as `history` and `refuse`. What is none
                of them is an input of the program and its signature.

        Returns:
            The program's prediction, with `next_questions` and `answerable`.

        Your own module calls its own models; without them, those of `dspy.context` or
        `dspy.configure`, then the workspace's answerer.

        The prediction has `flaws` (in words) if a reply behind it was cut off, withheld or only
        partly readable. Its `next_questions`, at most as many as you ask for, are questions that
        the index answers (`SuggestedQuestion`). `answerable` says whether the documents answer the
        complete question, by the `answerable_score`; both are None if the index has no threshold.

        Nothing is searched for thanks and greetings, which get a word in return, nor for "Where was
        he born?" if nobody was named: the answer asks for the name. Such a prediction has no hits,
        and `source` says which of the two it is ("social", "asks back"). With `anyway`, the program
        sees these too.
        """
        prediction: dspy.Prediction
        *_, prediction = each(self._answered(Request.of(question, program, options)))
        return prediction

    async def aask(
        self, question: "str | Request", program: dspy.Module | str = DEFAULT_PROGRAM, **options: Any
    ) -> dspy.Prediction:
        """Do the same as `ask` in an event loop. If you cancel it, it cancels the model's calls
        in flight."""
        prediction: dspy.Prediction
        async with aclosing(self._answered(Request.of(question, program, options))) as values:
            *_, prediction = [value async for value in values]
        return prediction

    def stream(
        self, question: "str | Request", program: dspy.Module | str = DEFAULT_PROGRAM, **options: Any
    ) -> Iterator[Any]:
        """Answer as `ask` does, as it comes: a `dspy.streaming.StatusMessage` for each stage, then
        the answer's text, as the model writes it, in `StreamResponse`s, and at last the prediction.

        Text that is chosen among drafts, or that lay ready, comes with the prediction alone.
        """
        return each(self._answered(Request.of(question, program, options), is_streamed=True))

    def astream(
        self, question: "str | Request", program: dspy.Module | str = DEFAULT_PROGRAM, **options: Any
    ) -> AsyncGenerator[Any, None]:
        """Do as `stream` does, in an event loop, for one task to listen to. To close it
        (`contextlib.aclosing`) or to cancel the task ends the program, and cancels the model's
        calls in flight."""
        return self._answered(Request.of(question, program, options), is_streamed=True)

    async def _answered(self, asked: "Request", is_streamed: bool = False) -> AsyncGenerator[Any, None]:
        """Yield what comes of a streamed answer, and at last the prediction: the one body of all four ways to ask."""
        _require_inputs(asked.program, asked.inputs)
        with self._asking(asked) as (question, program, flaws):
            reply = None if asked.anyway else without_search(question)
            if reply is not None:
                yield reply
                return

            if asked.history and is_streamed:
                yield StatusMessage("completing the question")
            complete = await call(self._standalone, question, asked.history)
            if not asked.anyway and (asks_back := asked_for_name(complete)) is not None:
                yield asks_back
                return

            judged = await call(self.answerability, complete.question) if asked.refuse else None
            if judged is not None and judged.is_answerable is False:
                yield await call(self._refused, complete, judged)
                return

            inputs = {"question": complete.question, **asked.inputs}
            if is_streamed:
                async with aclosing(_streamed(program, inputs)) as values:
                    async for value in values:
                        if isinstance(value, PARTS):
                            yield value
                        else:
                            prediction = value
            else:
                prediction = _required(program, await call(program, **inputs))
            yield await call(self._followed, with_flaws(prediction, flaws), complete, judged, asked.next_questions)

    def prepared(self, question: str) -> dspy.Prediction | None:
        """The FAQ cache's approved answer to a question that is there word for word, with its passages; None without.

        `kraq faq seed DIR --starters 12 --approve` prepares those to the starters, and `kraq ask`
        and `serve` give them at once if nobody chose a program.

        >>> space.prepared(space.starters(1)[0].text).hits  # doctest: +SKIP
        """
        self.require_scope()
        question = normalised(question)
        entry = self.answers.exact(question) if self.has_answers else None
        if entry is None:
            return None
        try:
            chunks = self.index.get(Chunk, [each.chunk_id for each in evidence_for(self.index, entry)])
        except UnknownRecordError:  # its documents were cut anew
            chunks = []
        hits = [Hit(chunk, 1.0, question, "prepared") for chunk in chunks]
        prediction = RagPrediction(answer=entry.answer, hits=hits, entry=entry, source="faq")
        prediction = self._followed(prediction, dspy.Prediction(question=question, asked=question), None, NEXT)
        prediction.answerable = True  # somebody approved the answer
        return prediction

    def answerability(self, question: str) -> Answerability:
        """Whether the documents answer a question that stands alone; no language model is asked.

        >>> from kraq_dspy import Workspace
        >>> with Workspace.open("ada.kraq") as space:
        ...     space.answerability("Where did Ada live?").is_answerable
        True

        Raises ScopeError as `ask` does.
        """
        self.require_scope()
        return self._judge(normalised(question))

    def answerabilities(self, questions: Sequence[str]) -> list[Answerability]:
        """Tell of many questions at once what `answerability` tells of each, in their order.

        >>> from kraq_dspy import Workspace
        >>> with Workspace.open("ada.kraq") as space:
        ...     [each.is_answerable for each in space.answerabilities(["Where did Ada live?"])]
        [True]

        Raises ScopeError as `ask` does.
        """
        self.require_scope()
        return self._judge.judge([normalised(question) for question in questions])

    @property
    def refuses(self) -> bool:
        """Whether front doors refuse what the documents do not answer: what the settings say."""
        return self.models.settings.refusals.refuse

    @cached_property
    def _judge(self) -> AnswerabilityJudge:
        return AnswerabilityJudge(self.index, self.embedder, self.models.settings.refusals.threshold)

    def _refused(self, complete: dspy.Prediction, judged: Answerability) -> dspy.Prediction:
        """The refusal of a question that the documents do not answer, with what they do."""
        prediction = _with_answerability(refusal(self.index, complete.question, judged), judged)
        if complete.question != complete.asked:
            prediction.standalone_question = complete.question

        offers = self.models.settings.refusals.offers
        offered = offered_questions(
            self.index,
            self.questions(),
            self._judge.holds,
            complete.question,
            offers,
        )
        prediction.next_questions = tuple(offered)
        self._look_at_hits_of(prediction)
        return prediction

    def starters(self, count: int = STARTERS) -> list[SuggestedQuestion]:
        """Questions to begin with: each answerable here, no two alike, together covering most of the corpus."""
        return starters(self.index, count)

    @cached_property
    def _standalone(self) -> StandaloneQuestion:
        """What makes a question of a conversation complete."""
        step = StandaloneQuestion()
        self.require_readable_states()
        fill_in(step, self.models, "rewriter")
        return step

    def _followed(
        self, prediction: dspy.Prediction, complete: dspy.Prediction, judged: Answerability | None, count: int
    ) -> dspy.Prediction:
        """The prediction with its `standalone_question`, if it is another than was asked, whether it is `answerable`,
        and its `next_questions`. `judged` is what the question was found to be before it was answered, if it was.

        There are no next questions if the index cannot tell them, since it has answered. Raises ScopeError for a hit
        that may not be read, wherever the program has it from.
        """
        self._look_at_hits_of(prediction)
        prediction = RagPrediction.of(prediction)
        if complete.question != complete.asked:
            prediction.standalone_question = complete.question
        prediction = _with_answerability(prediction, judged or self.answerability(complete.question))
        if count:
            hits = prediction.get("hits") or ()
            try:
                following = next_questions(
                    self.index,
                    self.questions(),
                    complete.question,
                    count,
                    evidence=hits,
                )
                prediction.next_questions = tuple(following)
            except KraqError as error:
                logger.info("There are no next questions: %s", error)
                prediction.next_questions = ()
        return prediction

    def _look_at_hits_of(self, prediction: dspy.Prediction) -> None:
        """Raises ScopeError for one that may not be read."""
        if self.check is not None:
            self.check([hit for hit in prediction.get("hits") or () if isinstance(hit, Hit)])

    @contextmanager
    def _asking(self, asked: "Request") -> Iterator[tuple[str, dspy.Module, list[Flaw]]]:
        """The question as texts are kept here, the program itself, and the flaws of the replies behind its answer."""
        question, program = asked.question, asked.program
        if not isinstance(question, str) or not isinstance(program, dspy.Module | str):
            raise ConfigError(
                f"ask takes a question in text, then a program; found {question!r:.80} and {program!r:.80}."
            )

        self.require_scope()
        if isinstance(program, str):
            if program not in self._programs:
                self._programs[program] = self.program(program)
            program = self._programs[program]

        with (
            own_adapter(),
            answerer_for(program, self.models),
            hits_checked_by(self.check),
            flaws_heard() as flaws,
        ):
            yield normalised(question), program, flaws


def _require_inputs(program: dspy.Module | str, inputs: Mapping[str, Any]) -> None:
    """Raises ConfigError for what is an option of the program, and no input of its signature."""
    options = options_of(choose_program(program).answering.spec.options) if isinstance(program, str) else {}
    if given := [f"{name}={value!r}" for name, value in inputs.items() if name in options]:
        listed = ", ".join([repr(program), *given])
        raise ConfigError(
            f"{given[0].partition('=')[0]!r} is an option of the program {program!r}. Make the program with it: "
            f"space.ask(question, space.program({listed}))."
        )


def _with_answerability(prediction: dspy.Prediction, judged: Answerability) -> dspy.Prediction:
    prediction.answerable, prediction.answerable_score = judged.is_answerable, judged.score
    return prediction


async def _streamed(program: dspy.Module, inputs: Mapping[str, Any]) -> AsyncGenerator[Any, None]:
    """Yield what comes before the program's prediction, and the prediction."""
    blocks = await is_blocking()
    streamed = dspy.streamify(
        _Predicting(program),
        stream_listeners=answer_listeners(program),
        is_async_program=not blocks and hasattr(program, "aforward"),
        async_streaming=not blocks,
    )
    async with aclosing(parts_of(streamed(**inputs))) as values:
        async for value in values:
            if isinstance(value, (dspy.Prediction, *PARTS)):
                yield value


@dataclass(frozen=True, slots=True)
class _Predicting:
    """A program that fails where it returns no prediction: DSPy's stream ends with one, and would wait for it forever.

    It has of a module what `dspy.streamify` calls.
    """

    program: dspy.Module

    def __call__(self, **inputs: Any) -> dspy.Prediction:
        return _required(self.program, self.program(**inputs))

    async def acall(self, **inputs: Any) -> dspy.Prediction:
        return _required(self.program, await self.program.acall(**inputs))

    def named_predictors(self) -> list[tuple[str, dspy.Predict]]:
        named: list[tuple[str, dspy.Predict]] = self.program.named_predictors()
        return named


def _required(program: dspy.Module, returned: Any) -> dspy.Prediction:
    """What the program returned. Raises ConfigError for anything but a prediction."""
    if isinstance(returned, dspy.Prediction):
        return returned
    raise ConfigError(
        f"The program {type(program).__name__} returned {returned!r:.80}; expected a dspy.Prediction. End its forward "
        "with: return dspy.Prediction(answer=...)."
    )
