"""Makes the report of `kraq eval` anew from its rows: `kraq report`."""

from pathlib import Path
from typing import Annotated

import typer

from kraq_dspy.apps.cli.research.eval.options import Baseline
from kraq_dspy.apps.cli.shared.options import Json, Seed
from kraq_dspy.apps.cli.shared.terminal import output, print_json, say


def report(
    run_dir: Annotated[Path, typer.Argument(metavar="DIR", help="The folder that `kraq eval` wrote.")],
    baseline: Baseline = None,
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Make the report of `kraq eval` anew from its rows: terminal, report.md and report.html."""
    make_report(run_dir, baseline, seed, json=json)


def make_report(folder: Path, baseline: str | None, seed: int, *, json: bool) -> None:
    from kraq_dspy.eval.tables.report import print_summary, write_report
    from kraq_dspy.eval.tables.summary import find_runs, summarise

    summary = summarise(find_runs(folder), baseline=baseline, seed=seed)
    files = write_report(summary, folder)
    if json:
        print_json({"summary": summary.to_dict(), "files": [str(file) for file in files]})
        return
    print_summary(summary, output)
    say(f"Report: {', '.join(map(str, files))}")
