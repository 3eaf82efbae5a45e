"""Optimizes steps and programs against dev sets, with DSPy's optimizers."""

from kraq_dspy.eval.metrics.for_dspy import own_metric
from kraq_dspy.optimize.compiling import Compiled, Resources, compile_program
from kraq_dspy.optimize.domain import Domain, describe_domain
from kraq_dspy.optimize.optimizers import OPTIMIZERS, Method, Sizes
from kraq_dspy.optimize.rows import RowKind
from kraq_dspy.optimize.steps import STEPS, OptimizableStep
from kraq_dspy.optimize.targets import Target, make_target
from kraq_dspy.state import apply_state, load_state, read_state, save_state, state_of

__all__ = [
    "OPTIMIZERS", "STEPS", "Compiled", "Domain", "Method", "OptimizableStep", "Resources", "RowKind", "Sizes", "Target",
    "apply_state", "compile_program", "describe_domain", "load_state", "make_target", "own_metric", "read_state",
    "save_state", "state_of",
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted(__all__)
