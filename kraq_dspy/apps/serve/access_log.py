"""Writes the access log: one line of JSON for each request."""

import logging
import sys
from dataclasses import asdict
from datetime import UTC, datetime
from logging.handlers import WatchedFileHandler

import orjson

from kraq_dspy.apps.serve.watch import RequestRecord
from kraq_dspy.errors import ConfigError


class AccessLog:
    """A line of JSON for each request, at the end of a file, or on standard output for "-".

    A file that was moved away, as logrotate does, is begun again. Raises ConfigError for one that cannot be written.
    """

    def __init__(self, target: str) -> None:
        self._logger = logging.Logger("kraq access")
        handler: logging.Handler
        try:
            handler = (
                logging.StreamHandler(sys.stdout) if target == "-" else WatchedFileHandler(target, encoding="utf-8")
            )
        except OSError as error:
            raise ConfigError(f"The access log {target!r} cannot be written: {error.strerror}.") from error
        self._logger.addHandler(handler)

    def note(self, record: RequestRecord, seconds: float) -> None:
        line = {"time": datetime.now(UTC).isoformat(timespec="milliseconds"), **asdict(record)}
        line |= {"seconds": round(seconds, 4), "cost": round(record.cost, 8)}
        self._logger.info(orjson.dumps(line).decode())
