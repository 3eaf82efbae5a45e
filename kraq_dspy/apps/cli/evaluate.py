"""Asks an index questions of your own and says how good its answers are: `kraq eval INDEX QUESTIONS`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kraq_dspy.apps.cli.options import Calls, Flag, IndexDir, Json, Limits, Reads, Seed, TakesStates, require_writable
from kraq_dspy.apps.cli.progress import Bars
from kraq_dspy.apps.cli.terminal import command, counted, output, print_json, say
from kraq_dspy.errors import ConfigError
from kraq_dspy.eval.defaults import RETRIEVED

if TYPE_CHECKING:
    import dspy

    from kraq_dspy.eval.asked import AskedSystem
    from kraq_dspy.eval.calibration import Calibrated
    from kraq_dspy.eval.datasets import Example
    from kraq_dspy.eval.evaluation import Evaluation
    from kraq_dspy.eval.gate import QualityCheck
    from kraq_dspy.eval.metrics.generation import BertScorer
    from kraq_dspy.eval.questions import QuestionColumns
    from kraq_dspy.eval.statistics import Interval
    from kraq_dspy.eval.summary import TableSummary
    from kraq_dspy.ports import Retriever
    from kraq_dspy.workspace import Workspace


RunOut = Annotated[
    Path | None, typer.Option("--out", "-o", metavar="DIR", help="Rows and report. Default: runs/TABLE.")
]
RetryFailed = Annotated[bool, Flag("--retry-failed", help="Retry rows that failed.")]
Baseline = Annotated[str | None, typer.Option("--baseline", help="The system that the others are compared with.")]


WORSE = 3
"""Exit code of a run that is not good enough; 1 means that there is no run to judge."""


def require_run(folder: Path) -> None:
    """Raises EvaluationError for a folder without a run, before anything is asked."""
    from kraq_dspy.eval.summary import find_runs

    find_runs(folder)


def named_scorer(name: str) -> "BertScorer":
    from kraq_dspy.eval.metrics.generation import BertScorer

    if name == "minilm":
        return BertScorer.packaged()
    folder, _, layer = name.rpartition(":")
    if folder and layer.isdecimal():
        return BertScorer(folder, int(layer))
    return BertScorer(name)


def interval(value: "Interval", sign: str = "") -> str:
    low, high = (format(end, f"{sign}.3f") for end in (value.low, value.high))
    return f"{value.estimate:{sign}.3f} [{low}, {high}]"


@dataclass(frozen=True, kw_only=True)
class EvalIndex(TakesStates, Reads, Calls, Limits):
    """Ask an index, as it is, every question of a file, and score the answers and what was found.

    Without answers in the file, kraq computes only the metrics that need none. `kraq report A B`
    compares two of these runs.
    """

    index_dir: IndexDir
    questions: Annotated[
        Path, typer.Argument(metavar="QUESTIONS", help="csv, jsonl or parquet: questions, with answers if known.")
    ]
    program: Annotated[
        list[str] | None,
        typer.Option(
            "--program", "-p", help="Program by its name, as in kraq ask; may be repeated. Default: kraq ask's."
        ),
    ] = None
    retriever: Annotated[
        list[str] | None,
        typer.Option("--retriever", "-r", help="Retriever of each program; may be repeated. Default: kraq ask's."),
    ] = None
    retrieval_only: Annotated[
        bool, Flag("--retrieval-only", help="Score what the retrievers find, without answers.")
    ] = False
    metric: Annotated[
        list[str] | None,
        typer.Option(
            "--metric",
            "-m",
            help="token_f1, recall@10, judge, groundedness, ..., or file.py:function; may be repeated. Default: what "
            "the questions have gold data for.",
        ),
    ] = None
    k: Annotated[int, typer.Option("--k", "-k", min=1, help="Passages that a retriever is asked for.")] = RETRIEVED
    question_column: Annotated[str, typer.Option(help="Column with the question. Default: question, query, ...")] = ""
    answer_column: Annotated[str, typer.Option(help="Column with the answers. Default: answers, answer, ...")] = ""
    documents_column: Annotated[
        str, typer.Option(help="Ids of the documents with the evidence. Default: supporting_ids, ...")
    ] = ""
    encoding: Annotated[str, typer.Option(help="Encoding of a file that is not UTF-8, such as cp1252.")] = ""
    limit: Annotated[int | None, typer.Option(min=1, help="Questions, drawn by the seed.")] = None
    seed: Seed = 0
    asked: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="A few of people's questions, with evidence or answers, that decide together with QUESTIONS, an exam.",
        ),
    ] = None
    fail_under: Annotated[
        list[str] | None,
        typer.Option(
            metavar="METRIC=NUMBER",
            help="Exit code 3 if a mean is lower, such as recall@10=.9; may be repeated.",
            rich_help_panel="For a build server",
        ),
    ] = None
    fail_if_worse: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Exit code 3 if the run in DIR was better: the interval of the paired difference lies below 0. With "
            "--asked, it is the joint interval.",
            rich_help_panel="For a build server",
        ),
    ] = None
    out: RunOut = None
    retry_failed: RetryFailed = False
    json: Json = False

    def run(self) -> None:
        from kraq_dspy.eval.evaluation import evaluate, place_of
        from kraq_dspy.eval.gate import (
            judged_metrics,
            read_thresholds,
            require_other_folder,
            under_checks,
            worse_checks,
        )
        from kraq_dspy.eval.joint import ASKED_FOLDER, joint_of_run, joint_worse_checks
        from kraq_dspy.eval.rows import forget_failed
        from kraq_dspy.eval.summary import require_rows

        thresholds = read_thresholds(self.fail_under or ())
        if self.fail_if_worse is not None:
            require_run(self.fail_if_worse)
        examples = self._examples()
        peoples = self._peoples()
        if self.retrieval_only and (self.program or self.program_state):
            raise ConfigError("--retrieval-only asks no program.")

        with self.opened(self.index_dir) as space:
            settings = space.models.settings
            systems = self._systems(space)
            metrics = self._metrics(systems, examples, thresholds)
            self._require_asked(space, systems, metrics or [])
            title = f"{self.index_dir.resolve().stem}-{self.questions.name.partition('.')[0]}"
            folder = self.out or place_of(title, systems, metrics, [*examples, *peoples], space, Path("runs"))
            require_writable(folder)
            require_other_folder(self.fail_if_worse, folder)
            if self.retry_failed:
                forget_failed(folder)
                forget_failed(folder / ASKED_FOLDER)
            named = {system.name: system for system in systems}
            with Bars(settings, quiet=self.json) as bars:
                result = evaluate(
                    named, examples, metrics, space=space, title=title, k=self.k, out=folder,
                    concurrency=settings.run.concurrency, seed=self.seed, progress=bars,
                )  # fmt: skip
                if peoples:
                    judged_first = judged_metrics(result.summary.metrics, self.metric) + result.summary.metrics
                    evaluate(
                        named, peoples, list(dict.fromkeys(judged_first)), space=space, title=f"{title}-asked",
                        k=self.k, out=folder / ASKED_FOLDER, concurrency=settings.run.concurrency, seed=self.seed,
                        progress=bars,
                    )  # fmt: skip

        joint = joint_of_run(folder) if peoples else None
        files = result.write_report(folder)
        checks = under_checks(result.summary, thresholds, of_exam=bool(peoples))
        if self.fail_if_worse is not None:
            judged = self.metric or list(thresholds) or None
            if peoples:
                checks += joint_worse_checks(self.fail_if_worse, folder, metrics=judged)
            else:
                checks += worse_checks(self.fail_if_worse, folder, metrics=judged, seed=self.seed)
        if self.json:
            paths = [str(file) for file in files]
            together = {"joint": joint[0].to_dict()} if joint else {}
            print_json({**result.to_dict(), "files": paths, "checks": checks, **together})
        else:
            _show_result(result, files, checks, folder, joint)
        require_rows([result.summary])
        if not all(check.passed for check in checks):
            raise typer.Exit(WORSE)

    def _require_asked(self, space: "Workspace", systems: "Sequence[AskedSystem]", metrics: Sequence[str]) -> None:
        """Raise StateError for a state of a step that neither the programs nor the metrics ask."""
        if not self.program_state:
            return
        from kraq_dspy.eval.judges import JUDGED

        programs = [space.make_program(each.choice) for each in systems if each.choice is not None]
        judges = [JUDGED[name]() for name in metrics if name in JUDGED]
        self.require_asked("eval", programs=[*programs, *judges])

    def _peoples(self) -> "list[Example]":
        """The few questions of people's that are asked beside the exam; none without --asked. Raises ConfigError or
        EvaluationError, before anything is asked, if they could decide nothing."""
        from kraq_dspy.eval.joint import require_enough, require_peoples_questions, require_several
        from kraq_dspy.eval.questions import read_questions

        if self.asked is None:
            return []
        peoples = read_questions(self.asked, self._columns(), encoding=self.encoding)
        require_several(len(self.program or [""]) * len(self.retriever or [""]))
        require_enough(peoples)
        if self.fail_if_worse is not None:
            require_peoples_questions(self.fail_if_worse)
        return peoples

    def _examples(self) -> "list[Example]":
        """The questions of the file, or as many of them as are asked, drawn by the seed."""
        import random

        from kraq_dspy.eval.questions import read_questions

        examples = read_questions(self.questions, self._columns(), encoding=self.encoding)
        if self.limit is None:
            return examples
        examples = sorted(examples, key=lambda example: example.id)
        random.Random(self.seed).shuffle(examples)
        return examples[: self.limit]

    def _columns(self) -> "QuestionColumns":
        from kraq_dspy.eval.questions import QuestionColumns

        return QuestionColumns(self.question_column, self.answer_column, self.documents_column)

    def _systems(self, space: "Workspace") -> "list[AskedSystem]":
        """The retrievers, or each program over each retriever; those of `kraq ask` if none is
        named."""
        if self.retrieval_only:
            names = self.retriever or [space.default_retriever]
            return [_retriever(space, name, self.k) for name in names]

        programs: Sequence[str | None] = self.program or [None]
        retrievers: Sequence[str | None] = self.retriever or [None]
        systems = []
        for program in programs:
            for retriever in retrievers:
                systems.append(_program(space, program, retriever, self.program_state or ()))
        return systems

    def _metrics(
        self,
        systems: "Sequence[AskedSystem]",
        examples: "Sequence[Example]",
        thresholds: Mapping[str, float],
    ) -> list[str] | None:
        """The metrics that are named, and those that must reach a threshold."""
        from kraq_dspy.eval.evaluation import default_metrics

        if not thresholds:
            return self.metric or None
        named = self.metric or default_metrics(systems, examples, self.k)
        return list(dict.fromkeys([*named, *thresholds]))


def _show_result(
    result: "Evaluation",
    files: "Sequence[Path]",
    checks: "Sequence[QualityCheck]",
    folder: Path,
    joint: "tuple[Calibrated, str] | None",
) -> None:
    from kraq_dspy.eval.joint import joint_grid
    from kraq_dspy.eval.questions import learned_note
    from kraq_dspy.eval.terminal import print_grid, print_run

    print_run(result.summary, output)
    if joint:
        print_grid(joint_grid(*joint), output)
    if result.left_out:
        say(learned_note(result.left_out))
    for note in result.notes:
        say(note)
    say(f"Report: {', '.join(map(str, files))}")
    say(f"To compare with another run: {command('report', folder, 'OTHER')}")
    for check in checks:
        verdict = ("passed  ", "green") if check.passed else ("FAILED  ", "red")
        say(verdict, check.text)


def _retriever(space: "Workspace", name: str, k: int) -> "AskedSystem":
    from kraq_dspy.eval.about import about_retriever
    from kraq_dspy.eval.asked import AskedSystem

    def make(index: "Workspace") -> "Retriever":
        return index.retriever(name)

    return AskedSystem(name, make(space), False, about_retriever(name, space.embedder.name, [k]), make=make)


def _program(space: "Workspace", name: str | None, retriever: str | None, states: Sequence[Path]) -> "AskedSystem":
    from kraq_dspy.eval.about import about_choice
    from kraq_dspy.eval.asked import AskedSystem
    from kraq_dspy.workspace.choices import DEFAULT_PROGRAM, choose_program

    choice = choose_program(name or DEFAULT_PROGRAM, retriever, measured=True)
    program = space.make_program(choice)
    about = about_choice(choice, space.models.settings, space.embedder.name, space.default_retriever)

    def make(index: "Workspace") -> "dspy.Module":
        return index.make_program(choice)

    label = choice.spec.name if retriever is None else f"{choice.spec.name} over {retriever}"
    return AskedSystem(
        label,
        program,
        True,
        {**about, **({"state": ", ".join(each.name for each in states)} if states else {})},
        choice,
        make,
    )


@dataclass(frozen=True, kw_only=True)
class Report:
    """Make the report of `kraq eval` again from its rows: terminal and report.html.

    With two folders, compare the runs: what the second has more, question by question, with intervals.
    """

    run_dir: Annotated[Path, typer.Argument(metavar="DIR", help="The folder that `kraq eval` wrote.")]
    other: Annotated[
        Path | None, typer.Argument(metavar="OTHER", help="Another run on the same questions, to compare it with.")
    ] = None
    baseline: Baseline = None
    seed: Seed = 0
    json: Json = False

    def run(self) -> None:
        if self.other is None:
            make_report(self.run_dir, self.baseline, self.seed, json=self.json)
            return
        if self.baseline is not None:
            raise ConfigError(
                "--baseline is for the report of one run; of two, the first is what the second is compared with."
            )
        from kraq_dspy.eval.comparing import compare_runs
        from kraq_dspy.eval.grids import changed_questions, grids, unpaired_questions
        from kraq_dspy.eval.terminal import print_grid

        comparisons = compare_runs(self.run_dir, self.other, seed=self.seed)
        if self.json:
            title = f"{self.run_dir} and {self.other}"
            runs = [run.to_dict() for run in comparisons]
            print_json({"title": title, "kind": "comparison", "runs": runs, "files": [], "checks": []})
            return
        for run in comparisons:
            say((f"\n{run.header.dataset}", "bold"))
            for part in (*grids(run, brief=True), changed_questions(run), unpaired_questions(run)):
                if part is not None:
                    print_grid(part, output)


def make_report(folder: Path, baseline: str | None, seed: int, *, json: bool) -> "TableSummary":
    """Write and print the report; the summary that it shows."""
    from kraq_dspy.eval.joint import joint_grids
    from kraq_dspy.eval.report_page import write_report
    from kraq_dspy.eval.summary import find_runs, summarise
    from kraq_dspy.eval.terminal import print_summary
    from kraq_dspy.papers.grids import paper_grids

    summary = summarise(find_runs(folder), baseline=baseline, seed=seed)
    in_front = [*paper_grids(summary), *joint_grids(folder)]
    files = write_report(summary, folder, in_front=in_front)
    if json:
        print_json({**summary.to_dict(), "files": [str(file) for file in files], "checks": []})
        return summary
    print_summary(summary, output, in_front=in_front)
    say(f"Report: {', '.join(map(str, files))}")
    return summary


@dataclass(frozen=True, kw_only=True)
class ListData:
    """Name the data sets that can be fetched, and those that are in the folder."""

    data: Annotated[Path, typer.Option(metavar="DIR", help="Folder of fetched data sets.")] = Path("data")
    json: Json = False

    def run(self) -> None:
        from kraq_dspy.eval.datasets import NAMES
        from kraq_dspy.eval.datasets.dataset import is_dataset

        folders = self.data.iterdir() if self.data.is_dir() else []
        here = sorted(path.name for path in folders if is_dataset(path) or path.name in NAMES)
        if self.json:
            print_json({"can_be_fetched": list(NAMES), "here": here})
            return
        for name in sorted({*NAMES, *here}):
            say(f"{name:16}", f" in {self.data}" if name in here else "")


@dataclass(frozen=True, kw_only=True)
class FetchData:
    """Download a data set from the hub, or take BioASQ's files over. kraq keeps existing files."""

    name: Annotated[str, typer.Argument(metavar="NAME", help="One of `kraq data list`.")]
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="DIR", help="Folder for data sets; this one gets a folder in it.")
    ] = Path("data")
    file: Annotated[list[Path] | None, typer.Option(help="BioASQ's golden files; may be repeated.")] = None

    def run(self) -> None:
        from kraq_dspy.eval.datasets import fetch_dataset, load_dataset

        fetch_dataset(self.name, self.out, files=self.file or [])
        dataset = load_dataset(self.name, self.out)
        say(
            f"{self.out / self.name}: {counted(len(dataset.examples), 'question')}, "
            f"{counted(len(dataset.documents), 'document')}"
        )
