"""Keeps what a run leaves on disk: a JSON line for each question, and what made them, to remake any table from.

RUN/run.json      the header: settings, seeds, models, index fingerprint
RUN/rows.jsonl    the rows, written as they come; a killed run loses at most the line it was writing
"""

import dataclasses
import json
import math
import os
import platform
import resource
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from kraq_dspy._internal.files import replaced
from kraq_dspy.asset.store.manifest import now
from kraq_dspy.errors import EvaluationError
from kraq_dspy.eval.datasets import Example
from kraq_dspy.eval.latency import Timings
from kraq_dspy.ports import Progress
from kraq_dspy.steps.failures import StageFailures
from kraq_dspy.steps.journal import JournalFile, own_file

HEADER_FILE = "run.json"
ROWS_FILE = "rows.jsonl"
ROWS = "the rows of a run"
_MAY_DIFFER = {"about", "created_at", "made_with", "asked", "not_asked", "passages"}
_SHORT = 160  # characters: two titles


@dataclass(frozen=True, slots=True)
class ResultRow:
    """One question, answered by one system. `failure` is None, or why there is no answer; then there are no metrics.

    `failed_metrics` maps a metric that could not be computed (a judge that said "maybe") to the reason. `hit_ids` are
    chunk ids, best first. `timings` as in `latency`. Raises EvaluationError for a metric that is NaN or infinite.
    """

    question_id: str
    system: str = ""
    answer: str = ""
    metrics: Mapping[str, float] = field(default_factory=dict)
    failed_metrics: Mapping[str, str] = field(default_factory=dict)
    failure: str | None = None
    timings: Timings = field(default_factory=dict)
    hit_ids: tuple[str, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, value in self.metrics.items():
            if not math.isfinite(value):
                raise EvaluationError(f"Question {self.question_id!r}: the metric {name!r} is {value}.")
        if self.metrics.keys() & self.failed_metrics.keys() or (self.failure is not None and self.metrics):
            raise EvaluationError(
                f"Question {self.question_id!r} has both a failure and the metrics {dict(self.metrics)}."
            )


@dataclass(frozen=True, slots=True)
class RunHeader:
    """What made the rows. `models` maps a role ("answerer", "judge", "encoder", "bertscore") to a model's name.

    `made_with` says where a run was begun (versions, device): it may go on elsewhere.
    """

    name: str
    dataset: str
    settings: Mapping[str, Any]
    seeds: Mapping[str, int]
    models: Mapping[str, str]
    index_fingerprint: str = ""
    library_version: str = field(default_factory=lambda: version("kraq-dspy"))
    created_at: str = field(default_factory=now)
    extra: Mapping[str, Any] = field(default_factory=dict)
    made_with: Mapping[str, str] = field(default_factory=lambda: machine())


class RowWriter:
    """Appends rows to a run's folder, or keeps them in memory without one; each is on disk when `write` returns.

    It continues a folder with rows if that run has the same header except for time and place, and
    no more questions than this one. Otherwise it raises EvaluationError, which names the
    difference. Raises IndexLockedError while another process writes rows there.
    """

    def __init__(self, folder: Path | None, header: RunHeader) -> None:
        path = None
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            path = folder / ROWS_FILE
            path.touch()
        self._journal = JournalFile(path, _keyed_row, ROWS, EvaluationError, allow_nan=False)
        if folder is not None:
            _write_header(folder / HEADER_FILE, header, anew=not self._journal)

    @property
    def done(self) -> Collection[tuple[str, str]]:
        """The (system, question id) pairs that have a row."""
        return self._journal.keys()

    def write(self, row: ResultRow) -> None:
        """Raises EvaluationError when the system has answered that question already."""
        if (row.system, row.question_id) in self.done:
            raise EvaluationError(f"Question {row.question_id!r} of {row.system!r} is already in {ROWS_FILE}.")
        self._journal.keep(dataclasses.asdict(row))

    def rows(self) -> list[ResultRow]:
        """All that there are, in order."""
        return list(self._journal.values())


def write_rows(
    name: str,
    ask: Callable[[Sequence[Example]], Iterable[ResultRow]],
    examples: Sequence[Example],
    writer: RowWriter,
    progress: Progress,
) -> None:
    """A row for each question that has none yet, which `ask` is given. Raises ModelError if nothing but failures
    come."""
    todo = [example for example in examples if (name, example.id) not in writer.done]
    stage = f"ask {name}"  # a system may be called as what was prepared for it: "k2rag"
    progress.start(stage, len(examples))
    progress.advance(stage, len(examples) - len(todo))

    failures = StageFailures(
        name, f"questions of {name!r}", again="run the same command with --retry-failed: what was done is kept"
    )
    if len(todo) < len(examples):
        failures.succeed()

    for row in ask(todo):
        writer.write(row)
        progress.advance(stage)
        if row.failure is None:
            failures.succeed()
        else:
            failures.add(row.question_id, row.failure)
    progress.finish(stage)


def read_rows(path: Path) -> list[ResultRow]:
    """The rows of a `rows.jsonl`, in order. Raises EvaluationError naming a line that is not a row."""
    rows = []
    with path.open(encoding="utf-8", errors="surrogatepass") as lines:
        for number, line in enumerate(lines, start=1):
            try:
                rows.append(_row(json.loads(line)))
            except (json.JSONDecodeError, TypeError) as error:
                raise EvaluationError(f"{path.name}, line {number} is not a row: {error}") from error
    return rows


def _row(line: Mapping[str, Any]) -> ResultRow:
    return ResultRow(**{**line, "hit_ids": tuple(line.get("hit_ids", ()))})


def _keyed_row(line: Mapping[str, Any]) -> tuple[tuple[str, str], ResultRow]:
    row = _row(line)
    return (row.system, row.question_id), row


def read_run(folder: Path) -> tuple[RunHeader, list[ResultRow]]:
    """A run's header and rows. Raises EvaluationError when the folder holds no run."""
    path = folder / HEADER_FILE
    if not path.is_file():
        raise EvaluationError(f"{str(folder)!r} holds no run: it has no {HEADER_FILE}.")
    return RunHeader(**json.loads(path.read_text("utf-8"))), read_rows(folder / ROWS_FILE)


def forget_failed(folder: Path) -> int:
    """Drops the rows that failed, so that they are tried again; says how many. Raises IndexLockedError while another
    process writes rows there."""
    path = folder / ROWS_FILE
    if not path.exists():
        return 0

    own_file(path, ROWS)  # raises while a run is under way
    failed = {number for number, row in enumerate(read_rows(path)) if row.failure is not None or row.failed_metrics}
    if failed:
        lines = path.read_bytes().splitlines(keepends=True)
        with replaced(path) as draft:
            draft.write_bytes(b"".join(line for number, line in enumerate(lines) if number not in failed))
    return len(failed)


def _write_header(path: Path, header: RunHeader, *, anew: bool) -> None:
    fields = json.loads(json.dumps(dataclasses.asdict(header), allow_nan=False))
    if path.exists() and not anew:
        stored = json.loads(path.read_text("utf-8"))
        differing = list(_differences(stored, fields))
        before, now = (each["extra"].get("asked", 0) for each in (stored, fields))
        if now < before:
            differing.append(f"asked {before}, now {now}")
        if differing:
            raise EvaluationError(
                f"{str(path.parent)!r} holds a run that was made otherwise: {', '.join(differing)}. The "
                "command that began it goes on with it; for another run name another folder (--out)."
            )
        if now == before:
            return

    with replaced(path) as draft:
        draft.write_text(json.dumps(fields, indent=2, ensure_ascii=False) + "\n", "utf-8")


def _differences(stored: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """The innermost names whose values differ, with both values if they are numbers or short texts."""
    for key in sorted({*stored, *now} - _MAY_DIFFER):
        before, after = stored.get(key), now.get(key)
        if isinstance(before, dict) and isinstance(after, dict):
            yield from _differences(before, after)
        elif before != after:
            is_short = len(f"{before}{after}") <= _SHORT
            yield f"{key} {before}, now {after}" if is_short else key


def machine() -> dict[str, str]:
    """Python's version, the processor, and the accelerator that the process has loaded."""
    cuda = _cuda()
    return {
        "python": platform.python_version(),
        "processor": f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores",
        "device": "cpu" if cuda is None else str(cuda.get_device_name()),
    }


def memory_mb() -> dict[str, float]:
    """Megabytes that this process holds now, and the most that it had on an accelerator; servers' are not in it."""
    try:
        resident = int(Path("/proc/self/statm").read_text("ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:  # not Linux: the most so far stands for what is held
        resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    held = {"memory_mb": resident / 1e6}
    if (cuda := _cuda()) is not None:
        held["gpu_mb"] = cuda.max_memory_allocated() / 1e6
    return held


def _cuda() -> Any | None:
    """torch's module for the GPU, where torch is loaded and has one; another thread may be loading it just now."""
    cuda: Any = getattr(sys.modules.get("torch"), "cuda", None)
    is_available = getattr(cuda, "is_available", None)
    return cuda if is_available is not None and is_available() else None


def clipped(text: str, most: int = 200) -> str:
    """The text on one line, of at most `most` characters."""
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1] + "…"
