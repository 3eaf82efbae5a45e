"""Optimizes steps and programs against dev sets, with DSPy's optimizers."""

from typing import TYPE_CHECKING

from kraq_dspy._internal.lazy import lazy_names

if TYPE_CHECKING:  # for type checkers and editors; the names that are there are those below
    from kraq_dspy.eval.metrics.for_dspy import own_metric as own_metric
    from kraq_dspy.optimize.compiling import (
        Compiled as Compiled,
        Resources as Resources,
        compile_program as compile_program,
    )
    from kraq_dspy.optimize.domain import Domain as Domain, describe_domain as describe_domain
    from kraq_dspy.optimize.optimizers import OPTIMIZERS as OPTIMIZERS, Method as Method
    from kraq_dspy.optimize.rows import RowKind as RowKind
    from kraq_dspy.optimize.sizes import Sizes as Sizes
    from kraq_dspy.optimize.steps import STEPS as STEPS, OptimizableStep as OptimizableStep
    from kraq_dspy.optimize.targets import Target as Target, make_target as make_target
    from kraq_dspy.state import (
        apply_state as apply_state,
        load_state as load_state,
        read_state as read_state,
        save_state as save_state,
        state_of as state_of,
    )

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "kraq_dspy.eval.metrics.for_dspy": ("own_metric",),
        "kraq_dspy.optimize.compiling": ("Compiled", "Resources", "compile_program"),
        "kraq_dspy.optimize.domain": ("Domain", "describe_domain"),
        "kraq_dspy.optimize.optimizers": ("OPTIMIZERS", "Method"),
        "kraq_dspy.optimize.rows": ("RowKind",),
        "kraq_dspy.optimize.sizes": ("Sizes",),
        "kraq_dspy.optimize.steps": ("STEPS", "OptimizableStep"),
        "kraq_dspy.optimize.targets": ("Target", "make_target"),
        "kraq_dspy.state": ("apply_state", "load_state", "read_state", "save_state", "state_of"),
    },
)
