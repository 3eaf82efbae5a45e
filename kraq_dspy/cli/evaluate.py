"""`kraq eval` and `kraq report`: the papers' tables, measured and shown."""

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text
from typer.core import TyperGroup

from kraq_dspy.cli import options
from kraq_dspy.cli.terminal import Bars, output, print_json, short, two_columns
from kraq_dspy.errors import ConfigError

if TYPE_CHECKING:
    from kraq_dspy.eval.metrics.bertscore import BertScorer
    from kraq_dspy.eval.statistics import Interval

TABLES = ("questions", "combined", "speculative", "retrievers", "qa_rag", "k2rag")

HELP = """Measure, with intervals and paired tests. Interrupted? The same command goes on.

kraq eval questions: are the questions like those that people ask? KRAQ, instruct, Random (KRAQ paper, Table 1).

kraq eval combined: Combined against Traditional RAG at the same budget (Tables 2 to 4).

kraq eval speculative: Efficient against plain Speculative RAG, answers and latency (Tables 5 to 8).

kraq eval retrievers: which retriever finds the supporting passages, at several budgets.

kraq eval qa_rag: the same passages as they are, as question-answer pairs, and with the answer judged.

kraq eval k2rag: K2RAG on its summarised corpus against its four naive baselines on the whole one.

kraq eval judges: how far a judge agrees with labels. kraq eval coverage: how much the questions of an index cover.

kraq eval TABLE.toml: a table of your own, written like those in kraq_dspy/eval/tables/definitions.
"""


class _TableGroup(TyperGroup):
    """`kraq eval questions` and `kraq eval my.toml` are `kraq eval table questions` and `kraq eval table my.toml`."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:  # typer's click is a package of its own
        if args and (args[0] in TABLES or args[0].endswith(".toml")):
            args = ["table", *args]
        return super().resolve_command(ctx, args)


evaluate = typer.Typer(cls=_TableGroup, no_args_is_help=True, help=HELP)

Data = Annotated[
    Path,
    typer.Option(
        "--data", metavar="DIR", help="Folder of data sets, or one itself (questions.jsonl and corpus.jsonl, or .gz)."
    ),
]
Dataset = Annotated[
    list[str] | None,
    typer.Option("--dataset", "-d", metavar="NAME", help="Only this data set; may be repeated. Default: the table's."),
]
RunOut = Annotated[
    Path | None, typer.Option("--out", "-o", metavar="DIR", help="Rows and report. Default: runs/TABLE.")
]
Indexes = Annotated[
    Path, typer.Option("--indexes", metavar="DIR", help="Where indexes of data sets are kept and found again.")
]
Limit = Annotated[int | None, typer.Option("--limit", min=1, help="Questions of each data set, drawn by the seed.")]
Tokens = Annotated[
    int | None,
    typer.Option("--tokens", min=1, help="The papers' sample: questions until their evidence has so many tokens."),
]
Seed = Annotated[int, typer.Option("--seed", help="Of the sample, the clusters and the bootstrap.")]
Baseline = Annotated[
    str | None, typer.Option("--baseline", metavar="NAME", help="The system that the others are compared with.")
]
Bertscore = Annotated[
    str,
    typer.Option(
        "--bertscore",
        metavar="MODEL",
        help="roberta-large (the papers'), minilm (packaged, offline), a hub name, or FOLDER:LAYER.",
    ),
]


@evaluate.command("table")
def run_table(
    table: Annotated[str, typer.Argument(metavar="TABLE", help=f"{', '.join(TABLES)}, or a TOML file.")],
    data: Data = Path("data"),
    dataset: Dataset = None,
    limit: Limit = None,
    tokens: Tokens = None,
    out: RunOut = None,
    indexes: Indexes = Path("runs/indexes"),
    config: options.SettingsFile = None,
    lm: options.Model = None,
    api_base: options.ApiBase = None,
    encoder: options.Encoder = None,
    encoder_api_base: options.EncoderBase = None,
    concurrency: options.Concurrency = None,
    bertscore: Bertscore = "roberta-large",
    baseline: Baseline = None,
    ablations: Annotated[bool, typer.Option(help="Also the systems with one setting varied.")] = True,
    program_state: Annotated[
        list[Path] | None,
        typer.Option(
            "--program-state",
            metavar="[SYSTEM=]FILE",
            help="What `kraq optimize` made, into the program of a system, or of all; may be repeated.",
        ),
    ] = None,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Ask again where a row failed.")] = False,
    seed: Seed = 0,
    json: options.Json = False,
) -> None:
    """Run a table over data sets: index them, ask every system every question, write rows and a report."""
    from kraq_dspy.eval.tables.data import dataset_names
    from kraq_dspy.eval.tables.run import RunOptions
    from kraq_dspy.eval.tables.run import run_table as run
    from kraq_dspy.eval.tables.table import read_table

    wanted = read_table(_table_file(table))
    if baseline is not None:
        wanted = wanted.against(baseline)
    for state in program_state or ():
        wanted = wanted.with_state(state)
    if concurrency is not None:
        wanted = dataclasses.replace(wanted, concurrency=concurrency)
    chosen = RunOptions(
        data=data,
        out=out or Path("runs") / wanted.name,
        indexes=indexes,
        limit=limit,
        tokens=tokens,
        seed=seed,
        ablations=ablations,
        retry_failed=retry_failed,
        bertscore=lambda: named_scorer(bertscore),
    )
    settings = options.settings_from(
        config,
        lm=lm,
        api_base=api_base,
        encoder=encoder,
        encoder_api_base=encoder_api_base,
        concurrency=concurrency,
    )
    names = dataset_names(data, dataset or (), wanted.datasets)
    with Bars(quiet=json) as bars:
        run(wanted, names, settings, chosen, bars)
    _report(chosen.out, None, seed, json=json)


@evaluate.command("judges")
def judges(
    labelled: Annotated[
        Path | None,
        typer.Argument(metavar="LABELLED.jsonl", help="Lines with id, question, answers, answer, right (true, false)."),
    ] = None,
    data: Data = Path("data"),
    dataset: Annotated[
        str | None,
        typer.Option("--dataset", "-d", metavar="NAME", help="Instead: gold answers, right and of other questions."),
    ] = None,
    kind: Annotated[
        str, typer.Option("--judge", help="binary, or rubric (grades 1 to 5; 4 and 5 are right).")
    ] = "binary",
    limit: Limit = None,
    out: RunOut = None,
    config: options.SettingsFile = None,
    lm: options.Model = None,
    api_base: options.ApiBase = None,
    concurrency: options.Concurrency = None,
    seed: Seed = 0,
    json: options.Json = False,
) -> None:
    """How far a judge agrees with labels: accuracy and Cohen's kappa, with intervals."""
    from importlib.metadata import version

    from kraq_dspy.eval.rows import RunHeader
    from kraq_dspy.eval.tables.data import load
    from kraq_dspy.eval.tables.judge_calibration import calibrate_judge, made_from, read_labelled
    from kraq_dspy.lms.roles import LanguageModels

    if (labelled is None) == (dataset is None):
        raise ConfigError("Give a file of labelled answers, or --dataset NAME to make them from its gold answers.")
    settings = options.settings_from(config, lm=lm, api_base=api_base, concurrency=concurrency)
    if labelled is not None:
        answers, name = read_labelled(labelled)[:limit], labelled.stem
    else:
        assert dataset is not None
        answers, name = made_from(load(data, dataset, limit=limit, seed=seed), seed=seed), dataset
    models = LanguageModels(settings)
    header = RunHeader(
        name="judges",
        dataset=name,
        settings={"judge": kind, "answers": len(answers)},
        seeds={"seed": seed},
        models={"judge": models["judge"].model},
        library_version=version("kraq-dspy"),
    )
    with Bars(quiet=json) as bars:
        found = calibrate_judge(
            answers,
            kind,
            models["judge"],
            header,
            out or Path("runs") / "judges" / name / kind,
            concurrency=settings.run.concurrency,
            progress=bars,
        )
    models.close()
    if json:
        confusion = [
            {"label": gold, "judged": said, "answers": count} for (gold, said), count in found.confusion.items()
        ]
        print_json({**{f.name: getattr(found, f.name) for f in dataclasses.fields(found)}, "confusion": confusion})
        return
    counts = {f"label {gold}, judged {said}": count for (gold, said), count in found.confusion.items()}
    rows = {
        "judge": found.judge,
        "accuracy": _interval(found.accuracy),
        "Cohen's kappa": _interval(found.kappa),
        **counts,
        "judged": f"{found.n} of {found.n + found.n_failed}",
    }
    output.print(two_columns(f"{name}: agreement with the labels", rows))


@evaluate.command("coverage")
def coverage(
    index_dir: options.IndexDir,
    k: Annotated[int, typer.Option("--k", min=1, help="A chunk is covered if it is among so many of a question.")] = 5,
    budget: Annotated[int, typer.Option("--budget", min=1, help="Questions to choose greedily.")] = 100,
    source: Annotated[str, typer.Option(help="kraq, or random for the baseline's questions.")] = "kraq",
    data: Data = Path("data"),
    dataset: Annotated[
        str | None,
        typer.Option(
            "--dataset", "-d", metavar="NAME", help="Its questions tell whether coverage foretells Relevance."
        ),
    ] = None,
    limit: Limit = None,
    bertscore: Bertscore = "roberta-large",
    tau: Annotated[float, typer.Option(min=0.0, max=1.0, help="Of Relevance@tau.")] = 0.7,
    out: RunOut = None,
    seed: Seed = 0,
    json: options.Json = False,
) -> None:
    """How much of an index its questions cover, and the few that cover most: no reference questions needed."""
    from kraq_dspy.eval.tables.coverage import foretell_relevance, index_coverage
    from kraq_dspy.eval.tables.data import load
    from kraq_dspy.eval.tables.report import coverage_page, print_grid
    from kraq_dspy.eval.tables.report.grids import Grid, foretelling_grid
    from kraq_dspy.workspace import Workspace

    told = None
    with Workspace.open(index_dir) as space:
        found = index_coverage(space.index, k=k, budget=budget, source=source, seed=seed)
        if dataset is not None:
            references = [example.question for example in load(data, dataset, limit=limit, seed=seed).examples]
            told = foretell_relevance(
                space.index,
                references,
                space.embedder.encode_queries(references),
                named_scorer(bertscore),
                k=k,
                source=source,
                tau=tau,
                seed=seed,
            )
    file = None
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        file = out / "coverage.html"
        file.write_text(coverage_page(found, told), "utf-8")
    if json:
        print_json({"coverage": found, "foretelling": told})
        return
    output.print(
        f"{found.share:.1%} of {found.n_chunks:,} chunks are among the {found.k} nearest of one of "
        f"{found.n_questions:,} questions."
    )
    steps = sorted({1, 10, 100, 1000, len(found.chosen), found.n_questions})
    rows = tuple(
        (f"{step:,}", *(f"{curve[step - 1]:.3f}" if step <= len(curve) else "" for curve in found.curves.values()))
        for step in steps
        if step <= found.n_questions
    )
    print_grid(Grid("Share covered by the first questions", ("questions", *found.curves), rows), output)
    if told is not None:
        print_grid(foretelling_grid(told), output)
    for place, question in enumerate(found.chosen[:10], start=1):
        output.print(Text(f"{place:3} ") + short(question.text, 200))
    if file is not None:
        output.print(Text(f"Page: {file}"))


def report(
    run_dir: Annotated[Path, typer.Argument(metavar="DIR", help="The folder that `kraq eval` wrote.")],
    baseline: Baseline = None,
    seed: Annotated[int, typer.Option("--seed", help="Of the bootstrap.")] = 0,
    json: options.Json = False,
) -> None:
    """Make the report of `kraq eval` anew from its rows: terminal, report.md and report.html."""
    _report(run_dir, baseline, seed, json=json)


def _report(folder: Path, baseline: str | None, seed: int, *, json: bool) -> None:
    from kraq_dspy.eval.tables.report import print_summary, write_report
    from kraq_dspy.eval.tables.summary import find_runs, summarise

    summary = summarise(find_runs(folder), baseline=baseline, seed=seed)
    files = write_report(summary, folder)
    if json:
        print_json({"summary": summary.to_dict(), "files": [str(file) for file in files]})
        return
    print_summary(summary, output)
    output.print(Text(f"Report: {', '.join(map(str, files))}"))


def _interval(interval: "Interval") -> str:
    return f"{interval.estimate:.3f} [{interval.low:.3f}, {interval.high:.3f}]"


def _table_file(name: str) -> Path:
    if name.endswith(".toml"):
        return Path(name)
    if name not in TABLES:
        raise ConfigError(f"There is no table {name!r}; there are: {', '.join(TABLES)}, or name a TOML file.")
    return Path(__file__).resolve().parents[1] / "eval" / "tables" / "definitions" / f"{name}.toml"


def named_scorer(name: str) -> "BertScorer":
    from kraq_dspy.eval.metrics.bertscore import BertScorer

    if name == "minilm":
        return BertScorer.packaged()
    folder, _, layer = name.rpartition(":")
    if folder and layer.isdecimal():
        return BertScorer(folder, int(layer))
    return BertScorer(name)
