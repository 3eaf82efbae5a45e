"""Sets up what `kraq` logs: lines for people, or one JSON object a line (`--log-json`)."""

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any

from kraq_dspy.apps.cli.terminal import errors

_OWN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class JsonFormatter(logging.Formatter):
    """`time` (ISO 8601, UTC), `level`, `logger`, `message`, `error` where there is one, and what the call gave as
    `extra`: the stage, the item."""

    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        entry |= {name: value for name, value in vars(record).items() if name not in _OWN}
        if record.exc_info and record.exc_info[0] is not None:
            entry["error"] = self.formatException(record.exc_info)
        return json.dumps(entry, ensure_ascii=False, default=str)


class _StandardError(logging.Handler):
    """Writes to what standard error is at the time."""

    def emit(self, record: logging.LogRecord) -> None:
        print(self.format(record), file=sys.stderr, flush=True)


_handler = _StandardError()


def set_up_logs(*, verbose: bool, as_json: bool) -> None:
    """Logs go to standard error. As JSON they are all that goes there, from level INFO on."""
    _handler.setFormatter(JsonFormatter() if as_json else logging.Formatter("%(levelname)s %(name)s: %(message)s"))
    logging.getLogger().addHandler(_handler)  # once, however often it is said
    logging.getLogger().setLevel(logging.INFO if verbose or as_json else logging.ERROR)
    for talkative in ("httpx", "httpcore", "urllib3"):
        logging.getLogger(talkative).setLevel(logging.WARNING)
    # Whoever has several servers wants to know that one is gone.
    logging.getLogger("kraq_dspy.models.lms.transport").setLevel(
        logging.NOTSET if verbose or as_json else logging.WARNING
    )
    # A small model's list that runs to max_tokens is kept as far as it is complete: nothing to warn of in every call.
    logging.getLogger("dspy.clients.lm").setLevel(logging.NOTSET if verbose or as_json else logging.ERROR)
    errors.quiet = as_json


def tell_what_is_cut_off() -> None:
    """A person who asks is told that a prompt was too long and went out shorter; a build has too many to tell."""
    logging.getLogger("kraq_dspy._internal.step").setLevel(logging.WARNING)
