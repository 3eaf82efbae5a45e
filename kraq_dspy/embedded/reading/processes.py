"""Parses in processes of their own, so that the one that asks stays small and every core works.

A process is started when there is a batch for it, and ends with its input: nothing is left of it when the one that
began it is gone. Where that one has loaded the parser already, it parses a few passages itself. Analyses do not depend
on how many processes there are: a batch is parsed as a whole.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from queue import Empty, SimpleQueue
from types import ModuleType
from typing import Any, Self

from kraq_dspy._internal.concurrency import usable_cores
from kraq_dspy.embedded.reading.pipeline import pipeline, pipeline_folder
from kraq_dspy.embedded.reading.reader import reader
from kraq_dspy.errors import ModelError
from kraq_dspy.language.analysis import to_values

MOST = 8  # processes, of 170 MB each: as many parse faster than one process takes in what they say
EACH = 100  # passages for which it is worth to start one more, which takes a second


class Parsers:
    """Processes that parse batches of passages, as many as there are cores. Use it in a `with` block.

    >>> with Parsers(1) as parsers:
    ...     [[title, sentences]] = parsers.submit(["Ada met Charles in London."]).result()
    >>> [text for text, *_ in sentences]
    ['Ada met Charles in London.']
    """

    def __init__(self, n_passages: int) -> None:
        """For so many passages, about."""
        self.count = max(1, min(MOST, usable_cores(), n_passages // EACH))
        self._is_here = n_passages < EACH and pipeline.cache_info().currsize > 0
        self._threads = ThreadPoolExecutor(self.count, thread_name_prefix="kraq-parse")
        self._idle: SimpleQueue[subprocess.Popen[str]] = SimpleQueue()
        self._started: list[subprocess.Popen[str]] = []

    def submit(self, passages: Sequence[str]) -> Future[list[Any]]:
        """The analyses of passages in English, as `from_values` reads them. The future raises ModelError if the
        process ends before it answers; this raises what `pipeline_folder` raises."""
        if self._is_here or len(reader().shipped(passages)) == len(passages):
            done: Future[list[Any]] = Future()
            done.set_result([to_values(analysis) for analysis in reader().analyses(passages)])
            return done
        pipeline_folder()
        return self._threads.submit(self._answer, json.dumps(passages))

    def _answer(self, request: str) -> list[Any]:
        try:
            process = self._idle.get_nowait()
        except Empty:
            process = _start()
            self._started.append(process)

        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(request + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except OSError:
            line = ""
        if not line:
            raise ModelError(
                f"The process that parses English ended (exit code {process.wait()}). If it says nothing above, was "
                "there memory for it? It takes some 200 MB. The same command resumes."
            )
        self._idle.put(process)
        analyses: list[Any] = json.loads(line)
        return analyses

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        """End the processes, also in the middle of a batch."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        for process in self._started:
            process.kill()
        self._threads.shutdown()
        for process in self._started:
            process.kill()  # one that a thread had only begun to start
            process.communicate()


def _start() -> "subprocess.Popen[str]":
    """A process that finds the modules of this one. One thread for each product: every core has a process."""
    folders = os.pathsep.join(folder or os.getcwd() for folder in sys.path)
    return subprocess.Popen(
        [sys.executable, "-P", "-m", __name__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={"OMP_NUM_THREADS": "1", **os.environ, "PYTHONPATH": folders},
        text=True,
    )


def import_less() -> None:
    """Leave out of what spaCy imports what no parse needs: torch, which it takes if it is installed (150 MB), and its
    command line. For a process that does nothing else."""
    sys.modules["torch"] = None  # type: ignore[assignment]
    command_line, info = ModuleType("spacy.cli"), ModuleType("spacy.cli.info")
    vars(command_line)["__path__"] = []
    vars(info)["info"] = None
    sys.modules |= {command_line.__name__: command_line, info.__name__: info}


def main() -> None:
    """Answer each line of passages with a line of their analyses."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches every process; the other one ends this
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # nobody waits for the reply
    import_less()
    with os.fdopen(os.dup(1), "w") as replies:
        os.dup2(2, 1)  # what a library prints is no reply
        for line in sys.stdin:
            analyses = reader().analyses(json.loads(line))
            print(json.dumps([to_values(analysis) for analysis in analyses]), file=replies, flush=True)


if __name__ == "__main__":
    main()
