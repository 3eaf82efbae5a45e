"""Decides whether two names mean one entity, and describes it (KRAQ, stage 2)."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import dspy
from dspy import ContextWindowExceededError

from kraq_dspy._internal.both_ways import blocking, call
from kraq_dspy._internal.step import Step
from kraq_dspy.programs.shared.state import SavableModule
from kraq_dspy.programs.shared.steps import check_steps, prediction
from kraq_dspy.signatures import ConfirmSameEntity, MergeDescriptions


class ConfirmSame(SavableModule):
    """Whether two similar names mean one thing. `first` and `second` are names, each with its description."""

    asks: Mapping[str, str] = {"confirm": "first, second -> same"}
    outputs: ClassVar[dict[str, Any]] = {"same": bool}

    def __init__(self) -> None:
        super().__init__()
        self.confirm = Step(ConfirmSameEntity)

    async def aforward(self, first: str, second: str) -> dspy.Prediction:
        check_steps(self)
        reply = await call(self.confirm, first=first, second=second)
        return prediction(dict(reply.items()), same=reply.same)

    forward = blocking(aforward)


class DescribeEntity(SavableModule):
    """One description out of many, each fact said once. More than the model takes are merged by halves."""

    asks: Mapping[str, str] = {"merge": "name, descriptions -> description"}
    outputs: ClassVar[dict[str, Any]] = {"description": str}

    def __init__(self) -> None:
        super().__init__()
        self.merge = Step(MergeDescriptions)

    async def aforward(self, name: str, descriptions: Sequence[str]) -> dspy.Prediction:
        check_steps(self)
        try:
            answer = await call(self.merge, name=name, descriptions=list(descriptions))
        except ContextWindowExceededError:
            if len(descriptions) < 3:  # two halves give two descriptions: no progress
                raise
            middle = len(descriptions) // 2
            halves = descriptions[:middle], descriptions[middle:]
            merged = [(await call(self, name=name, descriptions=half)).description for half in halves]
            return await call(self, name=name, descriptions=merged)
        return prediction(dict(answer.items()), description=answer.description)

    forward = blocking(aforward)
