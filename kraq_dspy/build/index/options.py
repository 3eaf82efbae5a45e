"""Declares what every build may be given by keyword, and checks it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict

import dspy

from kraq_dspy._internal.options import suggestion
from kraq_dspy.errors import ConfigError
from kraq_dspy.models.embedders.text_encoder import EmbedderLike
from kraq_dspy.models.lms.meter import Limits
from kraq_dspy.models.lms.roles import ModelsLike
from kraq_dspy.ports import Progress
from kraq_dspy.programs.kraq.pipeline import KRAQ
from kraq_dspy.settings import Settings


class BuildOptions(TypedDict, total=False):
    """The options that every function which builds or changes an index takes; `build_index` spells them out."""

    settings: Settings | None
    lm: dspy.BaseLM | None
    models: ModelsLike | None
    embedder: EmbedderLike | None
    kraq: KRAQ | None
    progress: Progress | None
    program_states: Sequence[str | Path]
    limits: Limits | None
    random_questions: bool


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
    """The models by role, and `lm` for the roles that have none."""
    if lm is None or models is None:
        return models if lm is None else lm
    if not isinstance(models, Mapping):
        raise ConfigError("Give lm, or models that have one for every role; beside lm, models are by role.")
    return {"default": lm, **models}
