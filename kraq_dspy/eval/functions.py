"""Makes a system of a function that answers: it returns a text, or what has an answer in it."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, get_origin

import dspy

from kraq_dspy._internal.both_ways import blocking, call
from kraq_dspy.errors import EvaluationError
from kraq_dspy.eval.datasets import Example
from kraq_dspy.eval.recorded import prediction_of


class AnsweringFunction(dspy.Module):
    """Asks a function, and makes a prediction of what it returns.

    >>> AnsweringFunction(lambda question: {"answer": "Oslo", "contexts": ["Oslo is old."]})(question="?").answer
    'Oslo'
    """

    def __init__(self, function: Callable[[str], Any]) -> None:
        super().__init__()
        self.name = getattr(function, "__name__", type(function).__name__)
        self._function = [function]  # in a list, where DSPy looks for no predictors of it

    async def aforward(self, question: str) -> dspy.Prediction:
        reply = await call(self._function[0], question)
        prediction = prediction_of(question, reply)
        if prediction is None:
            raise EvaluationError(
                f"{self.name} returned {type(reply).__name__}; expected a text, or a mapping or an object with "
                "`answer`."
            )
        return prediction

    forward = blocking(aforward)


def is_answering(system: Any, examples: Sequence[Example]) -> bool:
    """Whether a system is a plain function that answers, and not one that finds passages.

    Its return annotation says it. A function of one parameter without annotation is asked the first question: one that
    answers returns a text, or a mapping or an object with `answer`. A function that takes `k` finds.
    """
    if isinstance(system, dspy.Module) or getattr(system, "keeps_contract", False) or not callable(system):
        return False
    try:
        signature = inspect.signature(system)
    except (TypeError, ValueError):  # a builtin
        return False
    if len(signature.parameters) != 1:
        return False

    returned = signature.return_annotation
    if returned is not inspect.Signature.empty:
        kind = get_origin(returned) or returned
        return kind in (str, dict, Mapping, dspy.Prediction, "str", "dict", "dspy.Prediction")
    return bool(examples) and prediction_of(examples[0].question, system(examples[0].question)) is not None
