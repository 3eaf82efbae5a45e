"""Reads front matter: the fields before a text (YAML, TOML or JSON), and the labels of who may read the document.

A text may only look as if it had some: it begins with a rule, or is a dialogue between rules. It stays whole. But if a
line of what cannot be read names labels, the file is refused: everybody would read what the line means to keep.
"""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from kraq_dspy.asset.corpus.formats.label_lines import DATA, MARKDOWN, OTHER, declaring_line
from kraq_dspy.asset.corpus.normalise import normalised
from kraq_dspy.asset.label_names import is_label_name, label_column, near_text, possible_names, require_no_labels_inside
from kraq_dspy.asset.scope import labels_of
from kraq_dspy.errors import CorpusError
from kraq_dspy.records import Metadata

_LONGEST = 50_000  # characters
_HEAD = 50  # lines in which an end that is missing is looked for
_FENCE = re.compile(r"(---|\+\+\+|;;;)[ \t]*+(?:(yaml|toml|json)[ \t]*+)?\n", re.IGNORECASE)
_END = {
    "---": re.compile(r"\n(?:---|\.\.\.)[ \t]*(?:\n|$)"),
    "+++": re.compile(r"\n\+\+\+[ \t]*(?:\n|$)"),
    ";;;": re.compile(r"\n;;;[ \t]*(?:\n|$)"),
}
_LANGUAGES = {"---": "yaml", "+++": "toml", ";;;": "json"}
_ALMOST_FENCE = re.compile(r"[-+;=~*—–]{3,20}[ \t]*\n")
_HEADINGS = re.compile(r"(?:#{1,6} [^\n]{0,300}\n|[ \t]{0,200}\n){1,20}")
_PLAIN_NAME = re.compile(r"[a-z][a-z0-9_.-]*")
_COMMON = frozenset(("Title", "Author", "Authors", "Date", "Tags", "Categories", "Keywords", "Summary", "Description"))
_NUMBER = re.compile(r"-?(0|[1-9]\d{0,14})(\.\d{1,15})?")
_LINE_ENDS = re.compile("\r\n|[\r\v\x85\u2028\u2029]")
_BLANK_START = re.compile("[\\s\ufeff\u200b\u2060]*")
_FIELD = re.compile(r"[^\w\n]{0,20}([^\W\d_][\w .-]{0,40}?)[\"'*_`]{0,3}[ \t]{0,5}[:=：]")
_METADATA_LINE = re.compile(r"[^\W\d_][\w -]{0,40}:(?:[ \t]|$)|[ \t]+\S|\[//\]: ")
_COMMENT = re.compile(r"<!--(.{0,2000}?)-->", re.DOTALL)


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """What stands before a text. `values` are its fields, None if there are none that can be read; `block` are the
    lines that may have been meant as such, and `rest` is the text behind them. `twice` are names with two values."""

    values: Mapping[str, Any] | None
    rest: str
    block: str = ""
    is_closed: bool = False
    twice: frozenset[str] = frozenset()


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


def front_matter_labels(text: str, named: str, kind: str = MARKDOWN, *, by_function: bool = False) -> tuple[str, ...]:
    """The labels in the front matter of a text, under the name that somebody has `named`, else "acl"; () if none are
    declared.

    Of a corpus whose labels have a name, nobody reads a document without it. Raises CorpusError for labels that are not
    understood, for names that are almost those of labels, and for front matter that cannot be read and seems to hold
    some; the last two not if a function gives the labels (`by_function`).
    """
    text = _LINE_ENDS.sub("\n", text)
    found = _front_matter(text[_BLANK_START.match(text).end() :])  # type: ignore[union-attr]  # it matches anything
    values = found.values
    if kind in (OTHER, DATA) and not named and not any(is_label_name(str(name)) for name in values or ()):
        if not by_function:
            _require_no_label_line(text, kind)
        return ()
    if values is None:
        if named:
            return labels_of(None)
        if by_function:
            return ()
        _require_no_labels(text, found, kind)
        _require_none_below_headings(text)
        _require_no_label_line(text, kind)
        return ()

    acl = label_column(map(str, values), named, is_strict=not by_function)
    if acl in found.twice:
        raise CorpusError(f"The front matter has the field {acl!r} twice, which says who may read it. Keep one.")
    if acl:
        return labels_of(values.get(acl))
    if by_function:
        return ()
    require_no_labels_inside(values)
    for name in possible_names(map(str, values)):
        if isinstance(values[name], Mapping):
            raise CorpusError(near_text(name))
    _require_none_below_headings(found.rest)
    _require_no_label_line(found.rest, kind)
    return ()


def _front_matter(text: str) -> FrontMatter:
    fence = _FENCE.match(text)
    if fence is None:
        return _json_object(text) if text.startswith("{") else FrontMatter(None, text, _between_other_rules(text))
    end = _END[fence[1]].search(text, fence.end() - 1, _LONGEST)
    if end is None:
        return FrontMatter(None, text, "\n".join(text[fence.end() : _LONGEST].split("\n")[:_HEAD]))

    block = text[fence.end() : end.start() + 1]
    language = (fence[2] or _LANGUAGES[fence[1]]).lower()
    unread = FrontMatter(None, text, block, is_closed=True)
    twice: frozenset[str] = frozenset()
    try:
        if language == "yaml":
            values, twice = _yaml(block)
        else:
            values = tomllib.loads(block) if language == "toml" else json.loads(block)
    except (yaml.YAMLError, ValueError, RecursionError):
        return unread
    if not isinstance(values, dict) or not any(map(_is_field, values)):
        return unread
    return FrontMatter(values, text[end.end() :], block, is_closed=True, twice=twice)


def _between_other_rules(text: str) -> str:
    """The lines between two rules of another length, or of other signs, than front matter has; "" if there are none."""
    if _ALMOST_FENCE.match(text) is None:
        return ""
    rule, *lines = text[:_LONGEST].split("\n")[:_HEAD]
    return "\n".join(lines[: lines.index(rule)]) if rule in lines else ""


def _is_field(name: Any) -> bool:
    return name in _COMMON or bool(_PLAIN_NAME.fullmatch(str(name))) or is_label_name(str(name))


def _json_object(text: str) -> FrontMatter:
    """An object before the text, as some site generators write it."""
    try:
        values, end = json.JSONDecoder().raw_decode(text[:_LONGEST])
    except (ValueError, RecursionError):
        return FrontMatter(None, text, "\n".join(text[:_LONGEST].split("\n")[:_HEAD]))
    if not values or text[end : end + 1] not in ("\n", ""):
        return FrontMatter(None, text)
    return FrontMatter(values, text[end:], text[:end], is_closed=True)


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
    loader = _Texts(block)
    try:
        return loader.get_single_data(), frozenset(loader.twice)
    finally:
        loader.dispose()


def _require_no_labels(text: str, found: FrontMatter, kind: str) -> None:
    """Raises CorpusError if what stands before the text, and is no front matter that can be read, names labels."""
    for line in _head(text, found, kind):
        field = _FIELD.match(line)
        name = field[1].strip() if field else ""
        if name and (is_label_name(name) or (found.is_closed and possible_names([name]))):
            raise CorpusError(
                f"The line {line.strip()!r:.100} seems to say who may read the document, and kraq cannot read it as "
                "front matter: fields as YAML between two lines ---, such as acl: [staff, legal]. Mend it; "
                "if it says something else, begin the file with an empty line and a heading."
            )


def _require_no_label_line(text: str, kind: str) -> None:
    """Raises CorpusError for a line that declares labels in a form from which kraq reads none."""
    if line := declaring_line(text, kind):
        raise CorpusError(
            f"The line {line!r:.100} seems to say who may read the document. kraq reads labels in front matter: fields "
            "as YAML between two lines ---, such as acl: [staff, legal]. Write it so, or give the field another name."
        )


def _require_none_below_headings(text: str) -> None:
    """Raises CorpusError for fields that would be front matter if they stood before all, and declare labels."""
    headings = _HEADINGS.match(text)
    below = _front_matter(text[headings.end() :] if headings else text)
    is_prose = below.block.startswith(("\n", " \n"))  # between two rules
    if not is_prose and (name := next(filter(is_label_name, map(str, below.values or ())), "")):
        raise CorpusError(
            f"The field {name!r} seems to say who may read the document, and its lines stand below others. kraq reads "
            "front matter at the beginning of the file: move them there. If it says something else, give it another "
            "name."
        )


def _head(text: str, found: FrontMatter, kind: str) -> Iterator[str]:
    """The lines before a text that may have been meant as its fields."""
    if found.block:
        yield from found.block.split("\n")
    elif kind == MARKDOWN:
        if comment := _COMMENT.match(text.lstrip()):
            yield from comment[1].split("\n")
        first = text[:_LONGEST].partition("\n\n")[0].rstrip("\n").split("\n")
        if all(map(_METADATA_LINE.match, first)):  # as MultiMarkdown has it
            yield from first


def _scalar(value: str) -> str | int | float | bool:
    if value in ("true", "false") or _NUMBER.fullmatch(value):
        scalar: int | float | bool = json.loads(value)
        return scalar
    return value
