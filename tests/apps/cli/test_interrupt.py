"""Ctrl-C as a shell user meets it: a word at once, 130 at the end, and a second one that does not wait."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from kraq_dspy.apps import cli

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")

WAITING = """
import sys, time
import kraq_dspy.apps.cli.program as program
from kraq_dspy.apps.cli import main
def run():
    try:
        print("ready", flush=True)
        time.sleep(60)
    finally:
        if STUBBORN:
            print("stopping", flush=True)
            time.sleep(60)
program.run = run
main()
"""


def started(*, stubborn: bool) -> subprocess.Popen[str]:
    program = WAITING.replace("STUBBORN", str(stubborn))
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def test_the_first_one_ends_in_good_order_with_130() -> None:
    process = started(stubborn=False)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=50)
    assert process.returncode == 130
    assert "Traceback" not in errors
    assert "Interrupted." in errors or "Stopping" in errors


def test_the_first_one_is_answered_at_once_and_a_second_one_ends_what_does_not_stop() -> None:
    process = started(stubborn=True)
    assert process.stdout is not None
    assert process.stderr is not None
    process.send_signal(signal.SIGINT)
    assert process.stdout.readline() == "stopping\n"
    assert "Stopping" in process.stderr.readline() + process.stderr.readline()
    time.sleep(0.5)  # apart enough to be a second press
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=50)
    assert process.returncode == 130


def test_a_word_that_nobody_reads_any_more_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(file: int, content: bytes) -> int:
        raise BrokenPipeError

    monkeypatch.setattr(cli, "_spoken", threading.Event())
    monkeypatch.setattr(os, "write", broken)
    cli._say("Stopping")
    assert cli._spoken.is_set()
