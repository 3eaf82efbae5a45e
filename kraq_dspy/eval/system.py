"""Defines systems that are asked questions: programs, retrievers and indexes, each under its name in a report.

A choice (`workspace/choices.py`), an entry of a paper's table (`papers/tables/table.py`) and a candidate of `select`
declare what is to be asked. An `AskedSystem` is what was made of one of them, or given by a user.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import methodcaller
from pathlib import Path
from time import perf_counter
from typing import Any, TypeAlias

import dspy

from kraq_dspy.errors import ConfigError, EvaluationError, KraqError
from kraq_dspy.eval.about import about_choice, about_retriever, about_system
from kraq_dspy.eval.datasets import Example
from kraq_dspy.eval.foreign import ForeignSystem
from kraq_dspy.eval.functions import AnsweringFunction, is_answering
from kraq_dspy.eval.latency import TOTAL
from kraq_dspy.eval.recorded import RecordedAnswers, require_recorded, without_recorded
from kraq_dspy.ports import Retriever
from kraq_dspy.retrievers.adapted import as_retriever
from kraq_dspy.workspace import Workspace
from kraq_dspy.workspace.choices import ProgramChoice

Made: TypeAlias = dspy.Module | Retriever
Asked: TypeAlias = Workspace | ForeignSystem | dspy.Module | Retriever | Callable[..., Any] | str | Path | None
"""What a system can be made of: an index, a program or its name, a retriever, a function; None for recorded answers."""


@dataclass(frozen=True, slots=True)
class AskedSystem:
    """A program, a retriever or recorded answers under its name in the report. `about` tells what it is made of.

    `choice` is that of a program made by its name, which knows its stages and how many calls it has in flight. `make`
    makes the same system of another index, for questions that hide documents; None if nobody knows how.
    """

    name: str
    asked: Made | RecordedAnswers | ForeignSystem
    answers: bool
    about: Mapping[str, str] = field(default_factory=dict)
    choice: ProgramChoice | None = None
    make: Callable[[Workspace], Made] | None = None

    @property
    def is_recorded(self) -> bool:
        """Whether its answers were given already, and stand in the rows of the questions."""
        return isinstance(self.asked, RecordedAnswers)

    @property
    def is_foreign(self) -> bool:
        """Whether it runs elsewhere, where nothing can be hidden from it."""
        return isinstance(self.asked, ForeignSystem)

    @property
    def calls_at_once(self) -> int:
        """How many model calls a question has in flight."""
        return self.choice.calls_at_once if self.choice else 1

    def passages(self, k: int) -> int | None:
        """How many passages it hands on where a retriever is asked for `k`; None if nobody knows."""
        if self.choice:
            return self.choice.budget
        return None if self.answers else k

    def scored(self, example: Example) -> Example:
        """The example as metrics see it: what was recorded is no gold."""
        return without_recorded(example) if self.is_recorded else example

    def ask(self, example: Example, space: Workspace | None, k: int) -> tuple[dspy.Prediction, Mapping[str, Any]]:
        """Return the prediction, and its seconds by stage. A program over an index is asked as `space.ask` does; a
        retriever finds `k` passages."""
        asked: Any = self.asked
        if self.is_recorded:
            return asked.of(example), {}

        question = example.question
        if example.type == "veracity":
            question += "\nIs this claim true, false, or a mixture of both?"
        started = perf_counter()
        if isinstance(asked, ForeignSystem):
            prediction = asked.ask(example, space, k)
        elif not self.answers:
            prediction = dspy.Prediction(hits=asked(question, k))
        elif space is not None and isinstance(asked, dspy.Module):
            prediction = _with_answer(space.ask(question, asked, next_questions=0))
        else:
            prediction = _with_answer(asked(question=question))
        whole = perf_counter() - started

        stages = self.choice.seconds(prediction) if self.choice else {}
        timings = {TOTAL if stage == "wall" else stage: seconds for stage, seconds in stages.items()}
        return prediction, timings or {"ask": whole, TOTAL: whole}

    def without_hidden(self, rest: Workspace | None) -> "AskedSystem":
        """The system as it is over the `rest` of its index, without hidden documents. Raises EvaluationError if it
        cannot be made so."""
        if rest is None or self.make is None:
            raise EvaluationError(
                f"The question hides documents, and kraq cannot hide them from {self.name!r}, which it did not make. "
                "Give a program or retriever by its name."
            )
        try:
            return replace(self, asked=self.make(rest))
        except KraqError as error:  # what has to be prepared first: these questions' affair alone
            raise EvaluationError(f"The question hides documents: {error}") from error


def system_of(
    given: Asked | AskedSystem, name: str = "", space: Workspace | None = None, examples: Sequence[Example] = ()
) -> AskedSystem:
    """The system that was given: itself, by an index, by a program's name, or by what is called; see `Asked`.

    `space` is the index that a program of a name works over. Whether a function answers is seen at the first of the
    `examples`, if its signature does not say it. Raises ConfigError for a name without an index, and for None where no
    example has a recorded answer.
    """
    if isinstance(given, AskedSystem):
        return given
    if given is None:
        require_recorded(examples)
        return AskedSystem(RecordedAnswers.name, RecordedAnswers(), True, {"program": "recorded answers"})

    if isinstance(given, ForeignSystem):
        return AskedSystem(name or given.place, given, given.answers, {"program": given.place})

    made: Any = given
    make: Callable[[Workspace], Any] | None = None
    if isinstance(given, Workspace):
        made, make = given.program(), Workspace.program
    elif isinstance(given, str | Path):
        if space is None:
            raise ConfigError(f"{str(given)!r} is no index; the name of a program needs one: evaluate(..., space=...).")
        program = str(given)
        make = methodcaller("program", program)
        made = make(space)

    if is_answering(made, examples):
        made = AnsweringFunction(made)
    is_retriever = getattr(made, "keeps_contract", False) or not isinstance(made, dspy.Module)
    if is_retriever:
        made = as_retriever(made)
    about = about_system(made, space)
    shown_name = name or about.get("program") or about["retriever"]
    return AskedSystem(shown_name, made, not is_retriever, about, make=make)


def chosen_program(space: Workspace, choice: ProgramChoice, name: str, states: Iterable[Path] = ()) -> AskedSystem:
    """A program made by its name; the report names the files of `states` that its steps take."""
    about = about_choice(choice, space.models.settings, space.embedder.name, space.default_retriever)
    if files := ", ".join(file.name for file in states):
        about["state"] = files
    make = methodcaller("make_program", choice)
    return AskedSystem(name, make(space), True, about, choice, make)


def chosen_retriever(space: Workspace, name: str, k: int) -> AskedSystem:
    """A retriever made by its name, which is asked for `k` passages."""
    make = methodcaller("retriever", name)
    return AskedSystem(name, make(space), False, about_retriever(name, space.embedder.name, [k]), make=make)


def _with_answer(prediction: dspy.Prediction | str) -> dspy.Prediction:
    """The prediction of a program with its `answer`, which it may call `response`, or return as a text alone."""
    if isinstance(prediction, str):
        return dspy.Prediction(answer=prediction)
    if prediction.get("answer") is not None:
        return prediction
    if prediction.get("response") is None:
        fields = ", ".join(prediction.keys()) or "nothing"
        raise EvaluationError(f"The program's prediction has no `answer`; it has {fields}.")
    return dspy.Prediction(**{**dict(prediction.items()), "answer": prediction.response})
