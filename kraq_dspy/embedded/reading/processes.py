"""Parses in processes of their own, so that the one that asks stays small and every core works.

A process is started when there is a batch for it, and knows nothing but the passages. Analyses do not depend on how
many there are: a batch is parsed as a whole. Where this process has loaded the parser already, it parses a few passages
itself.
"""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Any, Self

from kraq_dspy._internal.cores import usable_cores
from kraq_dspy.embedded.reading.analysis import to_values
from kraq_dspy.embedded.reading.pipeline import pipeline, pipeline_folder
from kraq_dspy.embedded.reading.reader import reader
from kraq_dspy.errors import ModelError

MOST = 8  # processes, of 170 MB each: as many parse faster than one process takes in what they say
EACH = 100  # passages for which it is worth to start one more, which takes a second
_WORKER = "kraq_dspy.embedded.reading.worker"


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
        if self._is_here:
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

    def close(self) -> None:
        """End the processes, also in the middle of a batch. May be called twice."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        for process in self._started:
            process.kill()
        self._threads.shutdown()
        for process in self._started:
            process.kill()  # one that a thread had only begun to start
            process.communicate()
        self._started.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _start() -> "subprocess.Popen[str]":
    """A process that finds the modules of this one. One thread for each product: every core has a process."""
    folders = os.pathsep.join(folder or os.getcwd() for folder in sys.path)
    return subprocess.Popen(
        [sys.executable, "-P", "-m", _WORKER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={"OMP_NUM_THREADS": "1", **os.environ, "PYTHONPATH": folders},
        text=True,
        encoding="utf-8",
    )
