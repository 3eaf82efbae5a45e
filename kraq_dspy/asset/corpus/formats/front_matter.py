"""Reads front matter: the fields before a text (YAML, TOML or JSON), and the labels of who may read the document.

A text may only look as if it had some: it begins with a rule, or is a dialogue between rules. It stays whole. But if
what cannot be read mentions labels, the file is refused: everybody would read what it means to keep.
"""

import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from kraq_dspy.asset.corpus.formats.decode import decode_source, read_limited
from kraq_dspy.asset.corpus.formats.rows import ReadSettings
from kraq_dspy.asset.corpus.normalise import normalised
from kraq_dspy.asset.label_names import label_column, mentions_labels, near_name
from kraq_dspy.asset.scope import labels_of
from kraq_dspy.errors import CorpusError
from kraq_dspy.records import Metadata

_LONGEST = 50_000  # characters
_FENCE = re.compile(r"(---|\+\+\+|;;;)[ \t]*+(?:(yaml|toml|json)[ \t]*+)?\n", re.IGNORECASE)
_END = {
    fence: re.compile(rf"\n(?:{end})[ \t]*(?:\n|$)")
    for fence, end in (("---", r"---|\.\.\."), ("+++", r"\+\+\+"), (";;;", ";;;"))
}
_LANGUAGES = {"---": "yaml", "+++": "toml", ";;;": "json"}
_PLAIN_NAME = re.compile(r"[a-z][a-z0-9_.-]*")
_COMMON = frozenset(("Title", "Author", "Authors", "Date", "Tags", "Categories", "Keywords", "Summary", "Description"))
_NUMBER = re.compile(r"-?(0|[1-9]\d{0,14})(\.\d{1,15})?")
_VALUE = re.compile(r"^([A-Za-z_][\w .-]{0,40}):[ \t]+(?=\S)([^\n]+)$", re.MULTILINE)
_NO_FIELD = re.compile(r"^(?![ \t#-])[^:\n]+\n", re.MULTILINE)
_MOST_DOTS = 200  # in a line of TOML: its reader needs the square of a key's parts in time and memory
_LINE_ENDS = re.compile("\r\n|[\r\v\x85\u2028\u2029]")
_BLANK_START = re.compile("[\\s\ufeff\u200b\u2060]*")


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """What stands before a text. `values` are its fields, None if there are none that can be read; `block` are the
    lines that may have been meant as such, and `rest` is the text behind them. `twice` are names with two values."""

    values: Mapping[str, Any] | None
    rest: str
    block: str = ""
    twice: frozenset[str] = frozenset()


def read_source(path: Path, settings: ReadSettings) -> tuple[str, tuple[str, ...]]:
    """The text of a file, and the labels that its front matter declares. Raises UnreadableTextError, and CorpusError as
    `front_matter_labels` does."""
    text = decode_source(read_limited(path, settings), settings)
    return text, front_matter_labels(text, settings.acl_column, by_function=settings.by_function)


def split_front_matter(text: str) -> tuple[Metadata, str]:
    """Part the front matter's fields from the text; ({}, the text) if there is none, or none that can be read.

    Fields are text, numbers, true and false, and lists of them, which become text with commas. What is nested deeper is
    left out. A text that begins with a line of dashes and no fields is a text with a rule, and so is a dialogue between
    rules ("Anna: Well?"): its names are no names of fields.
    """
    text = _LINE_ENDS.sub("\n", text)
    found = _front_matter(text)
    if found.values is None:
        return {}, text
    fields: dict[str, str | int | float | bool] = {}
    for name, value in found.values.items():
        if isinstance(value, list):
            if value and not any(isinstance(part, list | dict) for part in value):
                fields[normalised(str(name))] = normalised(", ".join(map(str, value)))
        elif isinstance(value, int | float | bool):
            fields[normalised(str(name))] = value
        elif not isinstance(value, Mapping):
            fields[normalised(str(name))] = _scalar(normalised(str(value)).strip())
    return fields, found.rest.lstrip("\n")


def front_matter_labels(text: str, named: str, *, by_function: bool = False) -> tuple[str, ...]:
    """The labels in the front matter of a text, under the name that somebody has `named`, else "acl"; () if none are
    declared.

    Of a corpus whose labels have a name, nobody reads a document without it. Raises CorpusError for labels that are not
    understood, for names that are nearly "acl" (unless a function gives the labels, `by_function`), and for front
    matter that mentions labels and cannot be read.
    """
    text = _LINE_ENDS.sub("\n", text)
    found = _front_matter(text[_BLANK_START.match(text).end() :])  # type: ignore[union-attr]  # it matches anything
    if found.values is None:
        if named:
            return labels_of(None)
        if not by_function and mentions_labels(found.block):
            raise CorpusError(
                "The lines at the beginning seem to say who may read the document, and kraq cannot read them as front "
                "matter: fields as YAML between two lines ---, such as acl: [staff, legal]. Mend them; if they say "
                "something else, begin the file with an empty line and a heading."
            )
        return ()

    acl = label_column(map(str, found.values), named, is_strict=not by_function)
    if acl in found.twice:
        raise CorpusError(f"The front matter has the field {acl!r} twice, which says who may read it. Keep one.")
    return labels_of(found.values.get(acl)) if acl else ()


def _front_matter(text: str) -> FrontMatter:
    fence = _FENCE.match(text)
    if fence is None:
        return _json_object(text) if text.startswith("{") else FrontMatter(None, text)
    end = _END[fence[1]].search(text, fence.end() - 1, _LONGEST)
    if end is None:
        return FrontMatter(None, text)

    block = text[fence.end() : end.start() + 1]
    language = (fence[2] or _LANGUAGES[fence[1]]).lower()
    unread = FrontMatter(None, text, block)
    twice: frozenset[str] = frozenset()
    try:
        if language == "yaml":
            values, twice = _yaml(block)
        elif language == "toml":
            values = tomllib.loads(block) if all(line.count(".") <= _MOST_DOTS for line in block.split("\n")) else {}
        else:
            values = json.loads(block)
    except (yaml.YAMLError, ValueError, RecursionError):
        return unread
    if not isinstance(values, dict) or not any(map(_is_field, values)):
        return unread
    return FrontMatter(values, text[end.end() :], block, twice=twice)


def _is_field(name: Any) -> bool:
    return name in _COMMON or bool(_PLAIN_NAME.fullmatch(str(name))) or bool(near_name([str(name)]))


def _json_object(text: str) -> FrontMatter:
    """An object before the text, as some site generators write it."""
    try:
        values, end = json.JSONDecoder().raw_decode(text[:_LONGEST])
    except (ValueError, RecursionError):
        return FrontMatter(None, text)
    if not values or text[end : end + 1] not in ("\n", ""):
        return FrontMatter(None, text)
    return FrontMatter(values, text[end:], text[:end])


class _Texts(yaml.BaseLoader):
    """Reads YAML as texts alone: no dates, no octal numbers. It notes names with two values; the last one counts."""

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self.twice: set[str] = set()

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        names = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        self.twice |= {name for name in names if names.count(name) > 1} if len(set(names)) < len(names) else set()
        fields: dict[Any, Any] = super().construct_mapping(node, deep=deep)
        return fields


def _yaml(block: str) -> tuple[Any, frozenset[str]]:
    """The value of a block, and the names in it with two values. A block that is no YAML is read once more with its
    plain values in quotes and without lines that are no fields: "title: Ferry: the plan" is what people write. If it
    says nothing of labels, its fields of one line alone are read at last."""
    quoted, n_fields = _VALUE.subn(_in_quotes, block)
    plain, n_others = _NO_FIELD.subn("", quoted)
    attempts = [block]
    if 2 * n_others <= n_fields:
        attempts.append(plain)
        if n_fields and not mentions_labels(block):
            attempts.append("\n".join(f"{name}: {json.dumps(value.strip())}" for name, value in _VALUE.findall(block)))
    for attempt in attempts:
        loader = _Texts(attempt)
        try:
            return loader.get_single_data(), frozenset(loader.twice)
        except yaml.YAMLError as error:
            problem = error
        finally:
            loader.dispose()
    raise problem


def _in_quotes(field: re.Match[str]) -> str:
    """The line with its value in quotes, but for a value that begins as a list, a block or a text in quotes."""
    value = field[2].strip()
    if value[0] in "[{|>&*!" or value[0] == value[-1] in "\"'":
        return field[0]
    return f"{field[1]}: {json.dumps(value, ensure_ascii=False)}"


def _scalar(value: str) -> str | int | float | bool:
    if value in ("true", "false") or _NUMBER.fullmatch(value):
        scalar: int | float | bool = json.loads(value)
        return scalar
    return value
