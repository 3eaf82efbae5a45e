"""Reads what models really write, so that a second call is not paid for a slip of form.

Understood beside the form asked for: text before and after the fields, reasoning in `<think>` tags, code fences, bold
markers, one JSON object instead of the fields, also inside another one, lines that begin with the fields' names, also
behind a field that has its marker, prose where one text is all that is wanted, a field's name before its value, "TRUE"
and "yes." for a truth value, `0.7 (high)` for a number, labels in another case or with words around them, Python
literals, a reply that was cut off (complete items are kept), one object for a list of them, items without a
description, and a bare name for a record that needs nothing else. Dropped are repeated texts and records, and objects
that lack more or hold the prompt's placeholders or schema.
"""

import ast
import dataclasses
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, get_args, get_origin

import dspy
import json_repair
from pydantic import ValidationError

from kraq_dspy._internal.display import whole_text
from kraq_dspy._internal.dspy_internals import parse_value
from kraq_dspy._internal.options import type_adapter
from kraq_dspy.models.lms.schemas import choices, record_fields, without_marker
from kraq_dspy.models.lms.unmarked import unmarked, with_named_texts, without_thinking

HEADER = re.compile(r"^[ \t>*_`#-]*\[\[? ?##? ?(\w+) ?##? ?\]\]?", re.MULTILINE)  # a line of its own forgives much
INLINE_HEADER = re.compile(r"\[\[ ## (\w+) ## \]\]")
NOTHING = re.compile(r"\W*(none|n/?a|null|nothing|empty)\b.{0,40}$", re.IGNORECASE | re.DOTALL)
FENCED = re.compile(r"^\s*```[\w-]*[ \t]*\n?(.*?)\n?\s*(?:```\s*.*)?$", re.DOTALL)
TRUTH = re.compile(r"\b(true|yes|same|false|no|not|different)\b", re.IGNORECASE)
DECIDED = re.compile(r"(true|yes|false|no)\b(?!\s*(?:or\b|/))", re.IGNORECASE)
NUMBER = re.compile(r"[-+]?(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][-+]?\d+)?")
BLANKS = 200
MOST_OBJECTS = 100  # that are looked for in a reply
PLACEHOLDER = re.compile(r"\W*(\.{3}|…|\{\w+\})\W*", re.IGNORECASE)
MAY_BE_EMPTY = frozenset({"description", "explanation", "type"})
"""Keys of text about a thing; the thing itself is named by others."""


class UnreadableError(ValueError):
    """A value that no repair makes fit its type."""


def read_reply(reply: str, fields: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Values of those `fields` (annotations by name) that can be read, and what was wrong with the others.

    A reply that breaks off inside a list loses its later lists too; they count as empty when it has at least one item.
    """
    sections = _sections(reply, fields)
    values: dict[str, Any] = {}
    trouble: list[str] = []
    for name, annotation in fields.items():
        if name not in sections:
            continue
        try:
            values[name] = coerced(_unnamed(sections[name], name), annotation)
        except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError) as error:
            trouble.append(f"{name}: {str(error).splitlines()[0] if str(error) else type(error).__name__}")
    cut_off = "completed" not in sections
    if cut_off and not trouble and any(isinstance(value, list) and value for value in values.values()):
        for name in list(fields)[len(values) :]:
            if get_origin(fields[name]) is list and all(other in values for other in list(fields)[: len(values)]):
                values.setdefault(name, [])
    trouble += [f"{name}: missing" for name in fields if name not in values and name not in sections]
    return values, trouble


def coerced(text: Any, annotation: Any) -> Any:
    """`text` (or a JSON value) as the type. Raises ValueError or TypeError."""
    if annotation is str or annotation is dspy.Reasoning:
        plain = text if isinstance(text, str) else json.dumps(text, ensure_ascii=False)
        return parse_value(whole_text(_unfenced(plain).strip()), annotation)
    if not isinstance(text, str):
        return _fitted(text, annotation)
    text = _unfenced(text).strip()
    if annotation is bool:
        return _truth(text)
    if annotation in (int, float):
        return _number(text, annotation)
    if choices(annotation):
        return parse_value(_choice(text, annotation), annotation)
    if get_origin(annotation) in (list, dict, tuple, set) or annotation in (list, dict) or _is_record(annotation):
        item = (get_args(annotation) or (str,))[0]
        lines = not _is_record(annotation) and (not _is_record(item) or _is_sentence(item))
        return _fitted(_data(text, lines=lines), annotation)
    return parse_value(text, annotation)


def _sections(reply: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Text or JSON values by field name; "completed" marks a whole reply.

    In this order: one JSON object that is all of the reply, fields under their markers, JSON objects that have all
    fields, one that is broken, and what has no form.
    """
    names = {name.casefold(): name for name in [*fields, "completed"]}
    if _unfenced(reply).lstrip().startswith("{") and (found := _whole_objects(reply, names, fields)):
        return found  # a text in it may be about tags and markers
    reply = without_marker(without_thinking(reply))
    return (
        _marked(reply, names, fields)
        or _whole_objects(reply, names, fields)
        or _from_object(reply, names)
        or _from_bare_value(reply, fields)
        or unmarked(reply, fields)
    )


def _marked(reply: str, names: Mapping[str, str], fields: Mapping[str, Any]) -> dict[str, Any]:
    """Text under the markers, the first of each; empty where there is no field's."""
    matches = {match.end(): match for pattern in (HEADER, INLINE_HEADER) for match in pattern.finditer(reply)}
    headers = [matches[end] for end in sorted(matches) if matches[end][1].casefold() in names]
    sections: dict[str, Any] = {}
    for number, header in enumerate(headers):
        end = headers[number + 1].start() if number + 1 < len(headers) else len(reply)
        sections.setdefault(names[header[1].casefold()], reply[header.end() : end].strip().removeprefix("**").strip())
    return with_named_texts(sections, fields) if any(name in sections for name in fields) else {}


def _whole_objects(reply: str, names: Mapping[str, str], fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of whole JSON objects that have all of them together; empty where there are none.

    Objects that follow each other at once are one answer, whose lists add up; of several answers with words or tags
    between them the last one counts, since models think before they answer. Where no answer has all fields, all of
    them may.
    """
    answers: list[dict[str, Any]] = []
    last_end = -1
    for start, end, value in _objects(reply):
        found = _named(value, names)
        if not found:
            continue
        if last_end >= 0 and not reply[last_end:start].strip(" \t\r\n,;`"):
            found = _added(answers.pop(), found)
        answers.append(found)
        last_end = end
    together: dict[str, Any] = {}
    for answer in reversed(answers):
        together = {**answer, **together}
        if answer.keys() >= fields.keys():
            return dict(answer)
    return together if together.keys() >= fields.keys() else {}


def _objects(reply: str) -> Iterator[tuple[int, int, dict[str, Any]]]:
    """JSON objects in the text with where they begin and end; none that stands in another one."""
    decoder, place = json.JSONDecoder(strict=False), reply.find("{")
    for _ in range(MOST_OBJECTS):
        if place < 0:
            return
        try:
            value, end = decoder.raw_decode(reply, place)
        except (ValueError, RecursionError):
            end = place + 1
        else:
            yield place, end, value
        place = reply.find("{", end)


def _added(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """Both answers as one: lists add up, and of other values the later one counts."""
    lists = {
        name: [*value, *after[name]]
        for name, value in before.items()
        if isinstance(value, list) and isinstance(after.get(name), list)
    }
    return {**before, **after, **lists}


def _from_object(reply: str, names: Mapping[str, str]) -> dict[str, Any]:
    """One JSON object with the fields as keys that is broken or breaks off; it may lie inside others."""
    return _named(mended(reply[reply.index("{") :]), names) if "{" in reply else {}


def mended(text: str) -> Any:
    """The JSON or Python literal that the text is meant to be, without the item of a list in which it breaks off; None
    where it is nested too deep to be one.

    >>> mended('{"names": ["Ada", "Charles Ba')
    {'names': ['Ada']}
    """
    try:
        value = json_repair.loads(text)
    except RecursionError:
        return None
    part = None if text.rstrip(" \t\r\n`").endswith(("]", "}", "[", "{", ",")) else value
    torn: list[Any] = []
    while part and isinstance(part, dict | list):
        torn = part if isinstance(part, list) else torn
        part = part[-1] if isinstance(part, list) else list(part.values())[-1]
    first = torn[0] if len(torn) == 1 and isinstance(torn[0], dict) else {}
    whole = {name: part for name, part in first.items() if json.dumps(part, ensure_ascii=False) in text}
    torn[-1:] = [whole] if whole else []  # of the only item, what is there
    if isinstance(value, dict):
        return {name: part for name, part in value.items() if torn or part is not torn}
    return value


def _named(value: Any, names: Mapping[str, str]) -> dict[str, Any]:
    """The parts of an object, or of one inside it, that have one of the `names`."""
    for _ in range(3):
        if not isinstance(value, dict):
            return {}
        fields = {names[key]: part for name, part in value.items() if (key := str(name).casefold()) in names}
        if fields:
            return fields
        value = next((part for part in value.values() if isinstance(part, dict)), None)
    return {}


def _unnamed(value: Any, name: str) -> Any:
    """The value without the field's own name, where that was written before it or around it."""
    if isinstance(value, dict) and len(value) == 1 and str(next(iter(value))).casefold() == name.casefold():
        return next(iter(value.values()))
    if not isinstance(value, str):
        return value
    text = _unfenced(value).strip()
    if text.startswith("{") and text.endswith("}") and (inner := _json_values(text)) and isinstance(inner[0], dict):
        return _unnamed(inner[0], name) if len(inner) == 1 and len(inner[0]) == 1 else value
    return re.sub(rf"^[\"'*`]*{re.escape(name)}[\"'*`]*\s*[:=]\s*", "", value, flags=re.IGNORECASE)


def _from_bare_value(reply: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    """The only field of a signature may come without its marker when its form shows that it is no chatter."""
    if len(fields) != 1:
        return {}
    (name, annotation), text = next(iter(fields.items())), _unfenced(reply).strip()
    if get_origin(annotation) is list and text.startswith("["):
        return {name: text}
    if (annotation in (bool, int, float) or choices(annotation)) and 0 < len(text.split()) <= 3:
        return {name: text}
    return {}


def _unfenced(text: str) -> str:
    """What is inside a code fence that begins the text; a fence that was never closed counts."""
    if not text.lstrip().startswith("```"):
        return text.removesuffix("```") if text.count("```") == 1 else text
    fence = FENCED.match(text)
    return fence[1] if fence else text


def _truth(text: str) -> bool:
    if text.strip(" .\"'`*") in ("1", "0"):
        return text.strip(" .\"'`*") == "1"
    first = DECIDED.match(text.lstrip("\"'`*([ "))
    if first:
        return first[1].lower() in ("true", "yes")
    verdicts = {word.lower() in ("true", "yes", "same") for word in TRUTH.findall(text)}
    if len(verdicts) != 1:
        raise UnreadableError(f"{text[:60]!r} is neither true nor false")
    return verdicts.pop()


def _number(text: str, kind: Any) -> Any:
    numbers = NUMBER.findall(text)
    starts = NUMBER.match(text.lstrip("\"'`*([ "))
    if not numbers or not (starts or len(numbers) == 1) or re.search(r"\d\s*[/%]", text):
        raise UnreadableError(f"{text[:60]!r} is no number")
    value = float(starts[0] if starts else numbers[0])
    if kind is int and value != int(value):
        raise UnreadableError(f"{text[:60]!r} is no whole number")
    return kind(value)


def _choice(text: str, annotation: Any) -> Any:
    options = choices(annotation)
    bare = text.strip(" \n\t.\"'`*").casefold()
    for option in options:
        if str(option).casefold() == bare:
            return option
    named = [option for option in options if re.search(rf"(?<!\w){re.escape(str(option))}(?!\w)", text, re.IGNORECASE)]
    # "Not related" names "related" too: the longest name wins where it contains the others
    named = [o for o in named if not any(o is not p and str(o).casefold() in str(p).casefold() for p in named)]
    if len(named) != 1:
        raise UnreadableError(f"{text[:60]!r} is none of {', '.join(map(str, options))}")
    return named[0]


def _data(text: str, *, lines: bool = True) -> Any:
    """The JSON or Python value in the text; of a list that was cut off, the complete items. Without any, its lines."""
    start = min((place for place in (text.find("["), text.find("{")) if place >= 0), default=-1)
    if start < 0:
        if NOTHING.match(text):
            return []
        if not lines:
            raise UnreadableError(f"{text[:60]!r} holds no list")
        entries = [line.strip(" \t-*•") for line in text.splitlines()]
        return [entry for entry in entries if entry]
    body = text[start:]
    values = _json_values(body)
    if values:
        return values[0] if len(values) == 1 else values
    try:
        return ast.literal_eval(body[: max(body.rfind("]"), body.rfind("}")) + 1])
    except (ValueError, SyntaxError, SystemError):  # the last where threads parse at once, in CPython 3.11
        return mended(body) or []


def _json_values(body: str) -> list[Any]:
    """The value that `body` begins with; with an object, the objects that follow it. Empty where it is not JSON."""
    decoder, place = json.JSONDecoder(strict=False), 0
    values: list[Any] = []
    while True:
        try:
            value, end = decoder.raw_decode(body, place)
        except ValueError:
            return values
        values.append(value)
        place = end + len(body[end:]) - len(body[end:].lstrip(" \t\r\n,;"))
        if not (isinstance(value, dict) and body.startswith("{", place)):
            return values


def ends_in_blanks(reply: str) -> bool:
    """Whether the reply's end is nothing but white space: a model held to a schema may write blanks until it is cut."""
    return len(reply) - len(reply.rstrip()) > BLANKS


def is_whole(reply: str) -> bool:
    """Whether the reply came to its end by its form: its last marker, or a JSON object that is closed."""
    if "completed" in reply[-100:].casefold():
        return True
    objects = list(_objects(reply))
    return bool(objects) and not reply[objects[-1][1] :].strip(" \t\r\n`")


def _fitted(value: Any, annotation: Any) -> Any:
    """A JSON value as the type; lists item by item, texts and records each once: labels and numbers, one for each of
    many things, may well be the same."""
    value = _whole(value)
    if _is_schema(value):
        raise UnreadableError("the schema was copied instead of data")
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (list, set, tuple) and arguments and (origin is not tuple or arguments[1:] == (...,)):
        items = _as_list(value, arguments[0])
        may_repeat = arguments[0] in (bool, int, float) or bool(choices(arguments[0]))
        kept: list[Any] = []
        for item in items:
            fitted = _item(item, arguments[0])
            if fitted is not _DROPPED and (may_repeat or fitted not in kept):
                kept.append(fitted)
        if items and not kept:
            raise UnreadableError(f"no item fits: {str(items[0])[:60]!r}")
        return origin(kept)
    if _is_record(annotation):
        if isinstance(value, list) and len(value) == 1:
            value = value[0]
        return type_adapter(annotation).validate_python(_completed(value, annotation))
    return type_adapter(annotation).validate_python(value)


def _whole(value: Any) -> Any:
    """The value without halves of characters, which escapes in JSON may leave."""
    if isinstance(value, str):
        return whole_text(value)
    if isinstance(value, list):
        return [_whole(entry) for entry in value]
    return {key: _whole(entry) for key, entry in value.items()} if isinstance(value, dict) else value


def _is_schema(value: Any) -> bool:
    """Whether this is a JSON schema, as a model copies it from a prompt."""
    if not isinstance(value, dict):
        return False
    inner = value.get("items", value.get("properties"))
    return "$defs" in value or (value.get("type") in ("array", "object") and isinstance(inner, dict))


_DROPPED = object()


def _item(value: Any, annotation: Any) -> Any:
    if annotation is str:
        if isinstance(value, str):
            return _DROPPED if _is_placeholder(value) else value
        return str(value) if isinstance(value, int | float) else _DROPPED
    if _is_schema(value):
        return _DROPPED
    try:
        if _is_record(annotation):
            value = _completed(value, annotation)
            if isinstance(value, dict) and any(_is_placeholder(value.get(name)) for name in record_fields(annotation)):
                return _DROPPED
        return type_adapter(annotation).validate_python(value)
    except ValidationError:
        return _DROPPED


def _is_placeholder(value: Any) -> bool:
    return isinstance(value, str) and PLACEHOLDER.fullmatch(value) is not None


def _as_list(value: Any, item: Any) -> list[Any]:
    if isinstance(value, list | tuple):
        return list(value)
    if isinstance(value, dict):
        inside = [entry for entry in value.values() if isinstance(entry, list)]
        is_item = _is_record(item) and any(name in _keys(value) for name in record_fields(item))
        return inside[0] if len(inside) == 1 and not is_item else [value]
    return [value] if value not in (None, "") else []


def _completed(value: Any, annotation: Any) -> Any:
    """An object with the record's own keys: case folded, numbers as text where text is wanted, a list taken as the
    fields in order, a text as the only field that must not be empty, and "" for a missing description."""
    hints = record_fields(annotation)
    needed = [name for name in hints if name not in MAY_BE_EMPTY]
    if isinstance(value, str) and value.strip() and len(needed) == 1 and hints[needed[0]] is str:
        value = {needed[0]: value}
    if isinstance(value, list | tuple) and len(value) == len(hints):
        value = dict(zip(hints, value, strict=True))
    if not isinstance(value, dict):
        return value
    value = _keys(value)
    for name, hint in hints.items():
        if hint is not str:
            continue
        if value.get(name) is None and name in MAY_BE_EMPTY:
            value[name] = ""
        elif isinstance(value.get(name), int | float):
            value[name] = str(value[name])
    return value


def _keys(value: dict[Any, Any]) -> dict[str, Any]:
    return {str(key).strip().casefold().replace(" ", "_"): entry for key, entry in value.items()}


def _is_sentence(annotation: Any) -> bool:
    """Whether a record can be told in a sentence, so that lines of prose are a list of them; a name is no sentence."""
    return [name for name in record_fields(annotation) if name not in MAY_BE_EMPTY] == ["summary"]


def _is_record(annotation: Any) -> bool:
    return dataclasses.is_dataclass(annotation)
