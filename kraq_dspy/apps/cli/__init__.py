"""Runs the program `kraq`, and makes Ctrl-C speak: a word at once, an orderly end where work is kept, and a second one
that ends at once.

A file a command; heavy imports wait until a command runs.
"""

import contextlib
import gc
import os
import signal
import sys
import threading
import time

__all__ = ["main"]

INTERRUPTED = 130
_spoken = threading.Event()
_APART_S = 0.3  # processes forked from this one write to the same pipe: one key press, several signals


def main() -> None:
    """Runs the program; listens to Ctrl-C before anything slow is imported."""
    on_interrupt()
    gc.disable()  # until the command runs: of what is imported nothing is garbage
    try:
        from kraq_dspy.apps.cli.program import run

        run()
    except KeyboardInterrupt:
        last_word()
        sys.exit(INTERRUPTED)
    except SystemExit as ended:
        if ended.code == INTERRUPTED:  # typer's own way to end
            last_word()
        raise


def on_interrupt() -> None:
    """Listens for SIGINT in a thread, told by the system itself, so also while the main thread is deep in C code.

    Python's own handling stays: KeyboardInterrupt, or the end of asyncio's tasks. What is kept is committed as it is
    made, so an end at once loses what is in flight and no more.
    """
    if sys.platform == "win32":  # wants a socket there
        return
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    threading.Thread(target=_listen, args=(reading,), name="interrupts", daemon=True).start()


def last_word() -> None:
    """Says that it was interrupted if nothing has been said: libraries load for seconds without letting the
    listening thread run."""
    if not _spoken.is_set():
        _say("Interrupted.")


def _listen(reading: int) -> None:
    first = None
    while number := os.read(reading, 1):
        if number[0] != signal.SIGINT:
            continue
        if first is None:
            first = time.monotonic()
            _say("Stopping; Ctrl-C again ends at once.")
        elif time.monotonic() - first > _APART_S:
            if os.isatty(2):
                with contextlib.suppress(OSError):
                    os.write(2, b"\x1b[?25h")  # the bars hide the cursor
            _say("Ended.")
            os._exit(INTERRUPTED)


def _say(message: str) -> None:
    """Print a message by the system call: the main thread may be printing."""
    _spoken.set()
    with contextlib.suppress(OSError):  # nobody reads it any more, as in "2>&1 | head"
        os.write(2, f"\n{message}\n".encode())
