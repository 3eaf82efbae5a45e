"""Makes the report of `kraq eval` anew from its rows, or compares two runs: `kraq report`."""

from pathlib import Path
from typing import Annotated

import typer

from kraq_dspy.apps.cli.eval_options import Baseline
from kraq_dspy.apps.cli.options import Json, Seed
from kraq_dspy.apps.cli.terminal import output, print_json, say
from kraq_dspy.errors import ConfigError


def report(
    run_dir: Annotated[Path, typer.Argument(metavar="DIR", help="The folder that `kraq eval` wrote.")],
    other: Annotated[
        Path | None, typer.Argument(metavar="OTHER", help="Another run on the same questions, to compare it with.")
    ] = None,
    baseline: Baseline = None,
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Make the report of `kraq eval` anew from its rows: terminal, report.md and report.html.

    With two folders, compare the runs: what the second has more, question by question, with intervals.
    """
    if other is None:
        make_report(run_dir, baseline, seed, json=json)
        return
    if baseline is not None:
        raise ConfigError(
            "--baseline is for the report of one run; of two, the first is what the second is compared with."
        )
    from kraq_dspy.eval.tables.beside import compare_runs
    from kraq_dspy.eval.tables.report import print_grid
    from kraq_dspy.eval.tables.report.grids import beside_grids

    comparisons = compare_runs(run_dir, other, seed=seed)
    if json:
        print_json({"comparisons": comparisons})
        return
    for comparison in comparisons:
        for grid in beside_grids(comparison):
            print_grid(grid, output)


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
