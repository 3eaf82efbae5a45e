"""Defines the step of a program: a predictor with a model to fall back on."""

import logging
import re
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

import dspy
from dspy import ContextWindowExceededError

from kraq_dspy._internal.both_ways import blocking, is_blocking


class Fallback(Protocol):
    """The model of a step's role; `models.lms.defaults.RoleModel` is one."""

    role: str

    def lm(self) -> Any: ...

    def filled_in(self, *, has_model: bool) -> AbstractContextManager[None]:
        """Inside, DSPy's settings have an adapter, and a model unless the step has one."""


class Step(dspy.Predict):
    """A `dspy.Predict` that asks the model of `by_role`, once that is set, where nobody named another.

    `models.lms.defaults.fill_in` sets it; without it a step is a `dspy.Predict` like any.

    >>> step = Step("question -> answer")
    """

    by_role: Fallback | None = None

    def forward(self, **inputs: Any) -> Any:
        with self._filled_in(inputs):
            return super().forward(**inputs)

    async def aforward(self, **inputs: Any) -> Any:
        with self._filled_in(inputs):
            return await super().aforward(**inputs)

    def _filled_in(self, inputs: Mapping[str, Any]) -> AbstractContextManager[None]:
        if self.by_role is None:
            return nullcontext()
        return self.by_role.filled_in(has_model=self.lm is not None or inputs.get("lm") is not None)


logger = logging.getLogger(__name__)

BREAKS = (r"\n\s*\n", r"\n", r"(?<=[.!?。！？])\s*", r"\s+", r"")  # paragraph, line, sentence, word, anywhere


class FittingPredict(Step):
    """A step that, where the prompt is too long, asks again with the first half of one of its inputs.

    For inputs that begin with what matters most: passages best first, elements most important first, a summary. Of a
    list the last text is cut as well. With several inputs to shorten, a list is emptied before the next one is cut.
    What is cut off is logged. Raises ContextWindowExceededError once there is nothing left to halve.
    """

    def __init__(self, signature: Any, shorten: str, *then: str) -> None:
        super().__init__(signature)
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
            kept = _first_half(whole)
            if kept or (whole and name != self.shorten[-1]):
                one = isinstance(whole, str) or len(kept) == len(whole) == 1
                before, after = ("".join(whole), "".join(kept)) if one else (whole, kept)
                unit = "characters" if one else "entries"
                logger.warning("%s: too long; going on with %d of %d %s", name, len(after), len(before), unit)
                return {**inputs, name: kept}
        raise error


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
