"""Says what an optimizer works on, a step, a program or a module of your own: its rows, and how it is scored."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import dspy

from kraq_dspy.errors import ConfigError, did_you_mean
from kraq_dspy.eval.metrics.for_dspy import METRICS, Metric, named_metric
from kraq_dspy.eval.metrics.generation import BertScorer
from kraq_dspy.optimize.index_rows import KNOWN_PAIRS, question_rows
from kraq_dspy.optimize.row_values import QUESTION_CELLS, QUESTION_FIELDS, answers_in, example_of, list_cell, text_in
from kraq_dspy.optimize.rows import ProgramInputs, Row, RowKind
from kraq_dspy.optimize.steps import STEPS, StepSource
from kraq_dspy.settings import Settings
from kraq_dspy.workspace import Workspace
from kraq_dspy.workspace.choices import choose_program
from kraq_dspy.workspace.registry import PROGRAMS


@dataclass(frozen=True)
class Target:
    """A program to optimize, with functions that read examples and score predictions.

    Args:
        name: the name of the target.
        program: the program.
        rows: how to make an example of a row.
        metrics: the metrics by name, the default first.
        role: the role whose model the program calls.
        labelled: whether an example has all outputs of the only predictor and can be a demonstration unchanged.
        index_rows: makes rows of an index, if the caller gives none.
        own_rows: what these rows are, in words.

    >>> rows = RowKind({"question", "answer"}, lambda row: dspy.Example(**row).with_inputs("question"))
    >>> Target("mine", dspy.Predict("question -> answer"), rows, METRICS).metric(None).name
    'token_f1'
    """

    name: str
    program: dspy.Module
    rows: RowKind
    metrics: Mapping[str, Metric]
    role: str = "default"
    labelled: bool = False
    index_rows: Callable[[Workspace], list[Row]] | None = None
    own_rows: str = ""

    def metric(self, name: str | None) -> Metric:
        """Raises ConfigError for a name that it does not have."""
        if name is None:
            return next(iter(self.metrics.values()))
        if name not in self.metrics and (":" in name or self.metrics is METRICS):
            return named_metric(name)
        if name not in self.metrics:
            raise ConfigError(f"There is no metric {name!r} for {self.name}; there are: {', '.join(self.metrics)}.")
        return self.metrics[name]

    def rows_of(self, space: Workspace | None) -> list[Row]:
        """The rows that the index itself has. Raises ConfigError if it has none."""
        if space is None or self.index_rows is None:
            raise ConfigError(
                f"There are no rows to optimize {self.name!r} with: give a dev set (--dev FILE), or, for a step or a "
                "program by name, an index whose own rows serve (--index DIR)."
            )
        return self.index_rows(space)


def make_target(
    name: str | dspy.Module | Target,
    space: Workspace | None = None,
    *,
    retriever: str | None = None,
    scorer: BertScorer | None = None,
    settings: Settings | None = None,
    arguments: Mapping[str, Any] | None = None,
) -> Target:
    """Make the target of a name, or of a module of your own, for `compile_program`.

    Args:
        name: a step or a program; a module; or a target, which is returned.
        space: the open index. Programs need one; steps do not.
        retriever: the retriever of a program.
        scorer: measures the relevance of questions; by default with the packaged model.
        settings: the settings. For example, the settings choose the program of the step "extraction".
        arguments: options of a program.

    Returns:
        The target.

    Raises:
        ConfigError: for an unknown name, or a program without an index.

    >>> target = make_target("extraction")
    >>> target.metric("link_f1").threshold, target.metric("operator:is_not").name
    (0.5, 'operator:is_not')
    """
    if isinstance(name, Target):
        return name
    if isinstance(name, dspy.Module):
        return target_of(name)
    if name in STEPS:
        step, source = STEPS[name], StepSource(settings or Settings(), space, retriever, scorer)
        program = step.make(source.settings)
        kind = RowKind({"id", *step.inputs, *step.right}, step.example, step.cells, _inputs_of(program))
        return Target(
            name, program, kind, step.metrics(source), step.role, step.labelled, step.index_rows, step.own_rows
        )
    if name not in PROGRAMS:
        raise ConfigError(
            f"There is no step or program {name!r}{did_you_mean(name, [*STEPS, *PROGRAMS.names()])}; "
            f"steps: {', '.join(STEPS)}; programs: {', '.join(PROGRAMS.names())}."
        )
    if space is None:
        raise ConfigError(f"The program {name!r} needs an index: --index DIR.")

    choice = choose_program(name, retriever, arguments or {}, measured=True)
    program = space.make_program(choice)
    rows = RowKind(QUESTION_FIELDS, _question_example, QUESTION_CELLS, _inputs_of(program))
    return Target(name, program, rows, METRICS, choice.role, index_rows=question_rows, own_rows=KNOWN_PAIRS)


def target_of(module: dspy.Module) -> Target:
    """A module of your own: its rows have the arguments of `forward`, and beside them what is right.

    Examples say themselves which of their fields are inputs (`with_inputs`). A row's `answers` are read as those of
    programs are; without a metric, they are what it is scored by.
    """
    inputs = _inputs_of(module)
    named = (*inputs.needed, *(inputs.besides or ()))

    def example(row: Row) -> dspy.Example:
        given = {name: row[name] for name in row if name in named}
        if not given:
            raise ConfigError(
                f"A row has none of the inputs of {type(module).__name__} ({', '.join(named)}); it has "
                f"{', '.join(row)}. Name its columns so, or give dspy.Examples with with_inputs(...)."
            )
        gold = {name: value for name, value in row.items() if name not in named}
        return dspy.Example(**{**gold, **given}).with_inputs(*given)

    cells = {**QUESTION_CELLS, "passages": list_cell}
    return Target(type(module).__name__, module, RowKind(None, example, cells, inputs), METRICS, "answerer")


def _inputs_of(module: dspy.Module) -> ProgramInputs:
    """The fields of a predictor's signature, or the arguments of the module's `forward`."""
    if isinstance(module, dspy.Predict):
        return _inputs_of_predictors([module])

    # Of the class: DSPy warns whoever takes `forward` from a module.
    kind = type(module)
    body = getattr(kind, "aforward", None) or getattr(kind, "forward", None)
    if body is None:
        raise ConfigError(f"{type(module).__name__} has no forward, so it cannot be run on a row.")

    _, *parameters = inspect.signature(body).parameters.values()  # without self
    by_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    named = [each for each in parameters if each.kind in by_name]
    if not named:
        return _inputs_of_predictors(module.predictors())

    needed = tuple(each.name for each in named if each.default is inspect.Parameter.empty)
    takes_anything = any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters)
    besides = None if takes_anything else tuple(each.name for each in named if each.name not in needed)
    return ProgramInputs(needed, besides)


def _inputs_of_predictors(predictors: Sequence[dspy.Predict]) -> ProgramInputs:
    fields = {name: field for each in predictors for name, field in each.signature.input_fields.items()}
    needed = tuple(name for name, field in fields.items() if field.is_required())
    return ProgramInputs(needed, tuple(name for name in fields if name not in needed))


def _question_example(row: Row) -> dspy.Example:
    return example_of(row, {"question": text_in(row, "question")}, answers_in(row))
