"""Takes what an optimizer learned over into a program, and tells it: instructions, demonstrations and scores."""

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import dspy

from kraq_dspy._internal.dspy_internals import thawed
from kraq_dspy._internal.step import NearestDemos, held, put
from kraq_dspy.programs.shared.state import NAMELESS, ProgramState


@dataclass(frozen=True, slots=True)
class Learned:
    """What one predictor of a program learned: its instructions before and after, and its demonstrations."""

    predictor: str
    before: str
    after: str
    demos: tuple[Mapping[str, Any], ...] = ()

    @property
    def diff(self) -> tuple[str, ...]:
        """The sentences of the instructions that went ("- ...") and came ("+ ..."); empty where they are the same.

        >>> Learned("answer", "Answer briefly. Be exact.", "Answer in a word. Be exact.").diff
        ('- Answer briefly.', '+ Answer in a word.')
        """
        lines = difflib.ndiff(_sentences(self.before), _sentences(self.after))
        return tuple(line for line in lines if line.startswith(("- ", "+ ")))


def learned_by(program: dspy.Module, state: ProgramState) -> tuple[Learned, ...]:
    """What the state has beyond the program that was optimized, by predictor; the unchanged ones are left out."""
    with thawed(program):
        before = {name: predictor.signature.instructions for name, predictor in program.named_predictors()}
    found = [
        Learned(name, before[name], saved["instructions"], tuple(saved["demos"]))
        for name, saved in state.predictors.items()
    ]
    return tuple(learned for learned in found if learned.demos or learned.before != learned.after)


def optimizer_scores(compiled: Any, *, percent: bool) -> tuple[float, ...]:
    """The scores in [0, 1] that DSPy's optimizers hang on their result, the best first; none where they hang none."""
    if (results := getattr(compiled, "detailed_results", None)) is not None:
        scores = list(results.val_aggregate_scores)
    else:
        scores = [candidate["score"] for candidate in getattr(compiled, "candidate_programs", ())]
    return tuple(sorted((score / 100 if percent else score for score in scores), reverse=True))


def keeping_models(program: dspy.Module) -> dspy.Module:
    """The program with predictors that keep their models when an optimizer resets them, and no demonstrations.

    DSPy's optimizers copy a program and reset the copy's predictors, whose models are gone then; there is no setting
    against it, and they know a predictor by its identity, so that an object which holds it would not do. So the
    predictors get a class that is their own but for `reset`. The program is a copy that serves the optimizer alone.
    """
    for name, predictor in program.named_predictors():
        if isinstance(predictor, NearestDemos):  # to learn anew
            put(program, name, held(predictor))
    for predictor in program.predictors():
        kind: Any = type(predictor)
        predictor.__class__ = _keeping_model(kind)
    return program


def take_over(program: dspy.Module, name: str, learned: dspy.Predict) -> bool:
    """Give the predictor `name` of the program what was learned; whether that is other than what it had."""
    predictor = dict(program.named_predictors())[name]
    fields = predictor.signature.fields
    demos = [
        dspy.Example(augmented=True, **{name: demo[name] for name in fields if name in demo}) for demo in learned.demos
    ]
    changed = bool(demos) or predictor.signature.instructions != learned.signature.instructions
    if learned.signature is not predictor.signature and learned.signature.__name__ == NAMELESS:
        learned.signature.__name__ = predictor.signature.__name__
    plain = held(predictor)
    plain.signature, plain.demos = learned.signature, demos
    if isinstance(learned, NearestDemos):
        plain.demos = []
        put(program, name, NearestDemos(plain, demos, learned.nearest, learned.embedder))
    elif plain is not predictor:
        put(program, name, plain)
    return changed


@cache
def _keeping_model(kind: Any) -> Any:
    class KeepsModel(kind):  # type: ignore[misc]
        def reset(self) -> None:
            lm = getattr(self, "lm", None)
            super().reset()
            self.lm = lm

    return KeepsModel


def _sentences(text: str) -> list[str]:
    return [part for part in re.split(r"(?<=[.!?:])\s+|\n+", text.strip()) if part]
