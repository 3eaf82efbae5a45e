"""Knows of each model and address whether its replies can be held to a JSON schema.

In this order: what the role's settings say (`structured`), what an engine in this process declares, what the server did
with the schemas that it was sent, and the tables of models that DSPy carries (without the network). Where none of them
tells, the first reply does: a server that answers with prose ignores schemas, as some do silently, and one that answers
with an error knows none. What was decided is said in the log, with its reason.
"""

import logging
import re
from dataclasses import dataclass
from typing import Any

from kraq_dspy._internal.dspy_internals import model_info
from kraq_dspy.models.lms.envelope import QUOTED
from kraq_dspy.models.lms.repair import without_thinking
from kraq_dspy.settings import RoleSettings

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a model keeps to schemas, and why that is believed."""

    keeps: bool
    reason: str

    def __str__(self) -> str:
        return f"{'under' if self.keeps else 'without'} JSON schemas: {self.reason}"


_verdicts: dict[tuple[str, str | None], Verdict] = {}


def known_enforcement(lm: Any) -> bool | None:
    """Whether the model's replies can be held to a schema; None if the first reply will tell."""
    settings = _settings(lm)
    if settings is None:  # a model that others made: DSPy's own word
        return bool(lm.supports_response_schema)
    if settings.structured != "auto":
        return settings.structured == "json_schema"

    declared = getattr(lm.engine.inner, "supports_response_schema", None)
    if declared is not None:
        return bool(declared)

    verdict = _verdicts.get((settings.model, settings.api_base))
    if verdict is not None:
        return verdict.keeps
    provider, _, name = settings.model.partition("/")
    in_tables = settings.api_base is None and model_info(provider, name).get("supports_response_schema") is True
    return True if in_tables else None


def verdict_on(lm: Any) -> Verdict | None:
    """Return what the model's replies told, and why; None if none was needed."""
    settings = _settings(lm)
    return None if settings is None else _verdicts.get((settings.model, settings.api_base))


def is_about_schemas(error: Exception) -> bool:
    """Whether a server's error speaks of what it was asked to hold a reply to."""
    return re.search(r"schema|grammar|response_?format|json_object|guided|structured", str(error), re.I) is not None


def schema_refused(lm: Any, reason: str) -> None:
    """Note that the model's server refused a schema, or broke over it, and answers without one."""
    _decide(lm, Verdict(False, f"its server refuses them: {reason}"[:QUOTED]))


def schema_tried(lm: Any, unreadable: str | None) -> None:
    """Note what came under a schema, if that is not known of the model: a reply that could be read, or not."""
    if known_enforcement(lm) is None:
        keeps = unreadable is None or without_thinking(unreadable).lstrip().startswith("{")
        _decide(lm, Verdict(keeps, "it kept to one" if keeps else f"it answered {str(unreadable)[:60]!r} to one"))


def needs_bounds(lm: Any) -> bool:
    """Whether schemas must bound lengths and counts: models that people run themselves loop, and services that are
    paid by the token refuse such bounds."""
    settings = _settings(lm)
    if settings is None or settings.api_base is not None:
        return True
    return getattr(lm.engine.inner, "supports_response_schema", None) is not None


def _settings(lm: Any) -> RoleSettings | None:
    ledger = getattr(getattr(lm, "engine", None), "ledger", None)
    return None if ledger is None else ledger.settings


def _decide(lm: Any, verdict: Verdict) -> None:
    settings = _settings(lm)
    if settings is None or settings.structured != "auto":
        return
    _verdicts[settings.model, settings.api_base] = verdict
    logger.log(logging.INFO if verdict.keeps else logging.WARNING, "%s is asked %s", lm.model, verdict)
