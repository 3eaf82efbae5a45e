"""Lets a step have a signature of one's own, and takes what else it returns into the program's prediction."""

import re
from typing import Any

import dspy

from kraq_dspy._internal.step import FittingPredict
from kraq_dspy.errors import ConfigError
from kraq_dspy.signatures import AnswerAndExplain, AnswerQuestion

SignatureLike = type[dspy.Signature] | str | None
"""A signature of one's own, instructions that replace those of the step's signature, or None for the step's own."""

EXPLAIN = "Also say what in the passages supports the answer."
_SHORT_FORM = re.compile(r"[\w\s:,.\[\]]+->[\w\s:,.\[\]]+")


def signature_for(default: type[dspy.Signature], own: SignatureLike) -> type[dspy.Signature]:
    """`own`, where one is given; a string is instructions, or a signature in DSPy's short form.

    Raises ConfigError for a signature that lacks an output of `default`, all of which the program reads, or needs an
    input that `default` does not have, since nobody would fill it.

    >>> signature_for(dspy.Signature("question -> answer"), "Answer in one word.").instructions
    'Answer in one word.'
    """
    if own is None:
        return default
    if isinstance(own, str):
        own = dspy.Signature(own) if _SHORT_FORM.fullmatch(own) else default.with_instructions(own)
    if not (isinstance(own, type) and issubclass(own, dspy.Signature)):
        raise ConfigError(f"signature is {own!r:.80}; expected a dspy.Signature, or a string of instructions.")
    missing = [name for name in default.output_fields if name not in own.output_fields]
    if missing:
        raise ConfigError(
            f"The signature {own.__name__} returns no {_quoted(missing)}, which the program reads; it has "
            f"{_quoted(own.output_fields)}. Add the output field."
        )
    needed = [name for name, field in own.input_fields.items() if field.is_required()]
    unfilled = [name for name in needed if name not in default.input_fields]
    if unfilled:
        raise ConfigError(
            f"The signature {own.__name__} needs the input {_quoted(unfilled)}, which nobody fills; filled are "
            f"{_quoted(default.input_fields)}. Leave it out, or give it a default."
        )
    return own


def make_reader(explain: bool = False, signature: SignatureLike = None) -> FittingPredict:
    """What is asked with `question` and `passages`; where they are too long, it shortens the passages."""
    return FittingPredict(signature_for(AnswerAndExplain if explain else AnswerQuestion, signature), shorten="passages")


def prediction(reply: Any, **own: Any) -> dspy.Prediction:
    """A program's prediction: the fields of its last reply, those of a signature of one's own among them, and `own`."""
    return dspy.Prediction(**{**dict(reply.items()), **own})


def _quoted(names: Any) -> str:
    return ", ".join(repr(name) for name in names)
