"""Declares what every build may be given by keyword, and spells it out in the signatures of those that take it."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ParamSpec, TypedDict, TypeVar, get_type_hints

import dspy

from kraq_dspy._internal.validation import suggestion
from kraq_dspy.errors import ConfigError
from kraq_dspy.models.embedders.adapted import EmbedderLike
from kraq_dspy.models.lms.meter import Limits
from kraq_dspy.models.lms.roles import ModelsLike
from kraq_dspy.ports import Progress
from kraq_dspy.programs.kraq.pipeline import KRAQ
from kraq_dspy.settings import Settings

P = ParamSpec("P")
Result = TypeVar("Result")


class BuildOptions(TypedDict, total=False):
    """What every build may be given by keyword.

    `settings` are the defaults unless given, `embedder` and `kraq` what those name. Models: the one of `lm` does all
    the work, `models` are by role (`{"extractor": lm}`); without them it is the model of `dspy.context` or
    `dspy.configure`, then the one that the settings name, then the embedded one. `program_states` are files of
    `kraq optimize` for the steps; what they change is asked anew. `limits` bound what this run may ask of models.
    `progress` is told how the build goes; a notebook shows it unless another is given. With `random_questions` the
    build also makes as many questions from random chunks as there are communities with a question: the papers'
    baseline.
    """

    settings: Settings | None
    lm: dspy.BaseLM | None
    models: ModelsLike | None
    embedder: EmbedderLike | None
    kraq: KRAQ | None
    progress: Progress | None
    program_states: Sequence[str | Path]
    limits: Limits | None
    random_questions: bool


_DEFAULTS = {"program_states": (), "random_questions": False}


def spelled_out(function: Callable[P, Result]) -> Callable[P, Result]:
    """`function(..., **options: Unpack[BuildOptions])`, whose `help` and completion name the options one by one.

    A type checker reads them from `Unpack`; `inspect.signature` does not.
    """
    signature = inspect.signature(function)
    *own, variadic = signature.parameters.values()
    assert variadic.kind is variadic.VAR_KEYWORD, f"{function.__name__} takes no **options"
    spelled = [
        inspect.Parameter(name, variadic.KEYWORD_ONLY, default=_DEFAULTS.get(name), annotation=kind)
        for name, kind in get_type_hints(BuildOptions).items()
    ]
    function.__signature__ = signature.replace(parameters=[*own, *spelled])  # type: ignore[attr-defined]
    return function


def require_known(options: Any) -> None:
    """Raises TypeError for an option that there is not, or whose value is of a wrong kind."""
    for name in options:
        if name not in BuildOptions.__annotations__:
            raise TypeError(f"{name!r} is no option of a build; {suggestion(name, BuildOptions.__annotations__)}")
    kinds = {"settings": Settings, "kraq": KRAQ, "limits": Limits, "lm": dspy.BaseLM, "random_questions": bool}
    for name, kind in kinds.items():
        value = options.get(name)
        if value is not None and not isinstance(value, kind):
            raise TypeError(f"{name} is {value!r:.80} ({type(value).__name__}); expected a {kind.__name__}.")
    states = options.get("program_states", ())
    if isinstance(states, str | Path) or not all(isinstance(state, str | Path) for state in states):
        raise TypeError(f"program_states is {states!r:.80}; expected a list of files.")


def with_lm(models: ModelsLike | None, lm: dspy.BaseLM | None) -> ModelsLike | None:
    """`models` by role, and `lm` for the others."""
    if lm is None or models is None:
        return models if lm is None else lm
    if not isinstance(models, Mapping):
        raise ConfigError("Give lm, or models that have one for every role; beside lm, models are by role.")
    return {"default": lm, **models}
