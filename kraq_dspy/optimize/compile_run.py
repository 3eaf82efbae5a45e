"""Runs one compile: measures, lets an optimizer learn, measures on rows that it never saw, tells what was learned."""

import contextlib
import difflib
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import dspy
from dspy.utils.exceptions import AdapterParseError

from kraq_dspy._internal.both_ways import blocking, call
from kraq_dspy._internal.concurrency import run_all
from kraq_dspy._internal.dspy_internals import thawed
from kraq_dspy._internal.step import CALL_ERRORS
from kraq_dspy.errors import ConfigError, EvaluationError, KraqError, ModelError, counted
from kraq_dspy.eval.metrics.for_dspy import Metric
from kraq_dspy.models.lms.adapter import KraqAdapter
from kraq_dspy.models.lms.roles import LanguageModels, lm_in_program
from kraq_dspy.optimize.kept_answers import KeptAnswers, Spending, kept_model
from kraq_dspy.optimize.optimizers import NO_LIMIT, Job, Method, find_optimizer
from kraq_dspy.optimize.rows import Split
from kraq_dspy.optimize.targets import Target
from kraq_dspy.state import NAMELESS, ProgramState

PROPOSED = "proposed_instruction"
"""The field in which DSPy's MIPROv2 asks for an instruction."""


class CompileRun:
    """One compile, after all that could be checked without a call was checked."""

    def __init__(
        self,
        target: Target,
        metric: Metric,
        split: Split,
        method: Method,
        models: LanguageModels,
        answers: KeptAnswers,
        spending: Spending,
    ) -> None:
        self.target = target
        self.metric = metric
        self.split = split
        self.method = method
        self.spending = spending
        optimizer = self.optimizer = find_optimizer(method.optimizer)
        self.problems: list[str] = []
        self.lm = kept_model(models[target.role], answers, spending)
        self.teacher = self.lm
        if optimizer.writes_instructions:
            self.teacher = kept_model(models["teacher"], answers, spending)
            if self.teacher.model == "embedded":
                raise ConfigError(
                    f"The optimizer {optimizer.name!r} lets a model write instructions, which the embedded one cannot. "
                    "Name a model for the role 'teacher' (or --lm), or choose bootstrap, random-search or labeled."
                )

        if self.lm.model == "embedded":
            self.problems.append("The embedded model reads no demonstrations and no instructions: it cannot improve.")
        self.student = target.program.deepcopy()
        lms = {name: lm_in_program(predictor) for name, predictor in self.student.named_predictors()}
        self.models = {name: kept_model(lm, answers, spending) for name, lm in lms.items() if lm is not None}

    def compiled(self) -> tuple[dspy.Module, list[float], list[float]]:
        """Return what became of the student, and the scores before and after on the rows measured
        on."""
        asking = dspy.context(
            lm=self.lm,
            adapter=ProposingAdapter(),
            num_threads=self.method.sizes.threads,
            disable_history=True,
            max_errors=NO_LIMIT,
        )
        with asking, same_chance(self.method.seed):
            before = self._measured("measure before", self._with_models(self.student))
            self.spending.begin("optimize")
            best = self._optimized()
            self.spending.progress.finish("optimize")
            after = self._measured("measure after", self._with_models(best))

        for name, predictor in best.named_predictors():
            predictor.lm = dict(self.target.program.named_predictors())[name].lm
        return best, before, after

    def _optimized(self) -> dspy.Module:
        """A fresh copy of the student with the instructions and demonstrations that the optimizer found.

        What else it hung on its result (candidates, logs, marks) stays behind.
        """
        job = Job(
            KeptModels(self._with_models(self.student, only_own=True)),
            self.split.train,
            self.metric,
            self.teacher,
            self.method.sizes,
            self.method.seed,
            self.target.labelled,
            self.spending,
        )
        try:
            compiled: Any = self.optimizer.run(job)
        except Exception:
            self.spending.check()  # the reason, where an optimizer said only that there were errors
            raise

        self.spending.check()
        best = self.student.deepcopy()
        with thawed(compiled.program):
            learned = dict(compiled.program.named_predictors())
        changed = [take_over(predictor, learned[name]) for name, predictor in best.named_predictors()]
        if not any(changed):
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
        leaves_to_context = only_own and not several
        for name, predictor in copy.named_predictors():
            predictor.lm = None if leaves_to_context else self.models.get(name)
        return copy

    def _measured(self, stage: str, program: dspy.Module) -> list[float]:
        """The score of each row measured on; a row that cannot be answered scores 0.

        If none can, it raises ModelError where a model's reply is why, and EvaluationError where the program is.
        """
        self.spending.begin(stage)
        failures: list[Exception] = []

        def score(example: dspy.Example) -> float:
            try:
                prediction = program(**example.inputs())
            except KraqError:
                raise
            except Exception as error:  # noqa: BLE001 (one answer that cannot be read is wrong; if none can, that is an error)
                failures.append(error)
                return 0.0
            return float(self.metric(example, prediction))

        scores = run_all(score, self.split.dev, limit=self.method.sizes.threads)
        self.spending.check()
        if len(failures) == len(scores):
            raise _of_every_row(failures[-1], len(scores), self.target.name) from failures[-1]
        if failures:
            self.problems.append(
                f"{stage}: {len(failures)} of {counted(len(scores), 'row')} could not be answered and score 0."
            )
        self.spending.progress.finish(stage)
        return scores


def _of_every_row(error: Exception, n_rows: int, program: str) -> KraqError:
    """The error of a run in which no row could be answered: whose fault that is, and what to try."""
    reason = f"{type(error).__name__}: {error}".rstrip(".")
    if isinstance(error, CALL_ERRORS):
        return ModelError(
            f"None of {counted(n_rows, 'row')} could be answered; the last reason: {reason}. Try the model with "
            "kraq ask, or "
            "another one."
        )
    return EvaluationError(
        f"{program} failed on each of {counted(n_rows, 'row')}; the last error: {reason}. Call it with one row, "
        "program(**example.inputs()), to see where."
    )


class ProposingAdapter(KraqAdapter):
    """Takes a reply as the proposed instruction, unchanged, if neither the first reply nor the second could be read.

    Small models forget the markers or chatter, and one such reply would end a whole run of MIPROv2. An empty reply
    keeps the instruction that there was.
    """

    async def acall(
        self, lm: Any, lm_kwargs: dict[str, Any], signature: Any, demos: list[Any], inputs: dict[str, Any]
    ) -> list[dict[str, Any]]:
        try:
            return await super().acall(lm, lm_kwargs, signature, demos, inputs)
        except AdapterParseError as error:
            proposed = error.lm_response.strip() or str(inputs.get("basic_instruction", "")).strip()
            if PROPOSED not in signature.output_fields or not proposed:
                raise
            return [{**dict.fromkeys(signature.output_fields, ""), PROPOSED: proposed}]

    __call__ = blocking(acall)


@contextlib.contextmanager
def same_chance(seed: int) -> Iterator[None]:
    """DSPy draws from the process's generator in places: from the same seed, an interrupted compile asks the same."""
    before = random.getstate()
    random.seed(seed)
    try:
        yield
    finally:
        random.setstate(before)


@dataclass(frozen=True, slots=True)
class Learned:
    """What one predictor of a program learned: its instructions before and after, and its demonstrations."""

    predictor: str
    before: str
    after: str
    demos: tuple[Mapping[str, Any], ...] = ()

    @property
    def diff(self) -> tuple[str, ...]:
        """The sentences of the instructions that went ("- ...") and came ("+ ..."); empty if they are the same.

        >>> Learned("answer", "Answer briefly. Be exact.", "Answer in a word. Be exact.").diff
        ('- Answer briefly.', '+ Answer in a word.')
        """
        before, after = (re.split(r"(?<=[.!?:])\s+|\n+", text.strip()) for text in (self.before, self.after))
        return tuple(line for line in difflib.ndiff(before, after) if line.startswith(("- ", "+ ")))


def learned_by(program: dspy.Module, state: ProgramState) -> tuple[Learned, ...]:
    """Return what the state has beyond the program that was optimized, by predictor; the unchanged
    ones are left out."""
    with thawed(program):
        before = {name: predictor.signature.instructions for name, predictor in program.named_predictors()}
    every = (
        Learned(name, before[name], saved["instructions"], tuple(saved["demos"]))
        for name, saved in state.predictors.items()
    )
    return tuple(learned for learned in every if learned.demos or learned.before != learned.after)


class KeptModels(dspy.Module):
    """Holds a program whose predictors keep their models when an optimizer resets a copy of it.

    DSPy's optimizers work on such copies, and to reset a predictor is to take its model away.
    """

    def __init__(self, program: dspy.Module) -> None:
        super().__init__()
        self.program = program

    async def aforward(self, **inputs: Any) -> Any:
        return await call(self.program, **inputs)

    forward = blocking(aforward)

    def reset_copy(self) -> "KeptModels":
        copy: KeptModels = self.deepcopy()
        models = [predictor.lm for predictor in copy.predictors()]
        for parameter in copy.parameters():
            parameter.reset()
        for predictor, lm in zip(copy.predictors(), models, strict=True):
            predictor.lm = lm
        return copy


def take_over(predictor: dspy.Predict, learned: dspy.Predict) -> bool:
    """Give the predictor what was learned. Returns whether its instructions or its demonstrations changed."""
    names = tuple(predictor.signature.fields)
    learned_demos = [_values_of(demo, names) for demo in learned.demos]
    is_reworded = predictor.signature.instructions != learned.signature.instructions
    changed = is_reworded or learned_demos != [_values_of(demo, names) for demo in predictor.demos]

    demos = [dspy.Example(augmented=True, **values) for values in learned_demos]
    if learned.signature.__name__ == NAMELESS:
        learned.signature.__name__ = predictor.signature.__name__
    predictor.signature, predictor.demos = learned.signature, demos
    return changed


def _values_of(demo: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """What a demonstration has of these fields."""
    return {name: demo[name] for name in names if name in demo}
