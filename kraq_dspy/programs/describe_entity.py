"""KRAQ stage 2 as programs: is it one entity, and what is it?"""

from collections.abc import Sequence
from typing import Any, ClassVar

import dspy

from kraq_dspy.signatures import ConfirmSameEntity, MergeDescriptions


class ConfirmSame(dspy.Module):
    """Whether two similar names mean one thing. `first` and `second` are names, each with its description."""

    outputs: ClassVar[dict[str, Any]] = {"same": bool}

    def __init__(self) -> None:
        super().__init__()
        self.confirm = dspy.Predict(ConfirmSameEntity)

    def forward(self, first: str, second: str) -> dspy.Prediction:
        return dspy.Prediction(same=self.confirm(first=first, second=second).same)

    async def aforward(self, first: str, second: str) -> dspy.Prediction:
        return dspy.Prediction(same=(await self.confirm.acall(first=first, second=second)).same)


class DescribeEntity(dspy.Module):
    """One description out of many, each fact said once."""

    outputs: ClassVar[dict[str, Any]] = {"description": str}

    def __init__(self) -> None:
        super().__init__()
        self.merge = dspy.Predict(MergeDescriptions)

    def forward(self, name: str, descriptions: Sequence[str]) -> dspy.Prediction:
        return dspy.Prediction(description=self.merge(name=name, descriptions=list(descriptions)).description)

    async def aforward(self, name: str, descriptions: Sequence[str]) -> dspy.Prediction:
        answer = await self.merge.acall(name=name, descriptions=list(descriptions))
        return dspy.Prediction(description=answer.description)
