"""Declares what commands share that score the questions of a file: which questions, by what, and the gate."""

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer
from typer import Option

from kraq_dspy.apps.cli.model_options import Calls, Limits, QuestionFile
from kraq_dspy.apps.cli.options import Flag, Json, Repeated, Seed, command_class, require_writable
from kraq_dspy.apps.cli.terminal import command, output, print_json, say
from kraq_dspy.eval.datasets import Example
from kraq_dspy.eval.evaluation import Evaluation
from kraq_dspy.eval.evidence import with_qrels
from kraq_dspy.eval.gate import (
    QualityCheck,
    metric_judged,
    read_thresholds,
    require_other_folder,
    under_checks,
    worse_checks,
)
from kraq_dspy.eval.questions import learned_note, read_questions
from kraq_dspy.eval.reports.summary import find_runs, require_rows
from kraq_dspy.eval.reports.terminal import print_run
from kraq_dspy.eval.rows import forget_failed

RunOut = Annotated[
    Path | None, Option("--out", "-o", metavar="DIR", help="Rows and report. Default: a folder of runs/.")
]
RetryFailed = Annotated[bool, Flag("--retry-failed", help="Retry rows that failed.")]

WORSE = 3
"""Exit code of a run that is not good enough; 1 means that there is no run to judge."""


@command_class
class ScoresQuestions(Calls, Limits, QuestionFile):
    """The options of what scores the questions of a file, and judges the run."""

    metric: Annotated[
        Repeated,
        Option(
            "--metric",
            "-m",
            help="token_f1, recall@10, judge, ..., or file.py:function; repeatable.",
        ),
    ] = None
    qrels: Annotated[
        Path | None,
        Option(metavar="FILE", help="TREC qrels with the evidence, in place of the column of documents."),
    ] = None
    encoding: Annotated[str, Option(help="Encoding of a file that is not UTF-8, such as cp1252.")] = ""
    limit: Annotated[int | None, Option(min=1, help="Questions, drawn by the seed.")] = None
    seed: Seed = 0
    fail_under: Annotated[
        Repeated,
        Option(
            metavar="METRIC=NUMBER",
            help="Exit code 3 if a mean is lower, such as recall@10=.9; may be repeated.",
            rich_help_panel="For a build server",
        ),
    ] = None
    fail_if_worse: Annotated[
        Path | None,
        Option(
            metavar="DIR",
            help="Exit code 3 if the run in DIR was better: by both halves of a test set, otherwise if the interval of "
            "the paired difference lies below 0.",
            rich_help_panel="For a build server",
        ),
    ] = None
    out: RunOut = None
    retry_failed: RetryFailed = False
    json: Json = False

    def thresholds(self) -> dict[str, float]:
        """The least means. Raises ConfigError for one that cannot be read, EvaluationError for a base run that is not
        there: before anything is asked."""

        thresholds = read_thresholds(self.fail_under or ())
        if self.fail_if_worse is not None:
            find_runs(self.fail_if_worse)
        return thresholds

    def examples(self, file: Path) -> list[Example]:
        """The questions of the file, or as many of them as are asked, drawn by the seed."""

        examples = read_questions(file, self.columns(), encoding=self.encoding)
        if self.qrels is not None:
            examples = with_qrels(examples, self.qrels)
        if self.limit is None:
            return examples
        examples = sorted(examples, key=lambda example: example.id)
        random.Random(self.seed).shuffle(examples)
        return examples[: self.limit]

    def with_judged(self, metrics: Sequence[str], thresholds: Mapping[str, float]) -> list[str]:
        """The metrics, and those that must reach a threshold."""

        return list(dict.fromkeys([*metrics, *map(metric_judged, thresholds)]))

    def prepare_place(self, folder: Path) -> None:
        """Forget failed rows of the folder, if they are to be tried again.

        Raises ConfigError for a folder that cannot be written, or is the base run's.
        """

        require_writable(folder)
        require_other_folder(self.fail_if_worse, folder)
        if self.retry_failed:
            forget_failed(folder)

    def show_and_judge(self, result: Evaluation, folder: Path, thresholds: Mapping[str, float]) -> None:
        """Write the report, print it, and end with `WORSE` if the run is not good enough.

        With a base run, the metrics that are compared are those that the command names, else those that have a
        threshold.
        """

        files = result.write_report(folder)
        checks = under_checks(result.summary, thresholds)
        if self.fail_if_worse is not None:
            compared = self.metric or list(dict.fromkeys(map(metric_judged, thresholds))) or None
            checks += worse_checks(self.fail_if_worse, folder, metrics=compared, seed=self.seed)

        if self.json:
            paths = [str(file) for file in files]
            print_json({**result.to_dict(), "files": paths, "checks": checks})
        else:
            _show_result(result, files, checks, folder)

        require_rows([result.summary])  # after what was shown, which says why every row failed
        if not all(check.passed for check in checks):
            raise typer.Exit(WORSE)


def _show_result(
    result: Evaluation,
    files: Sequence[Path],
    checks: Sequence[QualityCheck],
    folder: Path,
) -> None:

    print_run(result.summary, output)
    if result.left_out:
        say(learned_note(result.left_out))
    for note in result.notes:
        say(note)
    say(f"Report: {', '.join(map(str, files))}")
    say(f"To compare with another run: {command('eval', 'report', folder, 'OTHER')}")
    for check in checks:
        verdict = ("passed  ", "green") if check.passed else ("FAILED  ", "red")
        say(verdict, check.text)
