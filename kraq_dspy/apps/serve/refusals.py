"""Refuses requests in words for the client, and turns every error into such words without places of this machine."""

import json
import logging
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import orjson
from starlette.responses import JSONResponse, Response

from kraq_dspy import errors
from kraq_dspy.apps.views import View

logger = logging.getLogger(__name__)


@dataclass
class RequestError(Exception):
    """A request that is refused. `message` is for the client."""

    status: int
    code: str
    message: str
    headers: Mapping[str, str] = field(default_factory=dict)


def not_found(what: str, name: str) -> RequestError:
    return RequestError(404, "not_found", f"There is no {what} {name[:80]!r} in this index.")


_OF_KINDS: tuple[tuple[type[BaseException], int, str, str], ...] = (
    (errors.UnknownRecordError, 404, "not_found", "The index has no such record, or it was removed meanwhile."),
    (errors.ScopeError, 403, "no_scope", "The documents of this index say who may read them, and not this caller."),
    (errors.IndexLockedError, 503, "index_in_use", "Another program is changing this index. Try again later."),
    (
        errors.IndexStateError, 503, "index_state",
        "The index lacks what this needs, or is damaged. The server's log says what, and the command that mends it.",
    ),
    (errors.BudgetExceededError, 503, "budget", "The server has spent what it may spend on models."),
    (
        errors.ServerDownError, 502, "model_unreachable",
        "The language model cannot be reached. The server's log says why.",
    ),
    (errors.ModelError, 502, "model_failed", "The language model could not do it. The server's log says why."),
)  # fmt: skip


def as_request_error(error: BaseException) -> RequestError:
    """The error as a client meets it; what is wrong here goes to the log in full."""
    if isinstance(error, RequestError):
        return error
    if isinstance(error, errors.FaqError):
        return RequestError(409, "faq", str(error).partition(" See them all:")[0])
    if type(error) is errors.IndexStateError and not re.search(r"[/\\]", str(error)):
        return RequestError(409, "index_state", str(error))  # it names no folder, so it is about what was asked for

    for kind, status, code, message in _OF_KINDS:
        if isinstance(error, kind):
            logger.log(logging.ERROR if status >= 500 else logging.INFO, "%s: %s", code, error)
            return RequestError(status, code, message, {"Retry-After": "5"} if status == 503 else {})

    if type(error).__module__.startswith("dspy."):
        logger.error("A call to the model failed: %s", error)
        return RequestError(502, "model_failed", _OF_KINDS[-1][3])
    logger.error("A request failed", exc_info=error)
    return RequestError(500, "internal", "The server met an error. Its log says which.")


def body_of(error: RequestError) -> dict[str, Any]:
    """Describe an error in the shape of OpenAI's API, which suits every client."""
    kind = "invalid_request_error" if error.status < 500 else "server_error"
    return {"error": {"message": error.message, "type": kind, "code": error.code}}


class Json(JSONResponse):
    """JSON in UTF-8; half of a surrogate pair, which a corpus may hold, goes as its escape."""

    def render(self, content: Any) -> bytes:
        with suppress(TypeError):  # half of a pair, or a number of more than 64 bits
            return orjson.dumps(content, default=_plain)
        text = json.dumps(content, default=_plain, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return text.encode("utf-8", "backslashreplace")


def _plain(value: Any) -> Any:
    """Raises TypeError for what is no view."""
    if isinstance(value, View):
        return value.to_json()
    raise TypeError(f"{type(value).__name__} has no JSON.")


def response_of(error: BaseException) -> Response:
    refused = as_request_error(error)
    return Json(body_of(refused), refused.status, headers=dict(refused.headers))
