"""Takes what an optimizer learned over into a program: instructions and demonstrations, and nothing else."""

import dspy

from kraq_dspy._internal.step import Step
from kraq_dspy.programs.shared.state import NAMELESS


def keeping_models(program: dspy.Module) -> dspy.Module:
    """The program with steps that keep their models when an optimizer resets them, and learn anew."""
    for step in program.predictors():
        if isinstance(step, Step):
            step.keeps_model = True
            if step.nearest is not None:
                step.unlearn()
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
    if isinstance(predictor, Step) and isinstance(learned, Step):
        predictor.nearest = learned.nearest
    return changed
