"""Says what a report tells of a system: its program, its retriever, its model and its encoder."""

from collections.abc import Iterable
from typing import Any

import dspy

from kraq_dspy.models.lms.roles import lm_in_program
from kraq_dspy.programs.speculative.efficient_speculative_rag import EFFICIENT
from kraq_dspy.settings import Settings
from kraq_dspy.spec import ProgramSpec, RetrieverSpec
from kraq_dspy.workspace import Workspace
from kraq_dspy.workspace.choices import ProgramChoice
from kraq_dspy.workspace.registry import PROGRAMS, RETRIEVERS


def about_choice(choice: ProgramChoice, settings: Settings, encoder: str, default_retriever: str) -> dict[str, str]:
    """Return what a report says of a program made by its name."""
    retriever = choice.retriever.spec.name if choice.retriever else default_retriever
    is_variant = looks_no_question_up(choice.spec, settings)
    over = f" over {choice.inner.spec.name}" if choice.inner else ""
    variant = ", the variant sentences" if is_variant else ""
    return {
        "program": f"{choice.spec.name}{over}{variant}",
        "retriever": retriever if choice.takes_retriever else "its own",
        "model": settings.role(choice.role).model,
        "encoder": encoder,
        "passages": str(choice.budget),
    }


def looks_no_question_up(spec: ProgramSpec, settings: Settings) -> bool:
    """Whether the program is Efficient Speculative RAG in the variant "sentences", which is not Algorithm 2."""
    return spec is EFFICIENT and settings.instructed.kind == "sentences"


def about_retriever(name: str, encoder: str, budgets: Iterable[int]) -> dict[str, str]:
    """Return what a report says of a retriever made by its name."""
    return {"retriever": name, "encoder": encoder, "passages": ", ".join(map(str, budgets))}


def about_system(made: Any, space: Workspace | None) -> dict[str, str]:
    """Return what can be seen of a program or a retriever that somebody made."""
    is_program = isinstance(made, dspy.Module) and not getattr(made, "keeps_contract", False)
    retrieve = getattr(made, "retrieve", None) if is_program else made
    encoder = space.embedder if space else getattr(retrieve, "embedder", None)
    predictors = made.predictors() if is_program else []
    lms = [lm_in_program(predictor) or dspy.settings.lm for predictor in predictors]

    about = {
        "program": _name_of(made, PROGRAMS.own.values()) if is_program else "",
        "retriever": "" if retrieve is None else _name_of(retrieve, RETRIEVERS.own.values()),
        "model": ", ".join(dict.fromkeys(str(lm.model) for lm in lms if lm is not None)),
        "encoder": str(getattr(encoder, "name", "")),
        "passages": str(getattr(made, "k", "")),
    }
    return {name: text for name, text in about.items() if text}


def _name_of(part: Any, specs: Iterable[ProgramSpec | RetrieverSpec]) -> str:
    """Find its name in the registry, else its own, else that of its class."""
    kind = type(part).__name__
    known = next((spec.name for spec in specs if spec.class_name == kind), "")
    own = getattr(part, "name", "")
    return known or (own if isinstance(own, str) and own else kind)
