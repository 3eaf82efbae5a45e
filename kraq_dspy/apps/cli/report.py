"""Shows what a build did: what was made, what models were asked, and what failed."""

import itertools
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from kraq_dspy.apps.cli.progress import Bars, has_tokens, label
from kraq_dspy.apps.cli.options import Limits
from kraq_dspy.apps.cli.terminal import command, compact, counted, grid, note, output, print_json, say, short

if TYPE_CHECKING:
    from kraq_dspy.build.index.report import BuildReport
    from kraq_dspy.records import Failure, Usage
    from kraq_dspy.settings import Settings


def run_build(
    build: "Callable[..., BuildReport]", settings: "Settings", limits: Limits, *, json: bool
) -> "BuildReport":
    """What makes or changes an index, run under bars and limits; its report is shown and returned."""
    with Bars(settings, quiet=json) as bars:
        report = build(settings=settings, limits=limits.of(settings), progress=bars)
    show_report(report, json=json)
    return report


def show_report(report: "BuildReport", *, json: bool) -> None:
    """The summary at the end of a build, and what failed in it."""
    if json:
        print_json(report)
        return
    output.print(
        grid(f"{report.path} in {report.seconds:.1f} s", ("made", "count"), report.counts.items(), right=["count"])
    )
    if report.usage:
        with_tokens = has_tokens(report.models.values())
        rows = [(label(stage), *usage_cells(usage, with_tokens)) for stage, usage in report.usage.items()]
        headings = usage_headings(with_tokens)
        output.print(grid("asked of the models in this run", ("stage", *headings), rows, right=headings))
    changes = report.documents
    if changes.changed or changes.removed:
        say(f"documents: {changes.added:,} added, {changes.changed:,} changed, {changes.removed:,} removed")
    say("models: ", models_in_words(report.models))
    for problem in report.problems:
        note(short(problem, 300))
    if report.stale_answers:
        note(
            f"{counted(report.stale_answers, 'answer')} of the catalogue went stale with their documents, and are not "
            f"given until somebody looks: {command('catalogue', 'review', report.path)}"
        )
    show_failures(report.failures, f"{command('status', report.path)} --json")


def show_failures(failures: "Sequence[Failure]", all_of_them: str, limit: int = 10) -> None:
    """The first failures of each kind; `all_of_them` is the command that shows the others."""
    if not failures:
        return
    note(f" could not be done (all: {all_of_them}); the rest is complete.", label=counted(len(failures), "item"))
    kinds: dict[tuple[str, str], list[Failure]] = {}
    for failure in failures:
        kinds.setdefault((failure.stage, re.sub(r"\d+", "", failure.reason)), []).append(failure)
    for alike in itertools.islice(kinds.values(), limit):
        first = alike[0]
        note(short(f"{first.where or first.item_id}: {first.reason}", 300), label=f"  {first.stage}: ")
        if len(alike) > 1:
            note(f"    and {len(alike) - 1:,} more like it", label="")
    if left := sum(len(alike) for alike in itertools.islice(kinds.values(), limit, None)):
        note(f"  and {left:,} more", label="")


def models_in_words(models: dict[str, str]) -> str:
    """The default model, and the roles that have another one."""
    default = models.get("default", "none yet")
    others = [f"{role} {name}" for role, name in models.items() if name != default]
    return ", ".join([default, *others])


def usage_headings(with_tokens: bool) -> Sequence[str]:
    return ("calls", "tokens in", "tokens out") if with_tokens else ("calls",)


def usage_cells(usage: "Usage", with_tokens: bool) -> tuple[str, ...]:
    """Calls, tokens in, with those that servers had kept, and tokens out."""
    if not with_tokens:
        return (f"{usage.calls:,}",)
    kept = f" ({compact(usage.cached_tokens)} kept)" if usage.cached_tokens else ""
    return f"{usage.calls:,}", compact(usage.prompt_tokens) + kept, compact(usage.completion_tokens)
