"""Shows how a long run goes, as bars on standard error."""

import logging
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from time import monotonic

from rich import progress

from kraq_dspy.apps.cli.model_options import Limits
from kraq_dspy.apps.cli.terminal import command, compact, counted, errors, grid, note, output, print_json, say, short
from kraq_dspy.asset.store.states import former_states
from kraq_dspy.indexing.index.report import BuildReport
from kraq_dspy.programs.kraq.asked_by import asked_in_words
from kraq_dspy.records import Failure, Usage
from kraq_dspy.settings import Settings

logger = logging.getLogger(__name__)

LINE_EVERY = 30.0  # seconds between two lines of progress where there is no terminal

LABELS = {"ask": "questions", "word": "wordings", "judge": "evidence", "load": "read", "qa pairs": "question pairs"}


def label(stage: str) -> str:
    """Return what people call a stage: "ask" is the one that asks the model for questions."""
    return LABELS.get(stage, stage)


def has_tokens(models: Iterable[str]) -> bool:
    """Whether one of the models is a language model: the embedded one has calls, but no tokens worth the name."""
    return any(model != "embedded" for model in models)


class Bars:
    """`kraq_dspy.ports.Progress` as bars: counts, tokens, time left. Without a terminal a line now and then.

    `kept` is said when the run is interrupted. Tokens are shown where the settings name a language model: those of the
    embedded one cost nothing.
    """

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        quiet: bool = False,
        kept: str = "What was done is kept; the same command resumes from there.",
    ) -> None:
        self._progress = progress.Progress(
            progress.SpinnerColumn(),
            progress.TextColumn("{task.description:<14}", markup=False),
            progress.BarColumn(bar_width=12),
            progress.MofNCompleteColumn(),
            progress.TextColumn("{task.fields[tokens]}", style="cyan"),
            progress.TimeElapsedColumn(),
            progress.TimeRemainingColumn(),
            console=errors,
            disable=quiet or not errors.is_terminal,
        )
        self._writes_lines = not quiet and not errors.is_terminal
        self._last_line = monotonic()
        self._shows_tokens = settings is not None and has_tokens(role.model for role in settings.roles.values())
        self._kept = kept
        self._tasks: dict[str, progress.TaskID] = {}
        self._tokens: dict[str, list[int]] = {}
        self._finished: set[str] = set()

    def __enter__(self) -> "Bars":
        self._progress.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *exc_info: object) -> None:
        self._progress.stop()
        if kind is not None and issubclass(kind, KeyboardInterrupt):
            errors.print(f"[yellow]Interrupted.[/] {self._kept}")

    def start(self, stage: str, total: int | None) -> None:
        """A stage that was finished, as of an index before, begins anew."""
        if stage in self._tasks and stage not in self._finished:
            return
        if stage in self._finished:
            self._finished.remove(stage)
            self._progress.reset(self._tasks[stage], tokens="")
            self._progress.tasks[self._tasks[stage]].total = total  # which `reset` cannot set to None
        else:
            self._tasks[stage] = self._progress.add_task(label(stage), total=total, tokens="")
        self._tokens[stage] = [0, 0]
        logger.info("%s begins", stage)

    def advance(self, stage: str, done: int = 1, *, prompt_tokens: int = 0, completion_tokens: int = 0) -> None:
        if stage not in self._tasks:
            self.start(stage, None)

        tokens = self._tokens[stage]
        tokens[0] += prompt_tokens
        tokens[1] += completion_tokens

        task = self._tasks[stage]
        self._progress.update(
            task,
            advance=done,
            tokens=f"{compact(tokens[0])}+{compact(tokens[1])} tokens" if self._shows_tokens and any(tokens) else "",
        )

        if self._writes_lines and monotonic() - self._last_line >= LINE_EVERY:
            self._last_line = monotonic()
            at = self._progress.tasks[task]
            errors.print(f"{label(stage)}: {at.completed:.0f}{f' of {at.total:.0f}' if at.total else ''}", markup=False)

    def finish(self, stage: str) -> None:
        if stage in self._tasks:
            self._finished.add(stage)
            task = self._tasks[stage]
            done = self._progress.tasks[task].completed
            self._progress.update(task, total=done or 1, completed=done or 1)
            logger.info("%s is done: %d", stage, done)


def run_build(build: Callable[..., BuildReport], settings: Settings, limits: Limits, *, json: bool) -> BuildReport:
    """Run what makes or changes an index under bars and limits; its report is shown and
    returned."""
    with Bars(settings, quiet=json) as bars:
        report = build(settings=settings, limits=limits.limits(settings), progress=bars)
    show_report(report, json=json)
    return report


def show_report(report: BuildReport, *, json: bool) -> None:
    """The summary at the end of a build, and what failed in it."""

    if json:
        print_json(report)
        return
    counts = [("passages" if kind == "chunks" else kind, count) for kind, count in report.counts.items()]
    output.print(grid(f"{report.path} in {report.seconds:.1f} s", ("made", "count"), counts, right=["count"]))
    if report.usage:
        with_tokens = has_tokens(report.models.values())
        rows = [(label(stage), *usage_cells(usage, with_tokens)) for stage, usage in report.usage.items()]
        headings = usage_headings(with_tokens)
        output.print(grid("asked of the models in this run", ("stage", *headings), rows, right=headings))
    changes = report.documents
    if changes.changed or changes.removed:
        say(f"documents: {changes.added:,} added, {changes.changed:,} changed, {changes.removed:,} removed")
    say("models: ", models_in_words(report.models))
    if questions_by_asker := asked_in_words(report.asked_by):
        say(questions_by_asker)
    for problem in report.problems:
        note(short(problem, 300))
    if report.documents.removed or report.documents.changed:
        _note_former_states(report.path)
    if report.stale_answers:
        note(
            f"{counted(report.stale_answers, 'answer')} of the FAQ cache went stale with their documents, and are not "
            f"given until somebody looks: {command('serve', report.path, '--open', '--edit')}"
        )
    everything = f"{command('status', report.path)} --json"
    n_new = len(report.failures) - report.former_failures
    show_failures(report.failures[:n_new], everything)
    if report.former_failures:
        note(f" failed before this run and are still open: {everything}", label=counted(report.former_failures, "item"))


def _note_former_states(path: Path) -> None:
    """Says who still holds what was removed: a state that somebody reads stays until then."""

    for folder, holders in former_states(path).items():
        if holders:
            by = ", ".join(holders)
            note(
                f"what was removed or changed is still in {path / folder}, which {by} reads. kraq serve and kraq mcp "
                "leave it within seconds, others when they end."
            )
        else:
            note(
                f"what was removed or changed is still in {path / folder}: somebody reads it, or this account may not "
                f"remove it. The next command that reads {path} removes it once nobody does."
            )


def show_failures(failures: Sequence[Failure], all_of_them: str, limit: int = 10) -> None:
    """The first failures of each kind; `all_of_them` is the command that shows the others."""
    if not failures:
        return

    note(f" could not be done (all: {all_of_them}); the rest is complete.", label=counted(len(failures), "item"))
    by_kind: dict[tuple[str, str], list[Failure]] = {}
    for failure in failures:
        reason_without_numbers = re.sub(r"\d+", "", failure.reason)
        by_kind.setdefault((failure.stage, reason_without_numbers), []).append(failure)

    kinds = list(by_kind.values())
    for alike in kinds[:limit]:
        first = alike[0]
        note(short(f"{first.where or first.item_id}: {first.reason}", 300), label=f"  {first.stage}: ")
        if len(alike) > 1:
            note(f"    and {len(alike) - 1:,} more like it", label="")
    if left := sum(map(len, kinds[limit:])):
        note(f"  and {left:,} more", label="")


def models_in_words(models: dict[str, str]) -> str:
    """The default model, and the roles that have another one."""
    default = models.get("default", "none yet")
    others = [f"{role} {name}" for role, name in models.items() if name != default]
    return ", ".join([default, *others])


def usage_headings(with_tokens: bool) -> Sequence[str]:
    return ("calls", "tokens in", "tokens out") if with_tokens else ("calls",)


def usage_cells(usage: Usage, with_tokens: bool) -> tuple[str, ...]:
    """Calls, tokens in, with those that servers had kept, and tokens out."""
    if not with_tokens:
        return (f"{usage.calls:,}",)
    from_cache = f" ({compact(usage.cached_tokens)} kept)" if usage.cached_tokens else ""
    return f"{usage.calls:,}", compact(usage.prompt_tokens) + from_cache, compact(usage.completion_tokens)
