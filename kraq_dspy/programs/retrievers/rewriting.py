"""Asks a model for other searches than the question: one module for each way of rewriting."""

from collections.abc import Iterable, Mapping
from typing import Any

import dspy

from kraq_dspy._internal.both_ways import at_once, blocking, call
from kraq_dspy._internal.options import require_counts
from kraq_dspy._internal.step import Step
from kraq_dspy.programs.shared.state import SavableModule
from kraq_dspy.programs.shared.steps import check_steps, extra_outputs, prediction
from kraq_dspy.signatures import (
    ChooseRewritings,
    CondenseQuestion,
    GuessAnswer,
    ListKeywords,
    RewriteQuestion,
    VaryQuestion,
)


class Clarify(SavableModule):
    """QRFusion: the question, rewritten once. Predicts `searches`: texts other than the question."""

    asks: Mapping[str, str] = {"rewrite": "question -> rewritten"}

    def __init__(self) -> None:
        super().__init__()
        self.rewrite = Step(RewriteQuestion)

    async def aforward(self, question: str) -> dspy.Prediction:
        check_steps(self)
        reply = await call(self.rewrite, question=question)
        return prediction(extra_outputs(reply, "rewritten"), searches=_others(question, [reply.rewritten]))

    forward = blocking(aforward)


class Vary(SavableModule):
    """RAG-Fusion: up to `count` searches. Predicts `searches`: texts other than the question."""

    asks: Mapping[str, str] = {"vary": "question, count -> searches"}

    def __init__(self, count: int = 4) -> None:
        super().__init__()
        require_counts("searches", count=count)
        self.count = count
        self.vary = Step(VaryQuestion)

    async def aforward(self, question: str) -> dspy.Prediction:
        check_steps(self)
        reply = await call(self.vary, question=question, count=self.count)
        return prediction(dict(reply.items()), searches=_others(question, reply.searches or ())[: self.count])

    forward = blocking(aforward)


class Diversify(SavableModule):
    """DMQR-RAG: four rewritings that differ in how much they keep, or, `adaptive`, those that the model chooses.

    General rewriting keeps all of the question, keywords and core less of it, a pseudo-answer adds to it. One call
    chooses, then one call for each rewriting, all at once. Predicts `searches` and `rewritings`, their names.
    """

    asks: Mapping[str, str] = {
        "choose": "question -> rewritings",
        "rewrite": "question -> rewritten",
        "keywords": "question -> keywords",
        "guess": "question -> guess",
        "condense": "question -> core",
    }

    def __init__(self, adaptive: bool = True) -> None:
        super().__init__()
        self.adaptive = adaptive
        self.rewrite = Step(RewriteQuestion)
        self.keywords = Step(ListKeywords)
        self.guess = Step(GuessAnswer)
        self.condense = Step(CondenseQuestion)
        if adaptive:
            self.choose = Step(ChooseRewritings)

    async def aforward(self, question: str) -> dspy.Prediction:
        check_steps(self)
        steps: dict[str, tuple[dspy.Module, str]] = {
            "rewrite": (self.rewrite, "rewritten"),
            "keywords": (self.keywords, "keywords"),
            "answer": (self.guess, "guess"),
            "core": (self.condense, "core"),
        }

        async def search(name: str) -> str:
            step, field = steps[name]
            reply = await call(step, question=question)
            extras.update(extra_outputs(reply, field))
            text = reply[field]
            return " ".join(text) if name == "keywords" else str(text)

        names, extras = list(steps), dict[str, Any]()
        if self.adaptive:
            chosen = await call(self.choose, question=question)
            names = list(dict.fromkeys(chosen.rewritings))
            extras.update(extra_outputs(chosen, "rewritings"))
        searches = _others(question, await at_once(search, names))
        return prediction(extras, searches=searches, rewritings=names)

    forward = blocking(aforward)


def _others(question: str, searches: Iterable[str]) -> list[str]:
    """Each once, none that is empty or the question itself."""
    by_words: dict[str, str] = {}
    for search in searches:
        by_words.setdefault(_plain(search), search.strip())
    return [search for words, search in by_words.items() if words and words != _plain(question)]


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()
