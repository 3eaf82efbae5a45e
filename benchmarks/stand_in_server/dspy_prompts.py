"""Answers DSPy's prompts, in the form of the adapter that wrote them: chat, JSON or XML."""

import json
import re
from typing import Any

from stand_in_server.passage import Passage, hash_64
from stand_in_server.request import ChatRequest, Reply, between
from stand_in_server.schema import fill

FIELD = re.compile(r"^\d+\. `(\w+)` \(((?:[^()]|\([^()]*\))*)\)", re.M)
CHOICE = re.compile(r"must exactly match \(no extra characters\) one of: (.*)|must be one of: (.*)")
XML_FIELD = re.compile(r"<(\w+)>\n(.*?)\n</\1>", re.S)


def dspy(request: ChatRequest) -> Reply | None:
    system = request.system
    if not ("Your output fields are:" in system and "All interactions will be structured" in system):
        return None
    outputs = between(system, "Your output fields are:", "All interactions will be structured") or ""
    names = re.findall(r"`(\w+)`", outputs)
    return "dspy:" + ",".join(names[:4]), _reply(request, FIELD.findall(outputs))


def _reply(request: ChatRequest, fields: list[tuple[str, str]]) -> str:
    system, user = request.system, request.last
    xml = bool(fields) and f"<{fields[0][0]}>" in system and "[[ ## " not in system
    text = _inputs_of(user, xml)
    passage = Passage(text)
    schema = request.schema
    if schema and schema.get("properties"):
        return json.dumps(fill(schema, "root", passage), ensure_ascii=False)
    notes = _notes_of(system)
    values = {name: _value(name, kind, notes.get(name, ""), text, passage) for name, kind in fields}
    if xml:
        return "\n\n".join(f"<{name}>\n{_written(value)}\n</{name}>" for name, value in values.items())
    json_asked = "Outputs will be a JSON object" in system or "Respond with a JSON object" in user
    if json_asked or request.body.get("response_format"):
        return json.dumps(values, ensure_ascii=False)
    sections = [f"[[ ## {name} ## ]]\n{_written(value)}" for name, value in values.items()]
    return "\n\n".join(sections) + "\n\n[[ ## completed ## ]]"


def _inputs_of(user: str, xml: bool) -> str:
    if xml:
        return "\n".join(value for _, value in XML_FIELD.findall(user)) or user
    inputs = user.split("Respond with the corresponding output fields")[0]
    inputs = inputs.split("Respond with a JSON object in the following order")[0]
    sections = re.split(r"\[\[ ## (\w+) ## \]\]\n?", inputs)
    return "\n".join(sections[2::2]) if len(sections) > 2 else user


def _notes_of(system: str) -> dict[str, str]:
    """What the prompt says of each output field's form."""
    notes = dict(re.findall(r"\{(\w+)\}\s+# note: the value you produce ([^\n]*)", system))
    start = system.find("Outputs will be a JSON object")
    if start >= 0:  # the JSON adapter writes its notes into a JSON object
        try:
            template, _ = json.JSONDecoder(strict=False).raw_decode(system[system.find("{", start) :])
        except ValueError:
            return notes
        notes |= {name: note.split("the value you produce ", 1)[-1] for name, note in template.items()}
    return notes


def _value(name: str, kind: str, note: str, text: str, passage: Passage) -> Any:
    if "JSON schema:" in note:
        try:
            return fill(json.loads(note.split("JSON schema:", 1)[1]), name, passage)
        except ValueError:
            pass
    if choice := CHOICE.search(note):
        options = [option.strip() for option in (choice.group(1) or choice.group(2)).split(";")]
        return options[hash_64(text, name) % len(options)]
    if "True or False" in note or kind == "bool":
        return True
    if kind == "int":
        return 7
    if kind == "float":
        return 0.8
    if kind.startswith("list"):
        return fill({"type": "array", "items": {"type": "string"}}, name, passage)
    return fill({"type": "string"}, name, passage)


def _written(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
