"""Takes the front matter of a Markdown file apart: what stands between two lines of dashes at its top."""

import json
import re

from kraq_dspy.records import Metadata

_FENCE = re.compile(r"---[ \t]*")
_END = re.compile(r"(---|\.\.\.)[ \t]*")
_FIELD = re.compile(r"([^\s:#\-][^:]*):(?:[ \t]+(.*))?")
_ITEM = re.compile(r"\s*-[ \t]+(.*)")
_BLOCK = re.compile(r"([|>])[0-9+-]{0,2}")
_PLAIN_NAME = re.compile(r"[a-z][a-z0-9_.-]*")
_COMMON = frozenset(
    "title author authors date tags categories keywords summary description abstract lang language".split()  # noqa: SIM905
)
_NUMBER = re.compile(r"-?\d+(\.\d+)?")


def split_front_matter(text: str) -> tuple[Metadata, str]:
    """Its fields, and the text without it; ({}, the text) where there is none.

    Fields are the plain ones of YAML: text, folded too, numbers, true and false, and lists of them, which become text
    with commas. What is nested deeper is left out. A text that begins with a line of dashes and no fields is a text
    with a rule, and so is a dialogue between rules ("Anna: Well?"): its names are no names of fields.
    """
    lines = text.split("\n")
    if not _FENCE.fullmatch(lines[0]):
        return {}, text
    end = next((number for number, line in enumerate(lines[1:], start=1) if _END.fullmatch(line)), None)
    if end is None or not any(_FIELD.fullmatch(line) for line in lines[1:end]):
        return {}, text
    values: dict[str, list[str]] = {}
    blocks: dict[str, str] = {}  # of the fields whose text stands in lines of its own: what is put between these
    name = ""
    for line in lines[1:end]:
        if match := _FIELD.fullmatch(line):
            name = match[1].strip()
            if name in values:  # no field is there twice, but who speaks speaks again
                return {}, text
            block = _BLOCK.fullmatch((match[2] or "").strip())
            if block:
                blocks[name] = "\n" if block[1] == "|" else " "
            values[name] = [] if block else _listed(match[2] or "")
        elif name in blocks:
            if line.strip():
                values[name].append(line.strip())
        elif name and (match := _ITEM.fullmatch(line)):
            values[name].append(match[1])
        elif line.strip() and not line[0].isspace() and not line.startswith("#"):
            return {}, text
        elif len(values.get(name, ())) == 1 and line.strip() and not _FIELD.fullmatch(line.strip()):
            values[name] = [f"{values[name][0]} {line.strip()}"]  # a value that goes on in the next line
    if not any(name.lower() in _COMMON or _PLAIN_NAME.fullmatch(name) for name in values):
        return {}, text
    fields = {
        name: blocks[name].join(parts) if name in blocks else _joined(parts) for name, parts in values.items() if parts
    }
    return fields, "\n".join(lines[end + 1 :]).lstrip("\n")


def _listed(value: str) -> list[str]:
    value = value.strip()
    if not value:
        return []
    if value.startswith("[") and value.endswith("]"):
        return [part for part in value[1:-1].split(",") if part.strip()]
    return [value]


def _joined(parts: list[str]) -> str | int | float | bool:
    values = [_scalar(part.strip()) for part in parts]
    return values[0] if len(values) == 1 else ", ".join(map(str, values))


def _scalar(value: str) -> str | int | float | bool:
    if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
        return value[1:-1]
    if value in ("true", "false") or (_NUMBER.fullmatch(value) and len(value) < 16):
        try:
            scalar: int | float | bool = json.loads(value)
        except ValueError:  # 007 is no number
            return value
        return scalar
    return value
