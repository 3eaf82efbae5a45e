"""Lets any step of a program be swapped: says what its place fills and reads, and takes over what else it returns.

A program declares its steps in `asks`, by attribute: `{"answer": "question, passages -> answer"}` says that the program
fills `question` and `passages` and reads `answer`. A signature, a predictor or a module that fits may stand there.
"""

import inspect
import re
from collections.abc import Iterable, Mapping
from typing import Any

import dspy

from kraq_dspy._internal.step import FittingPredict
from kraq_dspy.errors import ConfigError
from kraq_dspy.signatures import AnswerAndExplain, AnswerQuestion

SignatureLike = type[dspy.Signature] | str | None
"""A signature of one's own, instructions that replace those of the step's signature, or None for the step's own."""

_FIELDS = r"\s*\w+(?:\s*:\s*[\w\[\]., ]+)?(?:\s*,\s*\w+(?:\s*:\s*[\w\[\]., ]+)?)*\s*"
_LINE = re.compile(f"{_FIELDS}->{_FIELDS}")


def signature_for(default: type[dspy.Signature], own: SignatureLike) -> type[dspy.Signature]:
    """`own`, where one is given; a string is instructions, or a signature in DSPy's short form.

    >>> signature_for(dspy.Signature("question -> answer"), "Answer in one word.").instructions
    'Answer in one word.'
    """
    if own is None:
        return default
    if isinstance(own, str):
        chosen: type[dspy.Signature] = dspy.Signature(own) if _LINE.fullmatch(own) else default.with_instructions(own)
        return chosen
    if not _is_signature(own):
        raise ConfigError(f"signature is {own!r:.80}; expected a dspy.Signature, or a string of instructions.")
    return own


def extra_outputs(reply: Any, *read: str) -> dict[str, Any]:
    """What the reply has beside the fields that the program reads, and beside log-probabilities.

    >>> extra_outputs(dspy.Prediction(answer="Bonn", mood="sure"), "answer")
    {'mood': 'sure'}
    """
    return {name: value for name, value in reply.items() if name not in read and name != "logprobs"}


def lists_of(extras: Iterable[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """The extra outputs of a step that was asked several times: a list for each, in the order of the calls.

    >>> lists_of([{"mood": "sure"}, {"mood": "unsure"}])
    {'mood': ['sure', 'unsure']}
    """
    lists: dict[str, list[Any]] = {}
    for one in extras:
        for name, value in one.items():
            lists.setdefault(name, []).append(value)
    return lists


def prediction(*extras: Mapping[str, Any], **own: Any) -> dspy.Prediction:
    """A program's prediction: its own fields, and the extra outputs of its steps under names that are not taken."""
    fields: dict[str, Any] = {}
    for one in extras:
        fields.update(one)
    return dspy.Prediction(**{**fields, **own})


def check_steps(program: dspy.Module) -> None:
    """Raises ConfigError where a step of the program, or of a module in it, needs an input that nobody fills, or lacks
    an output that is read. No model is asked."""
    _check_all(program, set())


def _check_all(program: dspy.Module, seen: set[int]) -> None:
    if id(program) in seen:  # QA searches may wrap each other
        return
    seen.add(id(program))
    for name, line in getattr(program, "asks", {}).items():
        step = getattr(program, name, None)
        if step is not None:
            filled, read = (tuple(field.strip() for field in side.split(",")) for side in line.split("->"))
            _check(f"The step {name!r} of {type(program).__name__}", step, filled, read)
    for value in list(vars(program).values()):
        if isinstance(value, dspy.Module):
            _check_all(value, seen)


def _check(place: str, step: Any, filled: tuple[str, ...], read: tuple[str, ...]) -> None:
    while isinstance(inner := getattr(step, "module", None), dspy.Module):  # dspy.Refine, dspy.BestOfN
        step = inner
    if isinstance(step, dspy.ChainOfThought):
        step = step.predict
    if isinstance(step, dspy.Predict):
        signature: Any = step.signature
        if not _is_signature(signature):
            raise ConfigError(
                f"{place} has the signature {signature!r:.80}; expected a dspy.Signature. For other instructions "
                "alone, set its signature to `signature.with_instructions(...)`."
            )
        needed = [name for name, field in signature.input_fields.items() if field.is_required()]
        missing = [name for name in read if name not in signature.output_fields]
        if missing:
            raise ConfigError(
                f"{place} returns no {_quoted(missing)}, which the program reads; its signature {signature.__name__} "
                f"has {_quoted(signature.output_fields)}. Add the output field."
            )
    else:
        needed = _required(step)
    unfilled = [name for name in needed if name not in filled]
    if unfilled:
        raise ConfigError(
            f"{place} needs the input {_quoted(unfilled)}, which nobody fills; filled are {_quoted(filled)}. Leave it "
            "out, give it a default, or put a module in the step's place that fills it."
        )


def _required(step: Any) -> list[str]:
    """The arguments that a module of somebody's own cannot do without."""
    body = getattr(type(step), "forward", None) or getattr(
        type(step), "aforward", None
    )  # of the class: DSPy warns else
    parameters = list(inspect.signature(body or step).parameters.items())[1 if body else 0 :]
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return [
        name
        for name, parameter in parameters
        if parameter.kind in named and parameter.default is inspect.Parameter.empty
    ]


def _is_signature(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, dspy.Signature)


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(repr(name) for name in names)


EXPLAIN = "Also say what in the passages supports the answer."


def make_reader(explain: bool = False, signature: SignatureLike = None) -> FittingPredict:
    """What is asked with `question` and `passages`; where they are too long, it shortens the passages.

    Raises ConfigError for a signature without `explanation` where one is to be had.
    """
    chosen = signature_for(AnswerAndExplain if explain else AnswerQuestion, signature)
    if explain and "explanation" not in chosen.output_fields:
        raise ConfigError(
            f"explain=True needs the output 'explanation', which {chosen.__name__} does not have. Add the output "
            "field, or leave explain out."
        )
    return FittingPredict(chosen, shorten="passages")
