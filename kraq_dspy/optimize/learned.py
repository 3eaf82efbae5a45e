"""Takes what an optimizer learned over into a program: instructions and demonstrations, and nothing else."""

from typing import Any

import dspy

from kraq_dspy._internal.nearest_demos import NearestDemos, mixed, near, unlearned
from kraq_dspy.programs.shared.state import NAMELESS


def keeping_models(program: dspy.Module) -> dspy.Module:
    """The program with predictors that keep their models when an optimizer resets them."""
    for predictor in program.predictors():
        if isinstance(predictor, NearestDemos):  # to learn anew
            unlearned(predictor)
        kind: Any = type(predictor)
        predictor.__class__ = mixed(KeepsModel, kind)
    return program


def take_over(predictor: dspy.Predict, learned: dspy.Predict) -> bool:
    """Instructions and demonstrations; whether they are others than before."""
    fields = predictor.signature.fields
    demos = [
        dspy.Example(augmented=True, **{name: demo[name] for name in fields if name in demo}) for demo in learned.demos
    ]
    changed = bool(demos) or predictor.signature.instructions != learned.signature.instructions
    if learned.signature is not predictor.signature and learned.signature.__name__ == NAMELESS:
        learned.signature.__name__ = predictor.signature.__name__
    predictor.signature = learned.signature
    predictor.demos = demos
    if isinstance(learned, NearestDemos):
        near(predictor, demos, learned.nearest, learned.embedder)
    return changed


class KeepsModel(dspy.Predict):
    """A predictor that keeps its model when an optimizer resets it."""

    def reset(self) -> None:
        lm = getattr(self, "lm", None)
        super().reset()
        self.lm = lm
