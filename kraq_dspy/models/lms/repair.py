"""Reads what models really write, so that a second call is not paid for a slip of form.

Understood beside the form asked for: text before and after the fields, thinking before the answer, code fences, bold
markers, one JSON object instead of the fields, also inside another one or broken off (complete items are kept), lines
that begin with the fields' names, prose where one text is all that is wanted, "TRUE" and "yes." for a truth value,
`0.7 (high)` for a number, labels in another case or with words around them, Python literals, one object for a list of
them, items without a description, and a bare name for a record that needs nothing else. Dropped are repeated texts and
records, and objects that lack more or hold the prompt's placeholders. `tests/recorded` has the replies behind this.
"""

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import is_dataclass
from typing import Any, get_args, get_origin

import dspy
import json_repair
from pydantic import ValidationError

from kraq_dspy._internal.display import whole_text
from kraq_dspy._internal.dspy_internals import parse_value
from kraq_dspy._internal.options import type_adapter
from kraq_dspy.models.lms.schemas import choices, record_fields

HEADER = re.compile(r"^[ \t>*_`#-]*\\?\[\\?\[? ?##? ?(\w+) ?##? ?\\?\]\\?\]?\**", re.MULTILINE)
"""A line of its own forgives much."""
EXACT = re.compile(r"\[\[ ?## (\w+) ## ?\]\]")
"""A marker as it was asked for: within a line it counts where the field has none at the beginning of one."""
NOTHING = re.compile(r"\W*(none|n/?a|null|nothing|empty)\b.{0,40}$", re.IGNORECASE | re.DOTALL)
FENCE = re.compile(r"\s*```[\w-]*[ \t]*\n?")
TRUTH = re.compile(r"\b(true|yes|same|false|no|not|different)\b", re.IGNORECASE)
DECIDED = re.compile(r"(true|yes|false|no)\b(?!\s*(?:or\b|/))", re.IGNORECASE)
NUMBER = re.compile(r"[-+]?(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][-+]?\d+)?")
PLACEHOLDER = re.compile(r"\W*(\.{3}|…|\{\w+\})\W*")
BROKEN_FORM = re.compile(r"\s*[\[{<`]|.*(?:\[\[|##|```)", re.DOTALL)
_OFFER = r"\s*(?:sure|certainly|of course|absolutely|okay|ok|here(?:['’]s| is| are| you))\b"
OFFERED = re.compile(rf"(?<!\s){_OFFER}[^\n]{{0,200}}:[ \t]*\n+", re.IGNORECASE)
CHATTER = re.compile(rf"{_OFFER}|\s*(?:i['’]m sorry|i am sorry|sorry\b|as an ai\b|i can(?:no|['’])t\b)", re.IGNORECASE)
THOUGHT = re.compile(
    r"\s*(?:<(think|thinking|thought|reasoning|reflection)>.*?</\1>|\[THINK\].*?\[/THINK\])", re.IGNORECASE | re.DOTALL
)
END_OF_THOUGHT = re.compile(r"</think(?:ing)?>(?=\s*(?:\n|\[\[|\{|```))", re.IGNORECASE)
"""Before an answer, where the chat template has written the beginning of the thought into the prompt."""
MAY_BE_EMPTY = frozenset({"description", "explanation", "type"})
"""Keys of text about a thing; the thing itself is named by others."""
_REPEATED = 40  # characters


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
            values[name] = coerced(sections[name], annotation)
        except (ValueError, TypeError, RecursionError, MemoryError) as error:
            trouble.append(f"{name}: {str(error).splitlines()[0] if str(error) else type(error).__name__}")

    is_cut_off = "completed" not in sections
    has_an_item = any(isinstance(value, list) and value for value in values.values())
    if is_cut_off and has_an_item and not trouble:
        later = list(fields)[len(values) :]
        if not any(name in values for name in later):
            values |= {name: [] for name in later if get_origin(fields[name]) is list}

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
    if get_origin(annotation) in (list, dict, tuple, set) or annotation in (list, dict) or is_dataclass(annotation):
        item = (get_args(annotation) or (str,))[0]
        lines = not is_dataclass(annotation) and (not is_dataclass(item) or _is_sentence(item))
        return _fitted(_data(text, lines=lines), annotation)
    return parse_value(text, annotation)


def without_thinking(reply: str) -> str:
    """The reply behind the thinking that it begins with; the reply as it is where there is none, or nothing behind.

    >>> without_thinking("<think>Rome? No.</think>Paris")
    'Paris'
    """
    while (thought := THOUGHT.match(reply)) and reply[thought.end() :].strip():
        reply = reply[thought.end() :]
    end = END_OF_THOUGHT.search(reply)
    if end and not reply.lstrip().startswith(("{", "[", "`")) and not HEADER.search(reply[: end.start()]):
        return reply[end.end() :]
    return reply


def repeats_itself(reply: str) -> bool:
    """Whether the reply's last words stand in it three times or more, at even distances, as in a loop.

    At uneven ones they may be the long name of a film.
    """
    reply = reply.rstrip(" \t\r\n.?!")
    last = reply[-_REPEATED:]
    third = len(reply) - _REPEATED
    if third <= 0:
        return False
    second = reply.rfind(last, 0, third + _REPEATED - 1)
    first = reply.rfind(last, 0, max(0, second + _REPEATED - 1)) if second >= 0 else -1
    return first >= 0 and abs((third - second) - (second - first)) <= (third - first) / 10


def _sections(reply: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return what stands for each field: a text, or a value of a JSON object. "completed" is a
    section too."""
    names = {name.casefold(): name for name in (*fields, "completed")}
    whole, reply = reply, without_thinking(reply)
    if _unfenced(reply).strip().startswith("{"):  # a text in it may be about markers
        return _from_object(reply, names)

    marked = {name: reply[start:end] for name, (start, end) in marked_spans(reply, fields).items()}
    thinks = "reasoning" in fields and "<reasoning>" in whole  # the thought is what was asked for
    return (
        marked
        or _between_tags(whole if thinks else reply, fields)
        or _from_object(reply, names)
        or _bare(reply, fields)
    )


def _between_tags(reply: str, fields: Iterable[str]) -> dict[str, str]:
    """Return what stands between tags with the names of fields, as `<answer>Oslo</answer>`; the
    last may not be closed."""
    sections: dict[str, str] = {}
    for name in fields:
        tag = re.search(rf"<{re.escape(name)}>(.*?)(?:</{re.escape(name)}>|\Z)", reply, re.IGNORECASE | re.DOTALL)
        if tag:
            sections[name] = tag[1].strip()
    return sections


def marked_spans(reply: str, fields: Iterable[str]) -> dict[str, tuple[int, int]]:
    """Find where the text of each field begins and ends under the markers, the first of each; empty
    if there is no field's. "completed" counts as one.

    Fields without a marker may stand in lines of their own behind their names, where the reply so has all fields in
    order and nothing before them; anything less is prose.
    """
    fields = list(fields)
    names = [*fields, "completed"]
    headers = list(HEADER.finditer(reply))
    headers += _within_lines(reply, headers, {name.casefold() for name in names})
    spans = _between(reply, headers, names)

    missing = [name for name in names if name not in spans]
    lines = list(_begins_with(missing).finditer(reply)) if missing else []
    is_each_name_once = len({line[1].casefold() for line in lines}) == len(lines)
    if lines and is_each_name_once:
        together = _between(reply, [*headers, *lines], names)
        written = [name for name, (start, end) in together.items() if start < end and name != "completed"]
        begins = min(match.start() for match in (*headers, *lines))
        if written == fields and not reply[:begins].strip(" \t\r\n`"):
            return together

    return spans if any(name in spans for name in fields) else {}


def _within_lines(reply: str, headers: Sequence[re.Match[str]], field_names: Collection[str]) -> list[re.Match[str]]:
    """The markers of fields that no line begins with; none inside a JSON value, where a document may have put it."""
    begun = {header[1].casefold() for header in headers}
    markers = []
    for marker in EXACT.finditer(reply):
        name = marker[1].casefold()
        if name not in field_names or name in begun:
            continue
        before = [header.end() for header in headers if header.end() <= marker.start()]
        if not _is_open_json(reply[max(before, default=0) : marker.start()]):
            markers.append(marker)
    return markers


def _is_open_json(text: str) -> bool:
    """Whether a JSON list or object begins with the text and does not end in it."""
    text = text.strip()
    if not text.startswith(("[", "{")):
        return False
    try:
        json.loads(text, strict=False)
    except ValueError:
        return True
    return False


def _between(reply: str, headers: Iterable[re.Match[str]], names: Iterable[str]) -> dict[str, tuple[int, int]]:
    """Find where the text behind each header ends: at the next header, that of a field which nobody
    asked for included."""
    known = {name.casefold(): name for name in names}
    header_at: dict[int, re.Match[str]] = {}
    for header in headers:
        if header[1].casefold() in known or EXACT.search(header[0]):
            header_at[header.end()] = header

    sections = sorted(header_at.items())
    stops = [header.start() for _, header in sections[1:]] + [len(reply)]
    spans: dict[str, tuple[int, int]] = {}
    for (begin, header), stop in zip(sections, stops, strict=False):
        name = known.get(header[1].casefold())
        if name is None:
            continue

        text = reply[begin:stop]
        inside = text.lstrip("`") if "`" in header[0] else text  # the marker stood between backticks
        start = begin + len(text) - len(inside.lstrip())
        end = begin + len(text.rstrip())
        spans.setdefault(name, (start, max(start, end)))
    return spans


def _begins_with(names: Iterable[str]) -> re.Pattern[str]:
    """The beginning of a line with one of the names before a colon or an equals sign, or alone, perhaps with its
    number and type as the prompt lists them."""
    begin, named = r"^[ \t>*_`\"#-]*(?:\d+\.[ \t*_`\"]*)?", "|".join(map(re.escape, names))
    return re.compile(
        rf"{begin}({named})[*_`\"]*(?:[ \t]*\(\w+\))?[ \t]*(?:[:=]|$)[*_`]*", re.MULTILINE | re.IGNORECASE
    )


def _from_object(reply: str, names: Mapping[str, str]) -> dict[str, Any]:
    """One JSON object with the fields as keys, which may be broken, break off or lie inside others; the last of
    several."""
    value = mended(reply[reply.index("{") :]) if "{" in reply else None
    for _ in range(3):
        if isinstance(value, list):
            value = next((part for part in reversed(value) if isinstance(part, dict)), None)
        if not isinstance(value, dict):
            return {}
        fields = {names[key]: part for name, part in value.items() if (key := str(name).casefold()) in names}
        if fields:
            return fields
        value = next((part for part in value.values() if isinstance(part, dict)), None)
    return {}


def mended(text: str) -> Any:
    """The JSON or Python literal that the text is meant to be, without the item of a list in which it breaks off; None
    if it is nested too deep to be one.

    >>> mended('{"names": ["Ada", "Charles Ba')
    {'names': ['Ada']}
    """
    try:
        value = json_repair.loads(text)
    except RecursionError:
        return None
    ends_whole = text.rstrip(" \t\r\n`").endswith(("]", "}", "[", "{", ","))
    torn = None if ends_whole else _innermost_last_list(value)
    if torn is None:
        return value

    of_the_only_item = _fields_in(text, torn[0]) if len(torn) == 1 and isinstance(torn[0], dict) else {}
    del torn[-1:]
    if of_the_only_item:
        torn.append(of_the_only_item)
    if isinstance(value, dict) and not torn:
        return {name: part for name, part in value.items() if part is not torn}
    return value


def _innermost_last_list(value: Any) -> list[Any] | None:
    """The list that a broken text breaks off in: the innermost one whose end is the end of all that is around it."""
    innermost = None
    part = value
    while part and isinstance(part, dict | list):
        if isinstance(part, list):
            innermost = part
            part = part[-1]
        else:
            part = list(part.values())[-1]
    return innermost


def _fields_in(text: str, item: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a mended object that stand in the text as a whole."""
    return {name: part for name, part in item.items() if json.dumps(part, ensure_ascii=False) in text}


def _bare(reply: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    """The only field of a signature without its marker, where its form shows that it is no chatter."""
    if len(fields) != 1:
        return {}

    (name, annotation), text = next(iter(fields.items())), _unfenced(reply).strip()
    if get_origin(annotation) is list and text.startswith("["):
        return {name: text}
    if (annotation in (bool, int, float) or choices(annotation)) and 0 < len(text.split()) <= 3:
        return {name: text}
    if annotation is not str:
        return {}

    text = OFFERED.sub("", reply, count=1).strip().removesuffix("[[ ## completed ## ]]").strip()
    is_name = text.strip("\"'`*_.: ").casefold() == name.casefold()
    if not text or is_name or BROKEN_FORM.match(text) or CHATTER.match(text) or repeats_itself(text):
        return {}
    return {name: text}


def _unfenced(text: str) -> str:
    """Return what is inside a code fence that begins the text; a fence that was never closed
    counts."""
    if not text.lstrip().startswith("```"):
        return text.removesuffix("```") if text.count("```") == 1 else text
    fence = FENCE.match(text)
    return text[fence.end() :].partition("```")[0].rstrip() if fence else text


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


def _data(text: str, *, lines: bool) -> Any:
    """The JSON or Python value in the text; of a list that was cut off, the complete items. Without any, its lines."""
    start = min((place for place in (text.find("["), text.find("{")) if place >= 0), default=-1)
    if text.startswith("[[ ## "):
        raise UnreadableError(f"{text[:60]!r} begins with the marker of a field that was not asked for")
    if start < 0:
        if NOTHING.match(text):
            return []
        if not lines:
            raise UnreadableError(f"{text[:60]!r} holds no list")
        entries = [line.strip(" \t-*•") for line in text.splitlines()]
        return [entry for entry in entries if entry]

    try:
        return json.JSONDecoder(strict=False).raw_decode(text, start)[0]
    except ValueError:
        return mended(text[start:]) or []


def _fitted(value: Any, annotation: Any) -> Any:
    """A JSON value as the type; lists item by item, texts and records each once: labels and numbers, one for each of
    many things, may well be the same."""
    value = _whole(value)
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (list, set, tuple) and arguments and (origin is not tuple or arguments[1:] == (...,)):
        items = _as_list(value, arguments[0])
        may_repeat = arguments[0] in (bool, int, float) or bool(choices(arguments[0]))
        fitting: list[Any] = []
        for item in items:
            fitted = _item(item, arguments[0])
            if fitted is not _DROPPED and (may_repeat or fitted not in fitting):
                fitting.append(fitted)
        if items and not fitting:
            raise UnreadableError(f"no item fits: {str(items[0])[:60]!r}")
        return origin(fitting)

    if is_dataclass(annotation):
        if isinstance(value, list) and len(value) == 1:
            value = value[0]
        value = _completed(value, annotation)
    return type_adapter(annotation).validate_python(value)


def _whole(value: Any) -> Any:
    """The value without halves of characters, which escapes in JSON may leave."""
    kind = type(value)
    if kind is str:
        return value if value.isascii() else whole_text(value)
    if kind is list:
        return list(map(_whole, value))
    return {key: _whole(entry) for key, entry in value.items()} if kind is dict else value


_DROPPED = object()


def _item(value: Any, annotation: Any) -> Any:
    if annotation is str:
        if isinstance(value, int | float):
            return str(value)
        return _DROPPED if not isinstance(value, str) or PLACEHOLDER.fullmatch(value) else value

    try:
        if is_dataclass(annotation):
            value = _completed(value, annotation)
            texts = [value.get(name) for name in record_fields(annotation)] if isinstance(value, dict) else []
            if any(isinstance(text, str) and PLACEHOLDER.fullmatch(text) for text in texts):
                return _DROPPED
        return type_adapter(annotation).validate_python(value)
    except ValidationError:
        return _DROPPED


def _as_list(value: Any, item: Any) -> list[Any]:
    if isinstance(value, list | tuple):
        return list(value)
    if isinstance(value, dict):
        inside = [entry for entry in value.values() if isinstance(entry, list)]
        is_item = is_dataclass(item) and any(name in _keys(value) for name in record_fields(item))
        return inside[0] if len(inside) == 1 and not is_item else [value]
    return [value] if value not in (None, "") else []


def _completed(value: Any, annotation: Any) -> Any:
    """An object with the record's own keys: case folded, numbers as text where text is wanted, a list taken as the
    fields in order, a text as the only field that must not be empty, and "" for a missing description."""
    hints = record_fields(annotation)
    if isinstance(value, dict) and value.keys() == hints.keys() and set(map(type, value.values())) == {str}:
        return value
    if isinstance(value, str) and value.strip():
        needed = [name for name in hints if name not in MAY_BE_EMPTY]
        if len(needed) == 1 and hints[needed[0]] is str:
            value = {needed[0]: value}
    if isinstance(value, list | tuple) and len(value) == len(hints):
        value = dict(zip(hints, value, strict=True))
    if not isinstance(value, dict):
        return value

    value = _keys(value)
    for name, hint in hints.items():
        entry = value.get(name)
        if hint is not str or type(entry) is str:
            continue
        if entry is None and name in MAY_BE_EMPTY:
            value[name] = ""
        elif isinstance(entry, int | float):
            value[name] = str(entry)
    return value


def _keys(value: dict[Any, Any]) -> dict[str, Any]:
    return {str(key).strip().casefold().replace(" ", "_"): entry for key, entry in value.items()}


def _is_sentence(annotation: Any) -> bool:
    """Whether a record can be told in a sentence, so that lines of prose are a list of them; a name is no sentence."""
    return [name for name in record_fields(annotation) if name not in MAY_BE_EMPTY] == ["summary"]
