"""Finds out, once for each model and address, whether a reply can be held to a JSON schema.

In this order: what the role's settings say (`structured`), what an engine in this process declares, the tables of
models that DSPy carries (without the network), and at last the model itself, asked for prose under a tiny schema. A
server that answers with prose ignores schemas, as llama.cpp's and others do silently where they cannot enforce one; one
that answers with an error knows none. A model that spends the trial's tokens on thinking is not judged by it: its first
real reply tells. What was decided is said in the log, with its reason.
"""

import json
import logging
import re
import threading
from dataclasses import dataclass
from typing import Any

import dspy
from dspy.utils.exceptions import LMInvalidRequestError, LMServerError, LMUnsupportedFeatureError

from kraq_dspy.models.lms.envelope import QUOTED, flaws_heard
from kraq_dspy.models.lms.meter import working_on
from kraq_dspy.models.lms.unmarked import without_thinking
from kraq_dspy.settings import RoleSettings

logger = logging.getLogger(__name__)

PROBE = "Write one sentence about the sea."
PROBE_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"number": {"type": "integer"}},
    "required": ["number"],
    "additionalProperties": False,
}

ROOM, MORE_ROOM = 256, 2048  # tokens for the reply: models that think spend some before they write


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a model keeps to schemas, and why that is believed. Without `is_proven` the first reply will tell."""

    keeps: bool
    reason: str
    is_proven: bool = True


_verdicts: dict[tuple[str, str | None], Verdict] = {}
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
        if key not in _verdicts:
            _decide(lm, _probe(lm))
        return _verdicts[key].keeps


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
    verdict = _verdicts.get(_key(settings))
    if verdict is not None:
        return verdict.keeps
    return True if settings.api_base is None and _in_tables(settings.model) else None


def reason_of(lm: Any) -> str:
    """Why the model is, or is not, held to schemas, in a few words for people."""
    settings = _settings(lm)
    if settings is not None and settings.structured != "auto":
        return f"structured = {settings.structured!r} is set"
    verdict = None if settings is None else _verdicts.get(_key(settings))
    return verdict.reason if verdict else "it says so itself"


def decided(lm: Any) -> str:
    """What a probe found of the model, with its reason; "" where none was needed."""
    settings = _settings(lm)
    verdict = None if settings is None else _verdicts.get(_key(settings))
    return f"{_how(verdict)}: {verdict.reason}" if verdict else ""


def is_about_schemas(error: Exception) -> bool:
    """Whether a server's error speaks of what it was asked to hold a reply to."""
    return re.search(r"schema|grammar|response_?format|json_object|guided|structured", str(error), re.I) is not None


def schema_refused(lm: Any, reason: str) -> None:
    """Note that the model's server refused a schema, or broke over it, and answers without one."""
    settings = _settings(lm)
    if settings is not None and settings.structured == "auto":
        _decide(lm, Verdict(False, f"its server refuses them: {reason}"[:QUOTED]))


def schema_tried(lm: Any, *, kept: bool) -> None:
    """Note whether a reply kept to its schema, where the probe could not tell."""
    settings = _settings(lm)
    verdict = None if settings is None else _verdicts.get(_key(settings))
    if verdict is not None and not verdict.is_proven:
        _decide(lm, Verdict(kept, "its first reply kept to one" if kept else "its first reply did not keep to one"))


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


def _key(settings: RoleSettings) -> tuple[str, str | None]:
    return settings.model, settings.api_base


def _in_tables(model: str) -> bool:
    from kraq_dspy._internal.dspy_internals import model_info

    provider, _, name = model.partition("/")
    return model_info(provider, name).get("supports_response_schema") is True


def _decide(lm: Any, verdict: Verdict) -> None:
    _verdicts[_key(lm.engine.ledger.settings)] = verdict
    level = logging.INFO if verdict.keeps else logging.WARNING
    logger.log(level, "%s is asked %s: %s", lm.model, _how(verdict), verdict.reason)


def _how(verdict: Verdict) -> str:
    return "under JSON schemas" if verdict.keeps else "without JSON schemas"


def _probe(lm: Any) -> Verdict:
    response_format = {
        "type": "json_schema",
        "json_schema": {"name": "probe", "schema": PROBE_SCHEMA, "strict": True},
    }
    alone = dspy.context(disable_history=True, send_stream=None, callbacks=[])
    failed_before = False
    with working_on("structured output", ""), flaws_heard() as heard, alone:
        for room in (ROOM, MORE_ROOM, MORE_ROOM):
            heard.clear()
            try:
                text = _text(lm(PROBE, response_format=response_format, max_tokens=room))
            except (LMInvalidRequestError, LMUnsupportedFeatureError) as error:
                return Verdict(False, f"its server refuses them: {error}"[:QUOTED])
            except LMServerError as error:
                _text(lm(PROBE, max_tokens=room))  # raises where the fault is not in the schema
                if failed_before or is_about_schemas(error):
                    return Verdict(False, f"its server fails over them: {error}"[:QUOTED])
                failed_before = True
                continue
            if _keeps(text):
                return Verdict(True, "it kept to one")
            if not any(flaw.why == "length" for flaw in heard):
                return Verdict(False, f"it answered {text[:60]!r} to one")
            if room == MORE_ROOM:
                break
    return Verdict(True, "its server takes them; it spent the trial's tokens on thinking", is_proven=False)


def _text(replies: list[Any]) -> str:
    [reply] = replies
    text = reply.get("text") if isinstance(reply, dict) else reply
    return without_thinking(text or "").strip()


def _keeps(text: str) -> bool:
    try:
        value = json.loads(text)
    except ValueError:
        return False
    return isinstance(value, dict) and set(value) == {"number"}
