"""Finds out, once for each model and address, whether a reply can be held to a JSON schema.

In this order: what the role's settings say (`structured`), what an engine in this process declares, the tables of
models that DSPy carries (without the network), and at last the model itself, asked for prose under a tiny schema. A
server that answers with prose ignores schemas, as llama.cpp's and others do silently where they cannot enforce one.
"""

import json
import logging
import threading
from typing import Any

import dspy
from dspy.utils.exceptions import LMInvalidRequestError, LMUnsupportedFeatureError

from kraq_dspy.models.lms.journal import working_on
from kraq_dspy.settings import RoleSettings

logger = logging.getLogger(__name__)

PROBE = "Write one sentence about the sea."
PROBE_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"number": {"type": "integer"}},
    "required": ["number"],
    "additionalProperties": False,
}

_answers: dict[tuple[str, str | None], bool] = {}
_locks: dict[tuple[str, str | None], threading.Lock] = {}
_guard = threading.Lock()


def enforces_schema(lm: Any) -> bool:
    """Whether the model's replies can be held to a schema. Asks the model if nothing else tells, once in a process.

    Raises what a call of the model raises when its server does not answer.
    """
    known = known_enforcement(lm)
    if known is not None:
        return known
    key = _key(lm.engine.ledger.settings)
    with _guard:
        lock = _locks.setdefault(key, threading.Lock())
    with lock:
        if key not in _answers:
            _answers[key] = _probe(lm)
            logger.info("%s %s JSON schemas", key[0], "keeps to" if _answers[key] else "does not keep to")
        return _answers[key]


def known_enforcement(lm: Any) -> bool | None:
    """The same without asking the model; None where only a probe can tell."""
    settings = _settings(lm)
    if settings is None:  # a model that others made: DSPy's own word
        return bool(lm.supports_response_schema)
    if settings.structured != "auto":
        return settings.structured == "json_schema"
    declared = getattr(lm.engine.inner, "supports_response_schema", None)
    if declared is not None:
        return bool(declared)
    if settings.api_base is None and _in_tables(settings.model):
        return True
    return _answers.get(_key(settings))


def needs_bounds(lm: Any) -> bool:
    """Whether schemas must bound lengths and counts: models that people run themselves loop, and services that are
    paid by the token refuse such bounds."""
    settings = _settings(lm)
    return settings is None or settings.api_base is not None or hasattr(lm.engine.inner, "supports_response_schema")


def _settings(lm: Any) -> RoleSettings | None:
    ledger = getattr(getattr(lm, "engine", None), "ledger", None)
    return None if ledger is None else ledger.settings


def _key(settings: RoleSettings) -> tuple[str, str | None]:
    return settings.model, settings.api_base


def _in_tables(model: str) -> bool:
    from kraq_dspy._internal.dspy_internals import model_info

    provider, _, name = model.partition("/")
    return model_info(provider, name).get("supports_response_schema") is True


def _probe(lm: Any) -> bool:
    response_format = {
        "type": "json_schema",
        "json_schema": {"name": "probe", "schema": PROBE_SCHEMA, "strict": True},
    }
    with working_on("structured output", ""), dspy.context(disable_history=True, send_stream=None, callbacks=[]):
        try:
            [reply] = lm(PROBE, response_format=response_format, max_tokens=256)
        except (LMInvalidRequestError, LMUnsupportedFeatureError) as error:
            logger.info("%s refuses JSON schemas: %s", lm.model, error)
            return False
    text = reply if isinstance(reply, str) else (reply.get("text") or "")
    try:
        value = json.loads(text)
    except ValueError:
        return False
    return isinstance(value, dict) and set(value) == {"number"}
