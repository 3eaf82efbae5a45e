"""Compiles a program: checks for nothing whether it can be done, has it run, and keeps what is better."""

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from time import monotonic
from typing import Any

import dspy

from kraq_dspy._internal.dspy_internals import thawed
from kraq_dspy.asset.scope import Scope
from kraq_dspy.errors import ConfigError, WorseProgramError, counted
from kraq_dspy.eval.metrics.for_dspy import Metric, own_metric
from kraq_dspy.eval.metrics.generation import BertScorer
from kraq_dspy.eval.statistics import Comparison, compare
from kraq_dspy.models.embedders.text_encoder import EmbedderLike, as_embedder
from kraq_dspy.models.lms.roles import LanguageModels, ModelsLike, as_models
from kraq_dspy.optimize.compile_run import CompileRun, Learned, learned_by
from kraq_dspy.optimize.index_rows import KNOWN_PAIRS, source_of_pairs
from kraq_dspy.optimize.kept_answers import Spending, kept_answers
from kraq_dspy.optimize.optimizers import Method, Optimizer, find_optimizer
from kraq_dspy.optimize.rows import Rows, split_rows
from kraq_dspy.optimize.targets import Target, make_target
from kraq_dspy.ports import Progress, SilentProgress
from kraq_dspy.records import Usage
from kraq_dspy.settings import Settings
from kraq_dspy.state import ProgramState, load_state, save_state, state_of
from kraq_dspy.workspace import Workspace

OWN_ROWS = (
    "The rows are the index's own: {rows}. What was written there stands for what is right. Human examples are "
    "better where there are some."
)


@dataclass(frozen=True)
class Resources:
    """The index, models and other parts that the optimized step or program uses.

    Every argument is optional. To optimize a program, pass an index.

    Args:
        index: the index.
        settings: settings in place of kraq.toml.
        lm: a model, or models by role, where "default" stands for the others.
        embedder: an encoder in place of the index's.
        retriever: the retriever of a program.
        arguments: options of a program.
        scorer: measures the relevance of questions; by default with the packaged model.
        scope: which documents of an index with labels may be read.

    >>> Resources(lm={"default": "gguf/m.gguf"}).retriever is None
    True
    """

    index: str | Path | Workspace | None = None
    settings: Settings | None = None
    lm: ModelsLike | None = None
    embedder: EmbedderLike | None = None
    retriever: str | None = None
    arguments: Mapping[str, Any] | None = None
    scorer: BertScorer | None = None
    scope: Scope | None = None

    @contextmanager
    def opened(self) -> Iterator[Workspace | None]:
        """The index as a workspace; one that came open stays open."""
        if self.index is None or isinstance(self.index, Workspace):
            yield self.index
            return
        with Workspace.open(self.index, settings=self.settings, embedder=self.embedder, lm=self.lm) as space:
            if self.scope is None:
                yield space
            else:
                with space.scoped(self.scope) as scoped:
                    yield scoped

    def by_role(self, space: Workspace | None) -> LanguageModels:
        """The models, by the name of their role."""
        if self.lm is None and space is not None:
            return space.models
        embedder = as_embedder(self.embedder) if self.embedder is not None else space.embedder if space else None
        return as_models(self.lm, self.settings or Settings(), embedder=embedder)


@dataclass(frozen=True, repr=False)
class Compiled:
    """The outcome of `compile_program`.

    Attributes:
        program: the optimized program.
        state: the instructions and demonstrations of the program.
        target: the name of the step or program.
        optimizer: the name of the optimizer.
        metric: the name of the metric.
        comparison: the mean after ("system"), the mean before ("baseline"), and the paired difference with interval
            and test.
        before: the scores of the examples before, `[n_examples]`.
        after: the scores of the same examples afterwards, `[n_examples]`.
        n_train: the number of examples to learn from.
        usage: calls and tokens of this run.
        replayed: replies that an earlier run had paid for.
        seconds: the time of this run.
        problems: remarks that a reader needs.
        path: the file of the state; None if none was written.
        learned: the instructions and demonstrations of each predictor that changed.

    >>> compiled = compile_program("answering", "dev.jsonl", out="answering.json")  # doctest: +SKIP
    >>> compiled.comparison.difference.low, compiled.problems  # doctest: +SKIP
    (0.02, ())
    """

    program: dspy.Module
    state: ProgramState
    target: str
    optimizer: str
    metric: str
    comparison: Comparison
    before: tuple[float, ...]
    after: tuple[float, ...]
    n_train: int
    usage: Usage
    replayed: int
    seconds: float
    problems: tuple[str, ...] = ()
    path: Path | None = None
    learned: tuple[Learned, ...] = ()

    def __repr__(self) -> str:
        before, after = self.comparison.baseline, self.comparison.system
        return (
            f"Compiled({self.target!r} by {self.optimizer}: {self.metric} {before.estimate:.3f} -> "
            f"{after.estimate:.3f} on {counted(before.n, 'row')}, {counted(self.usage.calls, 'call')})"
        )


def compile_program(
    target: str | dspy.Module | Target,
    devset: Rows | None = None,
    metric: str | Metric | Callable[..., Any] | None = None,
    *,
    space: str | Path | Workspace | None = None,
    train: Rows | None = None,
    method: str | Method = "bootstrap",
    resources: Resources | None = None,
    out: str | Path | None = None,
    force: bool = False,
    progress: Progress | None = None,
) -> Compiled:
    """Optimize a step, a program or your own module on a dev set, and compare the result with the start.

    Args:
        target: the name of a step ("extraction") or program ("combined"), a module, or a `Target`.
        devset: a csv or JSON lines file, rows or `dspy.Example`s. Without `devset`, kraq makes examples from the
            index; the labels are replies of models.
        metric: the name of a metric, a `Metric`, or `metric(example, prediction)` in [0, 1]. By default the metric of
            the target.
        space: the index to work over.
        train: examples to learn from. Without `train`, kraq learns from one half of `devset` and measures on the
            other half.
        method: the name of an optimizer ("labeled", "bootstrap", "random-search", "mipro", "gepa"), or a `Method`.
        resources: models, encoder, options and index.
        out: the file to write. `OUT.calls.jsonl` keeps every paid reply, so that the same call resumes; delete it
            afterwards.
        force: save the result even if it is worse.
        progress: is called as the optimization advances.

    Returns:
        The optimized program, with scores before and after.

    Raises:
        ConfigError: for a target, metric or optimizer that does not fit.
        MissingExtraError: if the optimizer needs a package.
        EvaluationError: for unusable examples.
        BudgetExceededError: if the calls would exceed the budget.
        ModelError: if a model cannot answer.
        WorseProgramError: if the result is worse than the start, and not `force`.

    >>> compiled = compile_program("answering", "dev.jsonl", method="mipro", out="answering.json")  # doctest: +SKIP
    >>> compiled.learned[0].diff, compiled.comparison.difference  # doctest: +SKIP
    >>> compile_program(MyRAG(space.retriever()), "questions.csv", "token_f1", space=space)  # doctest: +SKIP
    """
    started = monotonic()
    method = Method(method) if isinstance(method, str) else method
    resources = resources or Resources()
    if space is not None:
        resources = dataclasses.replace(resources, index=space)

    optimizer = find_optimizer(method.optimizer)
    path = None if out is None else Path(out)
    if path is not None and path.suffix != ".json":
        raise ConfigError(f"--out is {path.name!r}; a program state is a .json file.")

    with contextlib.ExitStack() as stack:
        opened = stack.enter_context(resources.opened())
        models = resources.by_role(opened)
        chosen = make_target(
            target,
            opened,
            retriever=resources.retriever,
            scorer=resources.scorer,
            settings=resources.settings or models.settings,
            arguments=resources.arguments,
        )
        scored = chosen.metric(metric) if metric is None or isinstance(metric, str) else own_metric(metric)
        if method.start is not None:
            load_state(chosen.program, Path(method.start))
        _check(optimizer, chosen)

        rows = chosen.rows_of(opened) if devset is None else devset
        split = split_rows(rows, chosen.rows, train=train, seed=method.seed)
        spending = Spending(method.budget_calls, progress or SilentProgress())
        answers = kept_answers(None if path is None else path.with_suffix(".calls.jsonl"))
        stack.callback(answers.close)

        run = CompileRun(chosen, scored, split, method, models, answers, spending)
        if devset is None:
            own_rows = chosen.own_rows
            if opened is not None and KNOWN_PAIRS in own_rows:
                own_rows = own_rows.replace(KNOWN_PAIRS, source_of_pairs(opened))
            run.problems.append(OWN_ROWS.format(rows=own_rows))

        best, before, after = run.compiled()
        comparison = compare(after, before, seed=method.seed)
        state = state_of(best, {**_provenance(run, comparison), **(opened.learned_from if opened else {})})
        if not force and comparison.difference.estimate < 0:
            raise WorseProgramError(
                f"{optimizer.name} made {chosen.name} worse: {scored.name} fell from "
                f"{comparison.baseline.estimate:.3f} to {comparison.system.estimate:.3f} on "
                f"{counted(len(split.dev), 'row')}. "
                "Nothing was saved. Try another optimizer, more rows or another --seed; --force saves it all the same, "
                "and the calls are not paid again."
            )
        if path is not None:
            save_state(state, path)

    return Compiled(
        program=best,
        state=state,
        target=chosen.name,
        optimizer=optimizer.name,
        metric=scored.name,
        comparison=comparison,
        before=tuple(before),
        after=tuple(after),
        n_train=len(split.train),
        usage=spending.meter.total(),
        replayed=spending.meter.replays,
        seconds=monotonic() - started,
        problems=(*split.problems, *run.problems),
        path=path,
        learned=learned_by(chosen.program, state),
    )


def _check(optimizer: Optimizer, target: Target) -> None:
    with thawed(target.program):
        if not target.program.named_predictors():
            raise ConfigError(f"{target.name!r} has no predictor that could be optimized.")
    if optimizer.needs_labels and not target.labelled:
        raise ConfigError(
            f"The optimizer {optimizer.name!r} shows rows as they are, and those of {target.name!r} do not hold what "
            "the step writes. Choose bootstrap, which lets the model write them and keeps the good ones."
        )


def _provenance(run: CompileRun, comparison: Comparison) -> dict[str, Any]:
    names = {"default": run.lm.model, "teacher": run.teacher.model}
    names |= {name: lm.model for name, lm in run.models.items()}

    return {
        "library_version": version("kraq-dspy"),
        "dspy_version": version("dspy"),
        "target": run.target.name,
        "optimizer": run.method.optimizer,
        "sizes": dataclasses.asdict(run.method.sizes),
        "seed": run.method.seed,
        "metric": run.metric.name,
        "models": names,
        "data": {"digest": run.split.digest, "train": len(run.split.train), "dev": len(run.split.dev)},
        "started_from": None if run.method.start is None else str(run.method.start),
        "before": dataclasses.asdict(comparison.baseline),
        "after": dataclasses.asdict(comparison.system),
        "difference": dataclasses.asdict(comparison.difference),
        "p_value": comparison.test.p_value,
    }
