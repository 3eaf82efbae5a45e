"""A question as several searches: what the rewriting retrievers ask a model for."""

from collections.abc import Callable, Iterable
from typing import Any

import dspy

from kraq_dspy.programs.speculative.concurrently import run_all
from kraq_dspy.signatures import (
    ChooseRewritings,
    CondenseQuestion,
    GuessAnswer,
    ListKeywords,
    RewriteQuestion,
    VaryQuestion,
)


class Clarify(dspy.Module):
    """QRFusion: the question, rewritten once. Predicts `searches`: texts other than the question."""

    def __init__(self) -> None:
        super().__init__()
        self.rewrite = dspy.Predict(RewriteQuestion)

    def forward(self, question: str) -> dspy.Prediction:
        return dspy.Prediction(searches=_others(question, [self.rewrite(question=question).rewritten]))


class Vary(dspy.Module):
    """RAG-Fusion: up to `count` searches. Predicts `searches`: texts other than the question."""

    def __init__(self, count: int = 4) -> None:
        super().__init__()
        if count < 1:
            raise ValueError(f"count is {count}; expected 1 or more searches.")
        self.count = count
        self.vary = dspy.Predict(VaryQuestion)

    def forward(self, question: str) -> dspy.Prediction:
        searches = self.vary(question=question, count=self.count).searches or ()
        return dspy.Prediction(searches=_others(question, searches)[: self.count])


class Diversify(dspy.Module):
    """DMQR-RAG: four rewritings that differ in how much they keep, or, `adaptive`, those that the model chooses.

    General rewriting keeps all of the question, keywords and core less of it, a pseudo-answer adds to it. One call
    chooses, then one call for each rewriting, all at once. Predicts `searches` and `rewritings`, their names.
    """

    def __init__(self, adaptive: bool = True) -> None:
        super().__init__()
        self.adaptive = adaptive
        self.rewrite = dspy.Predict(RewriteQuestion)
        self.keywords = dspy.Predict(ListKeywords)
        self.guess = dspy.Predict(GuessAnswer)
        self.condense = dspy.Predict(CondenseQuestion)
        if adaptive:
            self.choose = dspy.Predict(ChooseRewritings)

    def forward(self, question: str) -> dspy.Prediction:
        steps: dict[str, Callable[[], Any]] = {
            "rewrite": lambda: self.rewrite(question=question).rewritten,
            "keywords": lambda: " ".join(self.keywords(question=question).keywords),
            "answer": lambda: self.guess(question=question).guess,
            "core": lambda: self.condense(question=question).core,
        }
        chosen = list(dict.fromkeys(self.choose(question=question).rewritings)) if self.adaptive else list(steps)
        searches = run_all(lambda name: str(steps[name]()), chosen)
        return dspy.Prediction(searches=_others(question, searches), rewritings=chosen)


def _others(question: str, searches: Iterable[str]) -> list[str]:
    """Each once, none that is empty or the question itself."""
    found: dict[str, str] = {}
    for search in searches:
        found.setdefault(_plain(search), search.strip())
    return [search for key, search in found.items() if key and key != _plain(question)]


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()
