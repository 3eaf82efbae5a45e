"""Takes a DSPy prompt apart into input values and wanted fields, and puts an answer together in the same format.

Understands ChatAdapter, JSONAdapter and our own adapter, with demos or without: the last user message holds the inputs,
the system message names the outputs.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dspy.lm15 import Request

from kraq_dspy.errors import ModelError

FIELD = re.compile(r"^\[\[ ## (\w+) ## \]\][ \t]*\n?", re.MULTILINE)
OUTPUT = re.compile(r"^\d+\. `(\w+)` \(((?:[^()]|\([^()]*\))*)\)", re.MULTILINE)
CHOICES = re.compile(r"one of: ([^\n\"]+)")
LISTED = re.compile(r"^\[\d+\] ", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Task:
    """`inputs` by name, lists as lists where the prompt shows them as such; `outputs` are one-word kinds by name."""

    inputs: Mapping[str, Any]
    outputs: Mapping[str, str]
    choices: Mapping[str, tuple[str, ...]]
    as_json: bool

    def text(self, name: str) -> str:
        value = self.inputs.get(name, "")
        return value if isinstance(value, str) else "\n".join(map(str, value))

    def texts(self, name: str) -> list[str]:
        value = self.inputs.get(name, [])
        if isinstance(value, str):
            return [value] if value.strip() else []
        return [entry if isinstance(entry, str) else json.dumps(entry, ensure_ascii=False) for entry in value]


def read_task(request: Request) -> Task:
    """Raises ModelError for anything but a DSPy prompt."""
    system = request.system if isinstance(request.system, str) else ""
    user = next((message.text or "" for message in reversed(request.messages) if message.role == "user"), "")
    start = system.rfind("Your output fields are:\n")
    if start < 0:
        raise ModelError(
            "The embedded model answers the DSPy signatures of this library; it cannot chat. For free prompts, name a "
            "real model for the role."
        )
    listing = system[start : system.find("\nAll interactions will be structured", start)]
    outputs = {name: _kind(annotation) for name, annotation in OUTPUT.findall(listing)}
    return Task(_inputs(user), outputs, _choices(system, outputs), "Outputs will be a JSON object" in system)


def write_answer(task: Task, values: Mapping[str, Any]) -> str:
    """`values` in the order of the task's outputs. Markers in text that came from a document do not survive."""
    ordered = {name: values[name] for name in task.outputs}
    if task.as_json:
        return json.dumps(ordered, ensure_ascii=False)
    parts = [f"[[ ## {name} ## ]]\n{_shown(value)}" for name, value in ordered.items()]
    return "\n\n".join([*parts, "[[ ## completed ## ]]"])


def _inputs(user: str) -> dict[str, Any]:
    end = max(
        user.rfind("\n\nRespond with the corresponding output fields"), user.rfind("\n\nRespond with a JSON object")
    )
    parts = FIELD.split(user[:end] if end >= 0 else user)
    return {name: _value(text.strip()) for name, text in zip(parts[1::2], parts[2::2], strict=True)}


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


def _kind(annotation: str) -> str:
    word = re.match(r"\w+", annotation)
    return word[0].lower() if word else "str"


def _choices(system: str, outputs: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    choices = {}
    for name, kind in outputs.items():
        note = re.search(rf"\{{{name}\}}[^\n]*", system) or re.search(rf'"{name}": "[^\n]*', system)
        options = CHOICES.search(note[0]) if note and kind not in ("list", "dict") else None
        if options:
            choices[name] = tuple(option.strip() for option in options[1].split(";"))
    return choices


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text.replace("[[ ##", "[( ##")
