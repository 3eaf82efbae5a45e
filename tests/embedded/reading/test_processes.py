"""Passages are parsed in processes of their own, which say what this one would and end when they are done."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kraq_dspy.embedded.reading.processes import EACH, Parsers
from kraq_dspy.embedded.reading.reader import Reader
from kraq_dspy.errors import ModelError
from kraq_dspy.language.analysis import from_values

PASSAGES = [f"Mira Tolan repaired {number} lamps in Harrow before the storm came." for number in range(40)]
EIGHT = [PASSAGES[start : start + 5] for start in range(0, 40, 5)]


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def pids(parsers: Parsers) -> list[int]:
    return [process.pid for process in parsers._started]


def test_as_many_processes_as_cores_say_what_one_would(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kraq_dspy.embedded.reading.processes.usable_cores", lambda: 2)
    with Parsers(5 * EACH) as parsers:
        coming = [parsers.submit(batch) for batch in EIGHT]
        analyses = [[from_values(values) for values in batch.result()] for batch in coming]
        assert len(pids(parsers)) == 2
    assert analyses == [Reader().analyses(batch) for batch in EIGHT]


def test_the_processes_end_with_the_block_also_in_the_middle_of_a_batch() -> None:
    with Parsers(2 * EACH) as parsers:
        assert parsers.submit(PASSAGES[:1]).result()
        parsers.submit(PASSAGES * 50)
        started = pids(parsers)
        assert started
    assert not any(map(is_running, started))


def test_a_process_that_was_killed_is_an_error_and_no_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kraq_dspy.embedded.reading.processes.usable_cores", lambda: 1)
    with Parsers(5 * EACH) as parsers:
        batches = [parsers.submit(PASSAGES[:1]), parsers.submit(PASSAGES[1:2])]
        assert all(batch.result() for batch in batches)
        [pid] = pids(parsers)  # one core
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(ModelError, match=r"ended \(exit code -9\)"):
            parsers.submit(PASSAGES[:1]).result()


def test_a_process_outlives_ctrl_c_and_not_the_one_that_began_it() -> None:
    command = [sys.executable, "-m", "kraq_dspy.embedded.reading.processes"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as worker:
        assert worker.stdin is not None
        assert worker.stdout is not None
        worker.stdin.write('["Mira Tolan repaired the lamp."]\n')
        worker.stdin.flush()
        assert "Mira Tolan" in worker.stdout.readline()
        worker.send_signal(signal.SIGINT)
        worker.stdin.write('["Mira Tolan repaired the tower."]\n')
        worker.stdin.flush()
        assert "tower" in worker.stdout.readline()
        worker.stdin.close()
        assert worker.wait(60) == 0


def test_a_parse_needs_neither_torch_nor_the_command_line_of_spacy(tmp_path: Path) -> None:
    code = """
import sys
from kraq_dspy.embedded.reading.reader import Reader
from kraq_dspy.embedded.reading.processes import import_less
import_less()
Reader().analyses(["Mira Tolan repaired the lamp."])
print([name for name in ("torch", "typer", "weasel", "dspy") if sys.modules.get(name)])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
