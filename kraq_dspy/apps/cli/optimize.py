"""Optimizes a step or a program on a dev set: `kraq optimize`."""

import contextlib
import io
import logging
import os
from dataclasses import fields
from pathlib import Path
from typing import Annotated

import dspy
from typer import Argument, Option

from kraq_dspy.apps.cli.evaluate import named_scorer
from kraq_dspy.apps.cli.model_options import Calls
from kraq_dspy.apps.cli.options import (
    Flag,
    Json,
    Scoped,
    Seed,
    chosen,
    command_class,
    missing,
    require_writable_file,
    with_options_of,
)
from kraq_dspy.apps.cli.progress import Bars
from kraq_dspy.apps.cli.terminal import note, output, print_json, say, short, two_columns
from kraq_dspy.errors import counted
from kraq_dspy.optimize import Compiled, Method, Resources, compile_program
from kraq_dspy.optimize.compile_run import Learned
from kraq_dspy.optimize.sizes import Sizes

_SHOWN = 4  # demonstrations


@with_options_of(Sizes, "demos", "candidates", "rounds")
@command_class
class Optimize(Scoped, Calls):
    """Optimize a step or a program, and measure it on other examples.

       kraq measures it before and after on examples that it did not learn from.
       Steps are extraction, gleaning, description, same-entity, summary, question-generation, answering, drafting,
       verification, judging, matching, confirmation, critics, decomposition and testset-fact (-bridge, -list,
       -comparison, -broad, -alone, -gold, -same, -wording); programs are those of kraq ask. The optimizers are DSPy's.
    The same command resumes an
       interrupted run: OUT.calls.jsonl keeps what was paid for; you can delete it afterwards.
    """

    target: Annotated[
        str,
        Argument(
            metavar="STEP|PROGRAM",
            help="answering, extraction, summary, question-generation, ..., or a program.",
        ),
    ]
    dev: Annotated[
        Path | None,
        Option(metavar="FILE", help="Labeled examples (csv or JSON lines). Default: examples made of the index."),
    ] = None
    out: Annotated[
        Path | None,
        Option("--out", "-o", metavar="FILE", help="Needed: the optimized program to write (.json), for --optimized."),
    ] = None
    index: Annotated[
        Path | None, Option(metavar="DIR", help="Index for programs, for leads_back, and to make examples of.")
    ] = None
    optimizer: Annotated[str, Option(help="bootstrap, random-search, mipro, gepa or labeled.")] = "bootstrap"
    metric: Annotated[str | None, Option(metavar="NAME", help="Default: the one that fits the step.")] = None
    train: Annotated[Path | None, Option(metavar="FILE", help="Examples to learn from. Default: half of --dev.")] = None
    budget_calls: Annotated[int | None, Option(min=1, help="Stop before more model calls than this.")] = None
    start: Annotated[Path | None, Option(metavar="FILE", help="Optimized program to start from.")] = None
    force: Annotated[bool, Flag("--force", help="Save the result even if it is worse.")] = False
    retriever: Annotated[str | None, Option(help="Retriever of a program's passages.")] = None
    bertscore: Annotated[str, Option(metavar="MODEL", help="For relevance: minilm, roberta-large, FOLDER:LAYER.")] = (
        "minilm"
    )
    seed: Seed = 0
    json: Json = False

    def run(self) -> None:
        if self.out is None or (self.dev is None and self.index is None):
            rows = self.dev or self.index
            raise missing({"--dev FILE (or --index DIR)": rows, "--out FILE": self.out})

        os.environ.setdefault("TQDM_DISABLE", "1")  # tqdm's own switch; there is a bar here

        if not logging.getLogger("kraq_dspy").isEnabledFor(logging.INFO):  # with --verbose, optimizers speak
            dspy.disable_logging()
        settings = self.settings() if self.index is None else self.settings_of(self.index)
        require_writable_file(self.out)

        sizes = chosen(Sizes, self, threads=settings.run.concurrency)
        method = Method(self.optimizer, sizes, self.seed, self.start, self.budget_calls)
        resources = Resources(
            self.index,
            settings,
            retriever=self.retriever,
            scorer=named_scorer(self.bertscore),
            scope=self.scope(),
        )
        # Optimizers print; standard output is for the report alone.
        with contextlib.redirect_stdout(io.StringIO()), Bars(settings, quiet=self.json) as bars:
            compiled = compile_program(
                self.target,
                self.dev,
                train=self.train,
                method=method,
                metric=self.metric,
                resources=resources,
                out=self.out,
                force=self.force,
                progress=bars,
            )

        if self.json:
            names = [each.name for each in fields(compiled)]
            shown_names = [name for name in names if name not in ("program", "state")]
            print_json({name: getattr(compiled, name) for name in shown_names})
        else:
            _show(compiled)


def _show(compiled: Compiled) -> None:
    comparison = compiled.comparison
    rows = {
        "before": comparison.baseline.shown(),
        "after": comparison.system.shown(),
        "difference": f"{comparison.difference.shown(signed=True)}, p = {comparison.test.p_value:.3f}",
        "rows": f"{compiled.n_train} learned from, {comparison.difference.n} measured on",
        "model calls": f"{compiled.usage.calls:,} paid, {compiled.replayed:,} known already",
        "state": str(compiled.path),
    }
    output.print(two_columns(f"{compiled.target}, {compiled.optimizer}: {compiled.metric}", rows))

    for each in compiled.learned:
        _show_learned(each)
    for problem in compiled.problems:
        note(short(problem, 300))

    if compiled.before == compiled.after:
        note("no row's score changed.")
    elif comparison.difference.low <= 0 <= comparison.difference.high:
        note("the interval of the difference has 0 in it: this may be chance. More rows would tell.")


def _show_learned(learned: Learned) -> None:
    """The instructions as a diff, and the beginnings of the demonstrations' inputs."""
    say((f"learned by {learned.predictor}", "bold"))
    for line in learned.diff:
        say((line, "red" if line.startswith("-") else "green"))
    if learned.demos:
        say(f"{counted(len(learned.demos), 'demonstration')}:")
    for demo in learned.demos[:_SHOWN]:
        say("  ", short("; ".join(f"{name}: {value}" for name, value in demo.items()), 160))
    if len(learned.demos) > _SHOWN:
        say(f"  and {len(learned.demos) - _SHOWN} more")
