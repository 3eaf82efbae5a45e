"""Defines the steps of programs: predictors that fall back on the model of a role, take a signature of one's own, or
shorten their inputs; and tells calls that failed by themselves from those that end a run."""

import logging
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

import dspy
from dspy import ContextWindowExceededError
from dspy.utils.exceptions import DSPyError

from kraq_dspy._internal.both_ways import blocking, is_blocking
from kraq_dspy._internal.rag_prediction import RagPrediction
from kraq_dspy.errors import BudgetExceededError, ConfigError, ModelError, ServerDownError

logger = logging.getLogger(__name__)


class Fallback(Protocol):
    """The model of a step's role; `models.lms.roles.RoleModel` is one."""

    role: str

    def lm(self) -> Any: ...

    def filled_in(self, *, has_model: bool) -> AbstractContextManager[None]:
        """Inside, DSPy's settings have an adapter, and a model unless the step has one."""


class Step(dspy.Predict):
    """A `dspy.Predict` that asks the model of `by_role`, once that is set, where nobody named another.

    `models.lms.roles.fill_in` sets it; without it a step is a `dspy.Predict` like any.

    >>> step = Step("question -> answer")
    """

    by_role: Fallback | None = None

    def __init__(self, signature: Any, reads: Iterable[str] | None = None) -> None:
        """`reads` are the outputs that the program needs; all of `signature`'s if None."""
        super().__init__(signature)
        self.reads = tuple(self.signature.output_fields if reads is None else reads)

    def forward(self, **inputs: Any) -> Any:
        self._require_fields(inputs)
        with self._filled_in(inputs):
            return super().forward(**inputs)

    async def aforward(self, **inputs: Any) -> Any:
        self._require_fields(inputs)
        with self._filled_in(inputs):
            return await super().aforward(**inputs)

    def _require_fields(self, inputs: Mapping[str, Any]) -> None:
        """Raises ConfigError for a signature, set afterwards too, that lacks an output which the program reads or
        needs an input that is not given."""
        require_outputs(self.signature, self.reads)
        missing = [
            name for name, field in self.signature.input_fields.items() if field.is_required() and name not in inputs
        ]
        if missing:
            example = ", ".join(f"{name}=..." for name in missing)
            raise ConfigError(
                f"The signature {self.signature.__name__} needs the input {_quoted(missing)}, which was not "
                f"given. Give it with the question: program(question=..., {example}); or give the field a default."
            )

    def _filled_in(self, inputs: Mapping[str, Any]) -> AbstractContextManager[None]:
        if self.by_role is None:
            return nullcontext()
        return self.by_role.filled_in(has_model=self.lm is not None or inputs.get("lm") is not None)


SignatureLike = type[dspy.Signature] | str | None
"""A signature of one's own, instructions that replace those of the step's signature, or None for the step's own."""


def signature_for(default: type[dspy.Signature], own: SignatureLike) -> type[dspy.Signature]:
    """`own`, where one is given; a string is instructions, or a signature in DSPy's short form.

    Inputs that `default` does not have are given with the question: `program(question=..., audience=...)`. Raises
    ConfigError for a signature that lacks an output of `default`, all of which the program reads.

    >>> signature_for(dspy.Signature("question -> answer"), "Answer in one word.").instructions
    'Answer in one word.'
    """
    if own is None:
        return default

    if isinstance(own, str):
        is_short_form = re.fullmatch(r"[\w\s:,.\[\]]+->[\w\s:,.\[\]]+", own)
        own = dspy.Signature(own) if is_short_form else default.with_instructions(own)
    if not (isinstance(own, type) and issubclass(own, dspy.Signature)):
        raise ConfigError(f"signature is {own!r:.80}; expected a dspy.Signature, or a string of instructions.")
    require_outputs(own, default.output_fields)
    return own


def require_outputs(signature: type[dspy.Signature], reads: Iterable[str]) -> None:
    """Raise ConfigError for a signature that lacks one of the outputs that its program reads."""
    missing = [name for name in reads if name not in signature.output_fields]
    if missing:
        raise ConfigError(
            f"The signature {signature.__name__} returns no {_quoted(missing)}, which the program reads; it has "
            f"{_quoted(signature.output_fields)}. Add the output field."
        )


def further_inputs(step: dspy.Module, inputs: Mapping[str, Any], *filled: str) -> Mapping[str, Any]:
    """`inputs`, which were given with a question, for the step that reads them. The program fills in the inputs
    `filled` by itself.

    Raises ConfigError for one that the program fills in, and for one that the step's signature does not have: nobody
    would read it.
    """
    signature = getattr(step, "signature", None)
    known = signature.input_fields if signature is not None else {}

    taken = [name for name in inputs if name in filled]
    if taken:
        takes = _quoted(name for name in known if name not in ("question", *filled)) or "no others"
        raise ConfigError(
            f"The program fills in {_quoted(taken)} itself, from what it finds. With the question it takes {takes}. "
            "To answer from texts of your own, give it a retriever that returns them."
        )

    unknown = [name for name in inputs if name not in known]
    if unknown and signature is not None:  # a module of one's own takes what it takes
        raise ConfigError(
            f"The signature {signature.__name__} has no input {_quoted(unknown)}; it has "
            f"{_quoted(known)}. Give the program a signature that reads it: signature=..."
        )
    return inputs


def prediction(reply: Any, **own: Any) -> dspy.Prediction:
    """A program's prediction: the fields of its last reply, those of a signature of one's own among them, and `own`."""
    return RagPrediction(**{**dict(reply.items()), **own})


def _quoted(names: Any) -> str:
    return ", ".join(repr(name) for name in names)


BREAKS = (r"\n\s*\n", r"\n", r"(?<=[.!?。！？])\s*", r"\s+", r"")  # paragraph, line, sentence, word, anywhere


class FittingPredict(Step):
    """A `dspy.Predict` that shortens its inputs if the prompt is too long.

    If the model rejects a prompt as too long, the step calls the model again with the first half of an input. So each
    input should begin with the most important part, such as the best passage. If a list has one text left, the step
    halves that text. With several inputs in `shorten`, the step first shortens the first of them until nothing is
    left, then the next. The step logs what it cuts off. It raises ContextWindowExceededError if nothing is left to
    halve.

    >>> step = FittingPredict("passages, question -> answer", shorten="passages")
    """

    def __init__(self, signature: Any, shorten: str, *then: str, reads: Iterable[str] | None = None) -> None:
        super().__init__(signature, reads)
        self.shorten = (shorten, *then)

    async def aforward(self, **inputs: Any) -> Any:
        while True:
            try:
                return super().forward(**inputs) if await is_blocking() else await super().aforward(**inputs)
            except ContextWindowExceededError as error:
                inputs = self._shorter(inputs, error)

    forward = blocking(aforward)

    def _shorter(self, inputs: dict[str, Any], error: ContextWindowExceededError) -> dict[str, Any]:
        for name in self.shorten:
            whole = inputs[name]
            shorter = _first_half(whole)
            if shorter or (whole and name != self.shorten[-1]):
                is_one_text = isinstance(whole, str) or len(shorter) == len(whole) == 1
                before, after = ("".join(whole), "".join(shorter)) if is_one_text else (whole, shorter)
                unit = "characters" if is_one_text else "entries"
                logger.warning("%s: too long; continuing with %d of %d %s", name, len(after), len(before), unit)
                return {**inputs, name: shorter}
        raise error


def fitting_step(default: type[dspy.Signature], own: SignatureLike, *shorten: str) -> FittingPredict:
    """The step of a program that people may give a signature of their own: `own` in the place of `default`.

    >>> fitting_step(dspy.Signature("passages, question -> answer"), "Answer in one word.", "passages").reads
    ('answer',)
    """
    return FittingPredict(signature_for(default, own), *shorten, reads=default.output_fields)


def _first_half(whole: Any) -> Any:
    """Empty when there is nothing left to cut."""
    if isinstance(whole, str):
        return halves(whole)[0]
    if len(whole) == 1 and isinstance(whole[0], str):
        return [half] if (half := halves(whole[0])[0]) else []
    return whole[: len(whole) // 2]


def halves(text: str) -> tuple[str, str]:
    """The text cut near its middle: between paragraphs if that leaves a quarter on both sides, else between lines,
    sentences or words. Together they are the text, white space at the cut apart; ("", text) when it cannot be cut."""
    text = text.strip()
    low, high = len(text) // 4, len(text) - len(text) // 4
    for pattern in BREAKS:
        cuts = [cut for cut in re.finditer(pattern, text) if low <= cut.end() <= high]
        cuts = [cut for cut in cuts if cut.start() > 0 and cut.end() < len(text)]
        if cuts:
            cut = min(cuts, key=lambda cut: abs(cut.end() - len(text) / 2))
            return text[: cut.start()], text[cut.end() :]
    return "", text


CALL_ERRORS = (DSPyError, ModelError)
"""What a call of a model may raise: a refusal, a reply that cannot be read, a prompt that is too long."""


def raise_if_final(error: BaseException) -> None:
    """Raise what lies behind a model error if no other call can succeed either: a spent budget, a server that is
    down."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, BudgetExceededError | ServerDownError):
            raise cause
        cause = cause.__cause__


def without_advice(error: BaseException) -> str:
    """The error's message without the general advice that DSPy's errors of models end with ("To fix: ...")."""
    return re.split(r"\n[ \t]*To fix:", str(error))[0].strip()


def in_one_line(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__}: {without_advice(error)}".split())


def log_failure(logger: logging.Logger, what: str, error: BaseException) -> None:
    """Warn that a call failed which its caller can do without. Raises what ends a run, as `raise_if_final`."""
    raise_if_final(error)
    logger.warning("%s: %s", what, in_one_line(error))


AGAIN = 2
"""How often a model is asked once more."""


def instructions_of(module: dspy.Module) -> str:
    """What the predictors of a module tell their model, one after the other."""
    return "\n".join(predictor.signature.instructions for predictor in module.predictors())


def attempts(again: int = AGAIN) -> Iterator[dict[str, Any]]:
    """Yield what a call takes beside its inputs, for the first one and for each further one."""
    yield {}
    for number in range(1, 1 + again):
        yield {"config": {"temperature": 1.0, "rollout_id": number}}
