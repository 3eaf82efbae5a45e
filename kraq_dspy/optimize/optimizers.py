"""Declares DSPy's optimizers by name: what each needs, and how it is run.

A `Method` names one with its sizes and its budget. Those that choose between candidates get two halves of the training
rows: what a candidate's demonstrations come from must not say which one is best.
"""

import importlib.util
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dspy

from kraq_dspy.errors import ConfigError, MissingExtraError
from kraq_dspy.eval.metrics.for_dspy import Metric
from kraq_dspy.optimize.kept_answers import Spending
from kraq_dspy.optimize.sizes import Sizes

NO_LIMIT = 10**9  # of errors: those that must end a compile are kept by Spending, a wrong answer is a wrong answer


@dataclass(frozen=True)
class Method:
    """How to optimize a program.

    Args:
        optimizer: one of DSPy's optimizers: "labeled", "bootstrap", "random-search", "mipro" or "gepa".
        sizes: the sizes of the optimizer's search.
        seed: the random seed of split, optimizer and bootstrap.
        start: the file of an optimized program to start from.
        budget_calls: the most model calls; None for no limit.

    >>> Method("mipro", Sizes(demos=2, candidates=4), budget_calls=500).sizes.candidates
    4
    """

    optimizer: str = "bootstrap"
    sizes: Sizes = field(default_factory=Sizes)
    seed: int = 0
    start: str | Path | None = None
    budget_calls: int | None = None


@dataclass(frozen=True, slots=True)
class Job:
    """What an optimizer works with. `labelled`: an example holds all outputs of the student's one predictor."""

    student: dspy.Module
    train: Sequence[dspy.Example]
    metric: Metric
    teacher: dspy.LM  # writes instructions
    sizes: Sizes
    seed: int
    labelled: bool
    spending: Spending

    @property
    def guarded(self) -> Any:
        return self.spending.guard(self.metric)

    @property
    def halves(self) -> tuple[list[dspy.Example], list[dspy.Example]]:
        """Rows for building candidates, and rows for selecting one."""
        cut = len(self.train) // 2
        return list(self.train[:cut]), list(self.train[cut:])


@dataclass(frozen=True, slots=True)
class Optimizer:
    """One of DSPy's optimizers."""

    name: str
    run: Callable[[Job], dspy.Module]
    package: str = ""
    writes_instructions: bool = False
    needs_labels: bool = False


def find_optimizer(name: str) -> Optimizer:
    """Raises ConfigError for an unknown name, MissingExtraError when its package is missing: before the first call."""
    if name not in OPTIMIZERS:
        raise ConfigError(f"There is no optimizer {name!r}; there are: {', '.join(OPTIMIZERS)}.")
    optimizer = OPTIMIZERS[name]
    if optimizer.package and importlib.util.find_spec(optimizer.package) is None:
        raise MissingExtraError(optimizer.package, "optimize", f"The optimizer {name!r}")
    return optimizer


def _labeled(job: Job) -> dspy.Module:
    shuffled = random.Random(job.seed).sample(list(job.train), len(job.train))
    return dspy.LabeledFewShot(k=job.sizes.demos).compile(job.student, trainset=shuffled, sample=False)


def _bootstrap(job: Job) -> dspy.Module:
    optimizer = dspy.BootstrapFewShot(
        metric=job.guarded,
        max_bootstrapped_demos=job.sizes.demos,
        max_labeled_demos=job.sizes.demos if job.labelled else 0,
        max_errors=NO_LIMIT,
    )
    return optimizer.compile(job.student, trainset=list(job.train))


def _random_search(job: Job) -> dspy.Module:
    make_from, choose_by = job.halves
    optimizer = dspy.BootstrapFewShotWithRandomSearch(
        metric=job.guarded,
        max_bootstrapped_demos=job.sizes.demos,
        max_labeled_demos=job.sizes.demos if job.labelled else 0,
        num_candidate_programs=job.sizes.candidates,
        num_threads=job.sizes.threads,
        max_errors=NO_LIMIT,
    )
    tried = range(-3 if job.labelled else -1, job.sizes.candidates)  # -3 and -2: no demonstrations, labelled ones alone
    return optimizer.compile(job.student, trainset=make_from, valset=choose_by, restrict=[-3, *tried])


def _mipro(job: Job) -> dspy.Module:
    make_from, choose_by = job.halves
    optimizer = dspy.MIPROv2(
        metric=job.guarded,
        prompt_model=job.teacher,
        task_model=dspy.settings.lm,
        auto=None,
        num_candidates=job.sizes.candidates,
        max_bootstrapped_demos=job.sizes.demos,
        max_labeled_demos=job.sizes.demos if job.labelled else 0,
        num_threads=job.sizes.threads,
        max_errors=NO_LIMIT,
        seed=job.seed + 1,  # 0 is taken for none
    )

    return optimizer.compile(
        job.student, trainset=make_from, valset=choose_by, num_trials=job.sizes.trials, minibatch=False
    )


def _gepa(job: Job) -> dspy.Module:
    make_from, choose_by = job.halves
    optimizer = dspy.GEPA(
        metric=job.spending.guard(job.metric.with_feedback()),
        # each candidate is reflected on with two small batches, then measured on the second half
        max_metric_calls=len(choose_by) + job.sizes.candidates * (len(choose_by) + 6),
        reflection_lm=job.teacher,
        num_threads=job.sizes.threads,
        seed=job.seed,
        warn_on_score_mismatch=False,
    )
    return optimizer.compile(job.student, trainset=make_from, valset=choose_by)


OPTIMIZERS: Mapping[str, Optimizer] = {
    optimizer.name: optimizer
    for optimizer in (
        Optimizer("bootstrap", _bootstrap),
        Optimizer("random-search", _random_search),
        Optimizer("mipro", _mipro, package="optuna", writes_instructions=True),
        Optimizer("gepa", _gepa, package="gepa", writes_instructions=True),
        Optimizer("labeled", _labeled, needs_labels=True),
    )
}
