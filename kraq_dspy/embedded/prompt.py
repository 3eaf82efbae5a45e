"""Reads a step and its inputs out of the prompt that an adapter of DSPy's wrote, and writes its values as the reply.

A model of DSPy's is handed messages alone, so this is the one way in for every adapter: DSPy's chat and JSON formats,
ours, and one of your own (docs/decisions.md).
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from dspy.lm15 import Request

from kraq_dspy.errors import ModelError

FIELD = re.compile(r"^\[\[ ## (\w+) ## \]\][ \t]*\n?", re.MULTILINE)
OUTPUT = re.compile(r"^\d+\. `(\w+)` \(((?:[^()]|\([^()]*\))*)\)", re.MULTILINE)
CHOICES = re.compile(r"one of: ([^\n\"]+)")
LISTED = re.compile(r"^\[\d+\] ", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Task:
    """`inputs` by name, lists as lists where the prompt shows them as such; `outputs` are one-word kinds by name,
    `annotations` the whole types."""

    inputs: Mapping[str, Any]
    outputs: Mapping[str, str]
    choices: Mapping[str, tuple[str, ...]]
    as_json: bool
    annotations: Mapping[str, str] = field(default_factory=dict)

    def text(self, name: str) -> str:
        value = self.inputs.get(name, "")
        return value if isinstance(value, str) else "\n".join(map(str, value))

    def texts(self, name: str) -> list[str]:
        value = self.inputs.get(name, [])
        if isinstance(value, str):
            return [value] if value.strip() else []
        return [entry if isinstance(entry, str) else json.dumps(entry, ensure_ascii=False) for entry in value]

    def evidence(self) -> list[str]:
        """Every input but the question: lists as they are."""
        return [text for name in self.inputs if name != "question" for text in self.texts(name)]


def read_task(request: Request) -> Task:
    """Read the inputs and outputs of a DSPy prompt. Raises ModelError for another prompt."""
    system = request.system if isinstance(request.system, str) else ""
    return replace(_without_inputs(system), inputs=_inputs_of(request))


@lru_cache(maxsize=256)
def _without_inputs(system: str) -> Task:
    """What the prompt of the system, which is the same for each call of a step, says of the outputs."""
    start = system.rfind("Your output fields are:\n")
    if start < 0:
        raise ModelError(
            "The embedded model answers the DSPy signatures of this library; it cannot chat. For free prompts, name a "
            "real model for the role."
        )

    listing = system[start : system.find("\nAll interactions will be structured", start)]
    outputs = {}
    annotations = dict(OUTPUT.findall(listing))
    for name, annotation in annotations.items():
        kind = re.match(r"\w*", annotation)
        outputs[name] = kind[0].lower() if kind else "str"

    as_json = "Outputs will be a JSON object" in system
    return Task({}, outputs, _choices_of(outputs, system), as_json, annotations)


def _inputs_of(request: Request) -> dict[str, Any]:
    """The inputs by name that the last message of the user has, without its closing words."""
    from_user = [message.text or "" for message in request.messages if message.role == "user"]
    prompt = from_user[-1] if from_user else ""
    closings = ("the corresponding output fields", "a JSON object")
    end = max(prompt.rfind(f"\n\nRespond with {closing}") for closing in closings)
    if end >= 0:
        prompt = prompt[:end]

    _, *parts = FIELD.split(prompt)
    return {name: _value(text.strip()) for name, text in zip(parts[::2], parts[1::2], strict=True)}


def _choices_of(outputs: Mapping[str, str], system: str) -> dict[str, tuple[str, ...]]:
    """The values of which an output must be one, by its name, where the instructions list them."""
    choices = {}
    for name, kind in outputs.items():
        note = re.search(rf"\{{{name}\}}[^\n]*", system)
        note = note or re.search(rf'"{name}": "[^\n]*', system)
        options = CHOICES.search(note[0]) if note and kind not in ("list", "dict") else None
        if options:
            choices[name] = tuple(option.strip() for option in options[1].split(";"))
    return choices


def write_answer(task: Task, values: Mapping[str, Any]) -> str:
    """`values` in the order of the task's outputs. Markers in text that came from a document do not survive."""
    ordered = {name: values[name] for name in task.outputs}
    if task.as_json:
        return json.dumps(ordered, ensure_ascii=False)
    texts = {
        name: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for name, value in ordered.items()
    }
    parts = [f"[[ ## {name} ## ]]\n{text.replace('[[ ##', '[( ##')}" for name, text in texts.items()]
    return "\n\n".join([*parts, "[[ ## completed ## ]]"])


def _value(text: str) -> Any:
    if text.startswith("["):
        try:
            value = json.loads(text, strict=False)
        except ValueError:
            value = None
        if isinstance(value, list):
            return value
        if LISTED.match(text):  # how DSPy numbers a list given for a plain text field
            return [entry.strip().strip("«»").strip() for entry in LISTED.split(text) if entry.strip()]
    return text
