"""`compile_program`: measure, optimize, measure again on rows that the optimizer never saw, and keep what is better."""

import contextlib
import dataclasses
import io
import logging
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from time import monotonic
from typing import Any

import dspy
import tqdm

from kraq_dspy.concurrency import run_all
from kraq_dspy.config import Settings
from kraq_dspy.dspy_internals import thawed
from kraq_dspy.errors import (
    BudgetExceededError,
    ConfigError,
    KraqError,
    ModelError,
    WorseProgramError,
)
from kraq_dspy.eval.metrics.bertscore import BertScorer
from kraq_dspy.eval.metrics.for_dspy import Metric
from kraq_dspy.eval.statistics import Comparison, compare
from kraq_dspy.lms.defaults import lm_in_program
from kraq_dspy.lms.roles import LanguageModels
from kraq_dspy.lms.structured.adapter import KraqAdapter
from kraq_dspy.optimize.kept_answers import KeptAnswers, Spending, kept_model
from kraq_dspy.optimize.optimizers import Job, Optimizer, Sizes, find_optimizer
from kraq_dspy.optimize.rows import Row, Split, read_rows, split_rows
from kraq_dspy.optimize.step_metrics import own_metric
from kraq_dspy.optimize.targets import Target, make_target
from kraq_dspy.ports import Embedder, Progress, SilentProgress
from kraq_dspy.programs.nearest_demos import NearestDemos, mixed, near, unlearned
from kraq_dspy.programs.state import ProgramState, load_state, save_state, state_of
from kraq_dspy.records import Usage
from kraq_dspy.workspace import Workspace

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Compiled:
    """What a compile gave.

    `comparison` has the means after ("system") and before ("baseline") on the rows measured on, and their paired
    difference with interval and test; `before` and `after` are the scores of the rows. `usage` was paid in this run,
    `replayed` answers came from an earlier one, `estimated` is the most that it was expected to ask. `path` is the
    state's file, None where none was wanted.
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
    estimated: int
    seconds: float
    problems: tuple[str, ...] = ()
    path: Path | None = None


def compile_program(
    target: str | Target,
    dev: str | Path | Sequence[Row],
    *,
    index: str | Path | Workspace | None = None,
    train: str | Path | Sequence[Row] | None = None,
    optimizer: str = "bootstrap",
    metric: str | Metric | Callable[..., Any] | None = None,
    metric_threshold: float = 1.0,
    out: str | Path | None = None,
    settings: Settings | None = None,
    models: LanguageModels | Mapping[str, dspy.LM] | None = None,
    embedder: Embedder | None = None,
    retriever: str | None = None,
    arguments: Mapping[str, Any] | None = None,
    scorer: BertScorer | None = None,
    sizes: Sizes | None = None,
    train_share: float = 0.5,
    budget_calls: int | None = None,
    start: str | Path | None = None,
    force: bool = False,
    seed: int = 0,
    progress: Progress | None = None,
    announce: Callable[[int, Split], None] | None = None,
) -> Compiled:
    """Optimize a step ("extraction", ...), a program ("combined", ...) or a Target of your own on a dev set.

    The rows of `dev` are split by `seed`: the optimizer learns from `train_share` of them, and before and after are
    measured on the others; with `train`, on all of `dev`. `metric` is a name of the target's, a Metric, or a function
    `metric(example, prediction)` in [0, 1]; from `metric_threshold` on, an answer is good enough to be shown as a
    demonstration, for such a function. `start` is a state to begin with.

    `announce` is told the estimate and the split before the first call. With `out`, every answer that was paid for is
    kept beside it in `OUT.calls.jsonl`: after an interruption, a spent budget or a refusal, the same call goes on from
    there. Delete that file once you are content.

    Raises ConfigError and MissingExtraError for what cannot be done, EvaluationError for unusable rows,
    BudgetExceededError when the estimate or the calls exceed `budget_calls`, ModelError when a model cannot answer, and
    WorseProgramError, without saving, when the result is worse than what it started from and not `force`.
    """
    started = monotonic()
    chosen = find_optimizer(optimizer)
    sizes = sizes or Sizes()
    path = None if out is None else Path(out)
    if path is not None and path.suffix != ".json":
        raise ConfigError(f"--out is {path.name!r}; a program state is a .json file.")
    with contextlib.ExitStack() as stack:
        space = stack.enter_context(_opened(index, settings, models, embedder))
        made = (
            target
            if isinstance(target, Target)
            else make_target(
                target,
                space,
                retriever=retriever,
                scorer=scorer,
                gleanings=_gleanings(space, settings),
                arguments=arguments,
            )
        )
        encoder = embedder or (space.embedder if space else None)
        scored = _metric(made, metric, metric_threshold)
        if start is not None:
            load_state(made.program, Path(start), embedder=encoder)
        if chosen.name == "knn" and encoder is None:
            encoder = _own_embedder(settings)
        _check(chosen, made, _predictor_names(made.program))
        split = split_rows(
            _rows(dev), made.rows, train=None if train is None else _rows(train), share=train_share, seed=seed
        )
        lms = _models(models, space, settings, encoder)
        progress = progress or SilentProgress()
        spending = Spending(budget_calls, progress)
        answers = stack.enter_context(
            KeptAnswers(_calls_file(path), {"target": made.name, "library_version": version("kraq-dspy")})
        )
        run = _Run(made, chosen, scored, split, lms, answers, spending, sizes, seed, encoder, progress)
        estimate = estimate_calls(chosen, made, split, sizes)
        if budget_calls is not None and estimate > budget_calls + len(answers):
            raise BudgetExceededError(
                f"{optimizer} on {made.name} may take up to {estimate} model calls ({len(split.train)} rows to learn "
                f"from, {len(split.dev)} to measure on twice); --budget-calls is {budget_calls}. Nothing was asked. "
                "Allow more, give fewer rows, or lower --candidates, --rounds or --demos."
            )
        if announce is not None:
            announce(estimate, split)
        best, before, after = run.compiled(estimate)
        problems = [*split.problems, *run.problems]
        comparison = compare(after, before, seed=seed)
        state = state_of(best, _provenance(run, comparison, start))
        if comparison.difference.estimate < 0 and not force:
            raise WorseProgramError(
                f"{optimizer} made {made.name} worse: {scored.name} fell from {comparison.baseline.estimate:.3f} to "
                f"{comparison.system.estimate:.3f} on {len(split.dev)} rows. Nothing was saved. Try another optimizer, "
                "more rows or another --seed; --force saves it all the same, and the calls are not paid again."
            )
        if path is not None:
            save_state(state, path)
    return Compiled(
        program=best,
        state=state,
        target=made.name,
        optimizer=optimizer,
        metric=scored.name,
        comparison=comparison,
        before=tuple(before),
        after=tuple(after),
        n_train=len(split.train),
        usage=spending.paid,
        replayed=spending.replayed,
        estimated=estimate,
        seconds=monotonic() - started,
        problems=tuple(problems),
        path=path,
    )


def estimate_calls(optimizer: Optimizer, target: Target, split: Split, sizes: Sizes) -> int:
    """The most model calls of a compile: what the optimizer may ask, and the two measurements."""
    predictors = len(target.program.predictors())
    asked = optimizer.calls(len(split.train), target.calls, predictors, sizes, target.labelled)
    return asked + 2 * len(split.dev) * target.calls


class _Run:
    """One compile, after all that could be checked without a call was checked."""

    def __init__(
        self,
        target: Target,
        optimizer: Optimizer,
        metric: Metric,
        split: Split,
        models: Mapping[str, dspy.LM],
        answers: KeptAnswers,
        spending: Spending,
        sizes: Sizes,
        seed: int,
        embedder: Embedder | None,
        progress: Progress,
    ) -> None:
        self.target = target
        self.optimizer = optimizer
        self.metric = metric
        self.split = split
        self.sizes = sizes
        self.seed = seed
        self.embedder = embedder
        self.progress = progress
        self.spending = spending
        self.problems: list[str] = []
        self.lm = kept_model(models[target.role], answers, spending)
        self.teacher = self.lm
        if optimizer.writes_instructions:
            self.teacher = kept_model(models["teacher"], answers, spending)
            if self.teacher.model == "embedded":
                raise ConfigError(
                    f"The optimizer {optimizer.name!r} lets a model write instructions, which the embedded one cannot. "
                    "Name a model for the role 'teacher' (or --lm), or choose bootstrap, random-search, knn or labeled."
                )
        if self.lm.model == "embedded":
            self.problems.append("The embedded model reads no demonstrations and no instructions: it cannot improve.")
        self.student = target.program.deepcopy()
        asked = {name: lm_in_program(predictor) for name, predictor in self.student.named_predictors()}
        own = {name: lm for name, lm in asked.items() if lm is not None}
        self.models = {name: kept_model(lm, answers, spending) for name, lm in own.items()}
        if optimizer.one_model and len({lm.model for lm in self.models.values()}) > 1:
            raise ConfigError(
                f"The optimizer {optimizer.name!r} runs a program with one model; {target.name!r} has several. Choose "
                "another optimizer, or give its roles one model."
            )

    def compiled(self, estimate: int) -> tuple[dspy.Module, list[float], list[float]]:
        """What became of the student, and the scores before and after on the rows measured on."""
        asking = dspy.context(
            lm=self.lm, adapter=KraqAdapter(), num_threads=self.sizes.threads, disable_history=True, max_errors=10**9
        )
        with asking, _same_chance(self.seed):
            student = self._with_models(self.student)
            before = self._measured("measure before", student)
            self._begin("optimize", estimate - 2 * len(self.split.dev) * self.target.calls)
            with _quiet():
                best = self._optimized()
            self.progress.finish("optimize")
            best = self._with_models(best)
            after = self._measured("measure after", best)
        return self._released(best), before, after

    def _optimized(self) -> dspy.Module:
        """A fresh copy of the student with the instructions and demonstrations that the optimizer found.

        What else it hung on its result (candidates, logs, marks) stays behind.
        """
        student = _faithful(self._with_models(self.student, only_own=True))
        job = Job(
            student,
            self.split.train,
            self.metric,
            self.teacher,
            self.sizes,
            self.seed,
            self.target.labelled,
            self.embedder,
            self.spending,
        )
        try:
            found = self.optimizer.run(job)
        except KeyboardInterrupt:
            raise
        except Exception:
            self.spending.check()  # the reason, where an optimizer said only that there were errors
            raise
        self.spending.check()
        best = self.student.deepcopy()
        with thawed(found):
            learned = dict(found.named_predictors())
        changed = False
        for name, predictor in best.named_predictors():
            changed = _take_over(predictor, learned[name]) or changed
        if not changed:
            self.problems.append(
                "Nothing changed: no candidate was better than the program as it is. Where demonstrations were wanted, "
                "no training row may have reached the metric's threshold."
            )
        return best

    def _with_models(self, program: dspy.Module, *, only_own: bool = False) -> dspy.Module:
        """A copy that asks through what is kept. With `only_own`, one common model is left to the context, where
        optimizers look for it."""
        copy = program.deepcopy()
        several = len({id(lm) for lm in self.models.values()}) > 1
        for name, predictor in copy.named_predictors():
            predictor.lm = self.models.get(name) if several or not only_own else None
        return copy

    def _released(self, program: dspy.Module) -> dspy.Module:
        """With the models that the target's program had, so that it is used like it."""
        own = dict(self.target.program.named_predictors())
        for name, predictor in program.named_predictors():
            predictor.lm = own[name].lm
        return program

    def _measured(self, stage: str, program: dspy.Module) -> list[float]:
        """The score of each row measured on; a row that cannot be answered scores 0. Raises ModelError if none can."""
        self._begin(stage, len(self.split.dev) * self.target.calls)
        failures: list[str] = []

        def score(example: dspy.Example) -> float:
            try:
                prediction = program(**example.inputs())
            except KraqError:
                raise
            except Exception as error:  # noqa: BLE001 (an answer that cannot be read is a wrong one; all of them are not)
                failures.append(f"{type(error).__name__}: {error}")
                return 0.0
            return float(self.metric(example, prediction))

        scores = run_all(score, self.split.dev, limit=self.sizes.threads)
        self.spending.check()
        if len(failures) == len(scores):
            raise ModelError(
                f"None of {len(scores)} rows could be answered; the last reason: {failures[-1]}. Try the model with "
                "kraq ask, or another one."
            )
        if failures:
            self.problems.append(f"{stage}: {len(failures)} of {len(scores)} rows could not be answered and score 0.")
        self.progress.finish(stage)
        return scores

    def _begin(self, stage: str, calls: int) -> None:
        self.spending.stage = stage
        self.progress.start(stage, calls)


class _Faithful(dspy.Predict):
    """A predictor that keeps its model when an optimizer resets it."""

    def reset(self) -> None:
        lm = getattr(self, "lm", None)
        super().reset()
        self.lm = lm


def _faithful(program: dspy.Module) -> dspy.Module:
    for predictor in program.predictors():
        if isinstance(predictor, NearestDemos):  # to learn anew
            unlearned(predictor)
        kind: Any = type(predictor)
        predictor.__class__ = mixed(_Faithful, kind)
    return program


def _take_over(predictor: dspy.Predict, learned: dspy.Predict) -> bool:
    """Instructions and demonstrations; whether they are others than before."""
    fields = predictor.signature.fields
    demos = [
        dspy.Example(augmented=True, **{name: demo[name] for name in fields if name in demo}) for demo in learned.demos
    ]
    changed = bool(demos) or predictor.signature.instructions != learned.signature.instructions
    predictor.signature = learned.signature
    predictor.demos = demos
    if isinstance(learned, NearestDemos):
        near(predictor, demos, learned.nearest, learned.embedder)
    return changed


def _check(optimizer: Optimizer, target: Target, predictors: Sequence[str]) -> None:
    if not predictors:
        raise ConfigError(f"{target.name!r} has no predictor that could be optimized.")
    if optimizer.needs_labels and not target.labelled:
        raise ConfigError(
            f"The optimizer {optimizer.name!r} shows rows as they are, and those of {target.name!r} do not hold what "
            "the step writes. Choose bootstrap, which lets the model write them and keeps the good ones."
        )


def _predictor_names(program: dspy.Module) -> list[str]:
    with thawed(program):
        return [name for name, _ in program.named_predictors()]


def _metric(target: Target, metric: str | Metric | Callable[..., Any] | None, threshold: float) -> Metric:
    if metric is None or isinstance(metric, str):
        return target.metric(metric)
    return metric if isinstance(metric, Metric) else own_metric(metric, threshold)


def _rows(rows: str | Path | Sequence[Row]) -> Sequence[Row]:
    return read_rows(Path(rows)) if isinstance(rows, str | Path) else rows


def _calls_file(out: Path | None) -> Path | None:
    return None if out is None else out.with_suffix(".calls.jsonl")


@contextlib.contextmanager
def _opened(
    index: str | Path | Workspace | None,
    settings: Settings | None,
    models: LanguageModels | Mapping[str, dspy.LM] | None,
    embedder: Embedder | None,
) -> Iterator[Workspace | None]:
    if index is None or isinstance(index, Workspace):
        yield index
        return
    given = models if isinstance(models, LanguageModels) else None
    with Workspace.open(index, settings=settings, embedder=embedder, models=given) as space:
        yield space


def _models(
    models: LanguageModels | Mapping[str, dspy.LM] | None,
    space: Workspace | None,
    settings: Settings | None,
    embedder: Embedder | None,
) -> Any:
    if models is not None:
        return models if isinstance(models, LanguageModels) else _ByRole(models)
    if space is not None:
        return space.models
    return LanguageModels(settings or Settings(), embedder=embedder)


class _ByRole(dict[str, dspy.LM]):
    """Models by role; "default" stands in for the others."""

    def __missing__(self, role: str) -> dspy.LM:
        if "default" not in self:
            raise ConfigError(f"There is no model for the role {role!r}; give it, or one for 'default'.")
        return self["default"]


def _own_embedder(settings: Settings | None) -> Embedder:
    from kraq_dspy.embedders import load_embedder, resolve_encoder

    return load_embedder(resolve_encoder((settings or Settings()).encoder))


def _gleanings(space: Workspace | None, settings: Settings | None) -> int:
    return (settings or (space.index.manifest.settings if space else Settings())).extract.gleanings


def _provenance(run: _Run, comparison: Comparison, start: str | Path | None) -> dict[str, Any]:
    names = {"default": run.lm.model, "teacher": run.teacher.model}
    names |= {name: lm.model for name, lm in run.models.items()}
    return {
        "library_version": version("kraq-dspy"),
        "dspy_version": version("dspy"),
        "target": run.target.name,
        "optimizer": run.optimizer.name,
        "sizes": dataclasses.asdict(run.sizes),
        "seed": run.seed,
        "metric": run.metric.name,
        "models": names,
        "data": {"digest": run.split.digest, "train": len(run.split.train), "dev": len(run.split.dev)},
        "started_from": str(start) if start is not None else None,
        "before": dataclasses.asdict(comparison.baseline),
        "after": dataclasses.asdict(comparison.system),
        "difference": dataclasses.asdict(comparison.difference),
        "p_value": comparison.test.p_value,
    }


@contextlib.contextmanager
def _same_chance(seed: int) -> Iterator[None]:
    """DSPy draws from the process's generator in places: from the same seed, an interrupted compile asks the same."""
    before = random.getstate()
    random.seed(seed)
    try:
        yield
    finally:
        random.setstate(before)


class _IntoLog(io.TextIOBase):
    def write(self, text: str) -> int:
        if text.strip():
            logger.info("%s", text.strip())
        return len(text)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """What optimizers print goes to the log, and their bars and their chatter nowhere."""
    loggers = [logging.getLogger(name) for name in ("dspy", "optuna", "gepa")]
    levels = [each.level for each in loggers]
    made = tqdm.tqdm.__init__

    def without_bar(self: Any, *arguments: Any, **options: Any) -> None:
        made(self, *arguments, **{**options, "disable": True})

    tqdm.tqdm.__init__ = without_bar
    for each in loggers:
        each.setLevel(logging.CRITICAL if not logger.isEnabledFor(logging.INFO) else logging.INFO)
    try:
        with contextlib.redirect_stdout(_IntoLog()):
            yield
    finally:
        tqdm.tqdm.__init__ = made
        for each, level in zip(loggers, levels, strict=True):
            each.setLevel(level)
