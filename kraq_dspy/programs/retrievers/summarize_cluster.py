"""Summarises a cluster of passages or of summaries: RAPTOR's step."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import dspy

from kraq_dspy._internal.both_ways import blocking, call
from kraq_dspy._internal.step import FittingPredict
from kraq_dspy.programs.shared.state import SavableModule
from kraq_dspy.programs.shared.steps import check_steps, prediction
from kraq_dspy.signatures import SummarizePassages


class SummarizeCluster(SavableModule):
    """Raises ValueError for an empty summary: it would stand for its passages and be found by nothing."""

    asks: Mapping[str, str] = {"summarize": "passages -> summary"}
    outputs: ClassVar[dict[str, Any]] = {"summary": str}

    def __init__(self) -> None:
        super().__init__()
        self.summarize = FittingPredict(SummarizePassages, shorten="passages")

    async def aforward(self, passages: Sequence[str]) -> dspy.Prediction:
        check_steps(self)
        reply = await call(self.summarize, passages=list(passages))
        return prediction(dict(reply.items()), **_checked(reply.summary))

    forward = blocking(aforward)


def _checked(summary: str) -> dspy.Prediction:
    if not summary.strip():
        raise ValueError("The summary is empty.")
    return dspy.Prediction(summary=summary.strip())
