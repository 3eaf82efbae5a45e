"""Keeps what a run leaves on disk: a JSON line for each question, and what made them, to remake any table from.

RUN/run.json      the header: settings, seeds, models, index fingerprint
RUN/rows.jsonl    the rows, written as they come; a killed run loses at most the line it was writing
"""

import dataclasses
import functools
import hashlib
import json
import math
import os
import platform
import resource
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from kraq_dspy._internal.concurrency import as_done
from kraq_dspy._internal.files import append_line, drop_torn_line, replaced
from kraq_dspy.errors import EvaluationError
from kraq_dspy.eval.datasets import Dataset, Example
from kraq_dspy.eval.latency import Timings
from kraq_dspy.models.lms.local_models import GGUF, TRANSFORMERS, with_adapter
from kraq_dspy.ports import Progress
from kraq_dspy.records import content_id
from kraq_dspy.settings import ROLES, Settings
from kraq_dspy.steps.kept import StageFailures

HEADER_FILE = "run.json"
ROWS_FILE = "rows.jsonl"
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
        both = self.metrics.keys() & self.failed_metrics.keys()
        if both or (self.failure is not None and self.metrics):
            raise EvaluationError(
                f"Question {self.question_id!r} has both a failure and the metrics {dict(self.metrics)}."
            )


@dataclass(frozen=True, slots=True)
class RunHeader:
    """What made the rows. `models` maps a role ("answerer", "judge", "encoder", "bertscore") to a model's name.

    `made_with` says where a run was begun (commit, machine, device): it may go on elsewhere.
    """

    name: str
    dataset: str
    settings: Mapping[str, Any]
    seeds: Mapping[str, int]
    models: Mapping[str, str]
    index_fingerprint: str = ""
    library_version: str = ""
    created_at: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)
    made_with: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MetricColumn:
    """One metric over a run: the score of each question that has one, and why the others have none."""

    scores: Mapping[str, float]
    failures: Mapping[str, str]


class RowWriter:
    """Appends rows to a run's folder; each is on disk when `write` returns.

    A folder that already has rows is continued, if its header is the same but for `created_at` and `made_with`, or is
    `earlier`: that of a run which asked less and now asks more. Else EvaluationError, which names what differs. One
    without rows, of a run that was ended before its first, begins anew.
    `done` holds the (system, question id) pairs that are already there. A torn last line is dropped.
    """

    def __init__(self, folder: Path, header: RunHeader, earlier: RunHeader | None = None) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._path = folder / ROWS_FILE
        drop_torn_line(self._path)
        rows = read_rows(self._path) if self._path.exists() else []
        _write_header(folder / HEADER_FILE, header, earlier, anew=not rows)
        self.done = {(row.system, row.question_id) for row in rows}
        self._path.touch()

    def write(self, row: ResultRow) -> None:
        """Raises EvaluationError when the system has answered that question already."""
        key = (row.system, row.question_id)
        if key in self.done:
            raise EvaluationError(f"Question {row.question_id!r} of {row.system!r} is already in {self._path.name}.")
        append_line(self._path, json.dumps(dataclasses.asdict(row), ensure_ascii=False, allow_nan=False))
        self.done.add(key)

    def rows(self) -> list[ResultRow]:
        """All that are on disk, in order."""
        return read_rows(self._path)


class RowList:
    """Keeps rows in memory, as `RowWriter` does on disk."""

    def __init__(self) -> None:
        self._rows: list[ResultRow] = []
        self.done: set[tuple[str, str]] = set()

    def write(self, row: ResultRow) -> None:
        self._rows.append(row)
        self.done.add((row.system, row.question_id))

    def rows(self) -> list[ResultRow]:
        return list(self._rows)


def write_rows(
    name: str,
    work: Callable[[Example], ResultRow],
    examples: Sequence[Example],
    writer: RowWriter | RowList,
    *,
    at_once: int,
    progress: Progress,
) -> None:
    """A row for each question that has none yet, made by `work`. Raises ModelError where nothing but failures come."""
    todo = [example for example in examples if (name, example.id) not in writer.done]
    stage = f"ask {name}"  # a system may be called as what was prepared for it: "k2rag"
    progress.start(stage, len(examples))
    progress.advance(stage, len(examples) - len(todo))
    failures = StageFailures(
        name, f"questions of {name!r}", again="run the same command with --retry-failed: what was done is kept"
    )
    if len(todo) < len(examples):
        failures.succeed()
    for row in as_done(work, todo, limit=at_once):
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
                row = ResultRow(**json.loads(line))
            except (json.JSONDecodeError, TypeError) as error:
                raise EvaluationError(f"{path.name}, line {number} is not a row: {error}") from error
            rows.append(dataclasses.replace(row, hit_ids=tuple(row.hit_ids)))
    return rows


def read_run(folder: Path) -> tuple[RunHeader, list[ResultRow]]:
    """A run's header and rows. Raises EvaluationError when the folder holds no run."""
    return read_header(folder), read_rows(folder / ROWS_FILE)


def read_header(folder: Path) -> RunHeader:
    """Raises EvaluationError when the folder holds no run."""
    path = folder / HEADER_FILE
    if not path.is_file():
        raise EvaluationError(f"{str(folder)!r} holds no run: it has no {HEADER_FILE}.")
    return RunHeader(**json.loads(path.read_text("utf-8")))


def metric_column(rows: Iterable[ResultRow], metric: str) -> MetricColumn:
    """The scores of one metric by question id; a row that failed, or whose metric failed, is among the failures.

    Raises EvaluationError when a row has neither a score nor a failure, or a question occurs twice (give the rows of
    one system).
    """
    scores: dict[str, float] = {}
    failures: dict[str, str] = {}
    for row in rows:
        if row.question_id in scores or row.question_id in failures:
            raise EvaluationError(f"Question {row.question_id!r} occurs twice; give the rows of one system at a time.")
        reason = row.failure if row.failure is not None else row.failed_metrics.get(metric)
        if reason is not None:
            failures[row.question_id] = reason
        elif metric in row.metrics:
            scores[row.question_id] = row.metrics[metric]
        else:
            raise EvaluationError(
                f"Question {row.question_id!r} has no {metric!r}; it has {', '.join(row.metrics) or 'no metrics'}."
            )
    return MetricColumn(scores, failures)


def _write_header(path: Path, header: RunHeader, earlier: RunHeader | None, *, anew: bool) -> None:
    fields = _fields(header)
    if path.exists() and not anew:
        stored = json.loads(path.read_text("utf-8"))
        differing = list(_differences(stored, fields))
        if not differing:
            return
        if earlier is None or any(_differences(stored, _fields(earlier))):
            raise EvaluationError(
                f"{str(path.parent)!r} holds a run that was made otherwise: {', '.join(differing)}. Continue it as it "
                "was started, or write to another folder."
            )
    with replaced(path) as draft:
        draft.write_text(json.dumps(fields, indent=2, ensure_ascii=False) + "\n", "utf-8")


def _fields(header: RunHeader) -> dict[str, Any]:
    fields: dict[str, Any] = json.loads(json.dumps(dataclasses.asdict(header), allow_nan=False))
    return fields


def _differences(stored: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """The innermost names whose values differ, with both values where they are numbers or short texts."""
    for key in sorted({*stored, *now} - {"about", "created_at", "judge_agreement", "made_with"}):
        before, after = stored.get(key), now.get(key)
        if isinstance(before, dict) and isinstance(after, dict):
            yield from _differences(before, after)
        elif before != after:
            is_short = len(f"{before}{after}") <= _SHORT
            yield f"{key} {before}, now {after}" if is_short else key


_WEIGHTS = (".safetensors", ".bin", ".gguf")


def data_checksum(dataset: Dataset, examples: Sequence[Example]) -> str:
    """32 hexadecimal digits that depend on the corpus and on the questions that are asked, not on their files."""
    corpus = [(document.id, document.title, document.text) for document in dataset.documents]
    content = [(each.id, each.question, each.answers, each.answer_items, each.supporting_ids) for each in examples]
    return content_id("data", json.dumps(corpus), json.dumps(content))


def model_checksums(settings: Settings) -> dict[str, str]:
    """SHA-256 of the weights of every model that lies on this disk, by its name; the others are a server's to know."""
    sums = {}
    for role in ROLES:
        name = with_adapter(settings.role(role)).model
        for kind in (GGUF, TRANSFORMERS):
            path = Path(name.removeprefix(kind).partition("#")[0])
            if name.startswith(kind) and path.exists():
                files = [path] if path.is_file() else [each for each in path.iterdir() if each.suffix in _WEIGHTS]
                sums[name] = _sha256(tuple(sorted(files)))
    return sums


def machine() -> dict[str, str]:
    """Commit, versions, processor, memory, and the accelerator that the process has loaded."""
    facts = {
        "commit": _commit(),
        "library": f"kraq-dspy {version('kraq-dspy')}",
        "python": platform.python_version(),
        "processor": f"{_processor()}, {os.cpu_count()} cores",
        "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 1e9:.0f} GB",
        "device": _device(),
    }
    return {name: text for name, text in facts.items() if text}


def memory_mb() -> dict[str, float]:
    """Megabytes that this process holds now, and the most that it had on an accelerator; servers' are not in it."""
    held = {"memory_mb": _resident() / 1e6}
    if (cuda := _cuda()) is not None:
        held["gpu_mb"] = cuda.max_memory_allocated() / 1e6
    return held


def _resident() -> int:
    try:
        return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:  # not Linux: the most so far stands for what is held
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _device() -> str:
    cuda = _cuda()
    return "cpu" if cuda is None else str(cuda.get_device_name())


def _cuda() -> Any | None:
    """torch's module for the GPU, where torch is loaded and has one; another thread may be loading it just now."""
    cuda: Any = getattr(sys.modules.get("torch"), "cuda", None)
    is_available = getattr(cuda, "is_available", None)
    return cuda if is_available is not None and is_available() else None


@functools.cache
def _commit() -> str:
    """Of the working copy that this package lies in, with "+" where it has changes; "" for an installed one."""
    place = Path(__file__).resolve().parents[2]
    if not (place / ".git").exists():
        return ""
    try:
        head, status = (
            subprocess.run(
                ["git", "-C", str(place), *words], capture_output=True, text=True, check=True, timeout=10
            ).stdout.strip()
            for words in (["rev-parse", "HEAD"], ["status", "--porcelain", "--untracked-files=no"])
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return f"{head[:12]}{'+' if status else ''}"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


@functools.lru_cache(maxsize=64)
def _sha256(files: tuple[Path, ...]) -> str:
    digest = hashlib.sha256()
    for path in files:
        with path.open("rb") as file:
            hashlib.file_digest(file, lambda: digest)
    return digest.hexdigest()
