"""Asks a model every step of the library and says how well its replies can be read: `kraq lm check`.

Each step is asked twice, with small inputs that lie here. A model is fit for the main job (an index with questions)
when it can extract in one of the two ways, summarize and ask.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, get_origin

import dspy
from dspy.utils.exceptions import DSPyError

from kraq_dspy.models.lms.adapter import KraqAdapter
from kraq_dspy.models.lms.enforcement import enforces_schema, reason_of
from kraq_dspy.models.lms.kraq_lm import KraqLM
from kraq_dspy.models.lms.meter import Meter, working_on
from kraq_dspy.records import Usage

EXTRACTION = ("ExtractElements", "NameElements")
"""One of the two is enough: `[extract] preset` chooses."""
MAIN_JOB = (*EXTRACTION, "SummarizeCommunity", "GenerateQuestion")

_CURIE = (
    "Marie Curie was a physicist who was born in Warsaw and worked in Paris. She won the Nobel Prize in Physics in "
    "1903 together with her husband Pierre Curie. The University of Paris made her its first female professor."
)
_BRIDGE = (
    "The Forth Bridge is a railway bridge in Scotland, west of Edinburgh. It was designed by John Fowler and Benjamin "
    "Baker and opened in 1890. It carries the line from Edinburgh to Aberdeen over the Firth of Forth."
)
INPUTS: dict[str, tuple[Any, Any]] = {
    "answer": ("Marie Curie", "in 1890"),
    "audience": ("readers of science history", "engineers"),
    "catalogue": (
        ["1. Who got the Nobel Prize in Physics in 1903?", "2. Where is Warsaw?"],
        ["1. Where does the Forth Bridge stand?", "2. Which line crosses it?"],
    ),
    "count": (2, 3),
    "descriptions": (
        ["A physicist born in Warsaw.", "She won the Nobel Prize in 1903."],
        ["A railway bridge in Scotland.", "It opened in 1890."],
    ),
    "first": ("Marie Curie: a physicist in Paris", "Forth Bridge: a railway bridge"),
    "first_question": ("Who won the Nobel Prize in 1903?", "Who designed the Forth Bridge?"),
    "found": ("Marie Curie > Paris", "Forth Bridge > Scotland"),
    "most_characters": (30, 0),
    "name": ("Marie Curie", "Forth Bridge"),
    "question": ("Who won the Nobel Prize with her husband in 1903?", "When was the Forth Bridge opened?"),
    "rationale": ("She won it together with Pierre Curie.", "The text says that it opened in 1890."),
    "reference_answers": (["Marie Curie", "Curie"], ["1890"]),
    "reference_items": ([["Marie Curie", "Curie"]], [["1890"]]),
    "relationships": (["Marie Curie, married to, Pierre Curie"], ["Forth Bridge, stands in, Scotland"]),
    "response": ("Marie Curie", "in 1890"),
    "second": ("Maria Sklodowska-Curie: a physicist", "Forth Road Bridge: a suspension bridge for cars"),
    "second_question": ("Who got the Nobel Prize in Physics in 1903?", "When was the Forth Bridge opened?"),
    "sub_questions": (["Who was her husband?"], ["Where is the bridge?"]),
    "words": (20, 15),
}
"""By the name of an input; an input without an entry gets one of the two passages."""


@dataclass(frozen=True, slots=True)
class StepCheck:
    """What became of a step's trials: readable at the first call, at the second, not. Tokens and seconds are of all its
    calls; `reason` is that of the last trial that failed."""

    step: str
    readable: int
    second_call: int
    unreadable: int
    seconds: float
    prompt_tokens: int
    completion_tokens: int
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ModelCheck:
    model: str
    schemas: bool
    logprobs: bool
    steps: tuple[StepCheck, ...]
    schemas_because: str = ""

    @property
    def fit(self) -> bool:
        """Whether every trial of the main job that was made ended readable, with one preset of extraction at least."""
        unreadable = {step.step for step in self.steps if step.unreadable}
        extraction = [step.step for step in self.steps if step.step in EXTRACTION]
        cannot_extract = bool(extraction) and unreadable.issuperset(extraction)
        return not cannot_extract and unreadable.isdisjoint({*MAIN_JOB} - {*EXTRACTION})

    @property
    def advice(self) -> tuple[str, ...]:
        """What to set, or to expect."""
        lines = []
        if not self.schemas and any(step.second_call or step.unreadable for step in self.steps):
            lines.append(
                f"The server does not hold replies to JSON schemas ({self.schemas_because}). If it should (vLLM, "
                "llama.cpp, Ollama and OpenAI's service can), set "
                'structured = "json_schema" for the role; else expect more second calls.'
            )
        if not self.logprobs:
            lines.append(
                "No log-probabilities: for speculative RAG, give the roles drafter and verifier a model that has them."
            )
        bad = [step.step for step in self.steps if step.unreadable]
        if "ExtractElements" in bad and "NameElements" not in bad:
            lines.append('Extraction works with names and links alone: set preset = "small" under [extract].')
        if bad:
            lines.append(f"Unreadable: {', '.join(bad)}. Give the roles that need them a larger model.")
        return tuple(lines)


def check_model(
    lm: KraqLM, steps: Iterable[Any], *, trials: int = 2, tell: Callable[[StepCheck], None] = lambda step: None
) -> ModelCheck:
    """Asks every signature of `steps` `trials` times; `tell` hears each outcome as it comes.

    Raises KraqError when the model's server does not answer.
    """
    schemas = enforces_schema(lm)
    outcomes = []
    for signature in steps:
        outcomes.append(_check_step(lm, signature, trials))
        tell(outcomes[-1])
    return ModelCheck(lm.model, schemas, _gives_logprobs(lm), tuple(outcomes), reason_of(lm))


def inputs_of(signature: Any, trial: int) -> dict[str, Any]:
    """Built-in inputs for any signature."""
    values: dict[str, Any] = {}
    for name, field in signature.input_fields.items():
        if name in INPUTS:
            values[name] = INPUTS[name][trial % 2]
        else:
            passage = (_CURIE, _BRIDGE)[trial % 2]
            values[name] = passage.split(". ") if get_origin(field.annotation) is list else passage
    return values


def _check_step(lm: KraqLM, signature: Any, trials: int) -> StepCheck:
    name, meter = signature.__name__, lm.engine.ledger.meter
    before, start = _used(meter, name), time.monotonic()
    outcomes: Counter[str] = Counter()
    reason = ""
    for trial in range(trials):
        calls = _used(meter, name).calls
        try:
            with working_on(name, ""), dspy.context(lm=lm, adapter=KraqAdapter(), disable_history=True):
                dspy.Predict(signature)(**inputs_of(signature, trial))
        except DSPyError as error:
            outcomes["unreadable"] += 1
            reason = str(error).strip().partition("\n")[0]
            continue
        outcomes["second_call" if _used(meter, name).calls - calls > 1 else "readable"] += 1
    used, seconds = _used(meter, name), time.monotonic() - start
    return StepCheck(
        name,
        *(outcomes["readable"], outcomes["second_call"], outcomes["unreadable"]),
        seconds=seconds,
        prompt_tokens=used.prompt_tokens - before.prompt_tokens,
        completion_tokens=used.completion_tokens - before.completion_tokens,
        reason=reason,
    )


def _used(meter: Meter, stage: str) -> Usage:
    return sum((usage for (name, _), usage in meter.usage().items() if name == stage), Usage())


def _gives_logprobs(lm: KraqLM) -> bool:
    class Complete(dspy.Signature):
        """Answer in one word."""

        question: str = dspy.InputField()
        answer: str = dspy.OutputField()

    with working_on("log-probabilities", ""), dspy.context(lm=lm, adapter=KraqAdapter(), disable_history=True):
        try:
            answer = dspy.Predict(Complete)(question="What colour is the sky?", config={"logprobs": True})
        except DSPyError:
            return False
    logprobs: Any = answer.get("logprobs")
    return bool(logprobs and logprobs["content"])
