"""Makes Ctrl-C speak: a word at once, an orderly end where work is kept, and a second one that ends at once."""

import json
import os
import signal
from types import FrameType

from kraq_dspy.cli.shared.terminal import errors

INTERRUPTED = 130


def on_interrupt() -> None:
    """The first SIGINT raises KeyboardInterrupt, as ever, after a word; the next one ends the process, with 130.

    What is kept is committed as it is made, so an end at once loses what is in flight and no more.
    """
    signal.signal(signal.SIGINT, _first)


def _first(number: int, frame: FrameType | None) -> None:
    signal.signal(signal.SIGINT, _second)
    _say("Stopping; Ctrl-C again ends at once.")
    signal.default_int_handler(number, frame)


def _second(number: int, frame: FrameType | None) -> None:
    if errors.is_terminal:
        os.write(2, b"\x1b[?25h")  # the bars hide the cursor
    _say("Ended.")
    os._exit(INTERRUPTED)


def _say(message: str) -> None:
    """By the system call: a signal may come while something else is being printed."""
    line = json.dumps({"level": "warning", "logger": __name__, "message": message}) if errors.quiet else message
    os.write(2, f"\n{line}\n".encode() if not errors.quiet else f"{line}\n".encode())
