"""Tells by its name which column, or which field of front matter, says who may read a document.

A name that is almost that of the labels must not pass as metadata: everybody would read what it means to keep. So kraq
takes `ACL` for `acl`, stops at a name such as `acl_groups`, and warns of one such as `allowed_groups`.

>>> label_column(["text", "ACL"]), near_name(["text", "aclGroups"]), possible_names(["text", "Allowed groups"])
('ACL', 'aclGroups', ['Allowed groups'])
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from kraq_dspy.asset.scope import ACL
from kraq_dspy.errors import CorpusError

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_A-Za-z]+|\d+")
_PLAIN_WORDS = re.compile(r"[^\W\d_]+")
_NEAR = frozenset(("acl", "acls"))
_BESIDE = frozenset(
    {"access", "allow", "allowed", "allowlist", "column", "control", "data", "doc", "document", "documents", "entries"}
    | {"field", "file", "group", "groups", "item", "items", "label", "labels", "list", "my", "name", "names", "new"}
    | {"old", "page", "permission", "permissions", "principal", "principals", "read", "reader", "readers", "right"}
    | {"rights", "role", "roles", "row", "security", "tag", "tags", "team", "teams", "user", "users", "value", "values"}
    | {"view", "viewers"}
)
"""Words that stand beside "acl" where it means who may read. ACL is a ligament and a learned society, too."""
_POSSIBLE = re.compile(
    r"(allowed|permitted|authorized|authorised|restricted|visible|shared) ?(to|for|with|by)?"
    r" ?(group|groups|user|users|role|roles|team|teams|reader|readers)?"
    r"|(access|read|reader|security) ?(control|groups?|labels?|level|list|rights?|roles?|permissions?)"
    r"|access|groups|permissions?|readers|viewers|visibility|confidential|confidentiality|clearance|entitlements?"
    r"|principals?|labels|who may read"
)
_OWN_EXPORT = frozenset(("id", "title", "text", "source", "metadata", "headings", "left_out", "labels"))
"""The fields of a document in our own export as JSON lines."""

_QUOTED_NAME = re.compile(r"""['"]([\w .-]{3,40})['"]\s{0,9}:""")
_DEPTH = 20  # of nested values, beyond which nobody writes labels


_LOOK_ALIKE = str.maketrans(
    "\u0430\u0410\u0441\u0421\u0455\u0405\u04cf\u04c0\u0391\u03b1\u03f2\u03f9\u217c", "aAcCsSlLAacCl"
)
"""Letters of Cyrillic and Greek that look like those of "acls"."""


def latin_letters(text: str) -> str:
    """The text with the letters of other scripts that look like those of "acl", and without what nobody sees.

    >>> latin_letters("\\u0430\\u0441\\u00adl")
    'acl'
    """
    text = text if text.isascii() else unicodedata.normalize("NFKC", text).translate(_LOOK_ALIKE)
    return text if text.isascii() else "".join(letter for letter in text if unicodedata.category(letter) != "Cf")


def label_column(names: Iterable[str], named: str = "", *, is_row: bool = False, is_strict: bool = True) -> str:
    """The column with labels: the one that somebody has `named`, else `acl` in any case; "" if there is none.
    Of a row (`is_row`) of our own export as JSON lines it is `labels`.

    Raises CorpusError for two, and for a name that is almost one, if nobody has named a column (unless not
    `is_strict`).
    """
    return named or _label_column(tuple(names), is_row, is_strict)


@lru_cache(maxsize=1024)
def _label_column(names: tuple[str, ...], is_row: bool, is_strict: bool) -> str:
    own = [name for name in names if _folded(name) == ACL]
    if len(own) > 1:
        raise CorpusError(
            f"The names {_listed(own)} all say who may read the document. Keep one of them, or name it: "
            "--acl-column NAME ([corpus] acl_column)."
        )
    if is_strict and (near := near_name(names)):
        raise CorpusError(near_text(near))
    if is_row and not own and {*names, "id", "title", "text"} >= _OWN_EXPORT:
        return "labels"
    return own[0] if own else ""


def near_name(names: Iterable[str]) -> str:
    """The first name that is almost `acl`, such as "acls", "acl_groups" or "readAcl"; "" if there is none."""
    return next((name for name in names if _folded(name) != ACL and _is_near(name)), "")


def near_text(name: str) -> str:
    """What a failure says of a name that is almost `acl`."""
    return (
        f"The name {name!r} looks like the labels of who may read the document, and kraq reads those from 'acl'. If it "
        f"holds them: --acl-column {_quoted(name)} ([corpus] acl_column). If not, give it another name."
    )


def possible_names(names: Iterable[str]) -> list[str]:
    """The names that often say who may read something, and may mean something else."""
    return [name for name in names if _POSSIBLE.fullmatch(" ".join(_words(name))) or _has_acl(name)]


def require_no_labels_inside(values: Mapping[str, Any]) -> None:
    """Raise CorpusError if a nested value holds a name for labels: kraq reads labels at the top alone."""
    for name, value in values.items():
        for inside in _names_inside(value, 0, set()):
            if _folded(inside) == ACL or near_name([inside]):
                raise CorpusError(
                    f"The value of {str(name)!r} holds {inside!r}, which looks like the labels of who may read the "
                    "document. kraq reads labels at the top alone: move them there, as 'acl'."
                )


@lru_cache(maxsize=4096)
def is_label_name(name: str) -> bool:
    """Whether a name is that of labels, or almost."""
    return _folded(name) == ACL or bool(near_name([name]))


def _names_inside(value: Any, depth: int, seen: set[int]) -> Iterator[str]:
    if depth > _DEPTH or id(value) in seen:
        return
    if isinstance(value, str):
        if value.lstrip().startswith(("{", "[")):  # JSON, or a dictionary as Python writes it
            yield from (match[1] for match in _QUOTED_NAME.finditer(value))
    elif isinstance(value, Mapping):
        seen.add(id(value))
        yield from map(str, value)
        for each in value.values():
            yield from _names_inside(each, depth + 1, seen)
    elif isinstance(value, list | tuple):
        seen.add(id(value))
        for each in value:
            yield from _names_inside(each, depth + 1, seen)


def _folded(name: str) -> str:
    """The name in small letters, without marks around it: " ACL:" is "acl"."""
    return latin_letters(str(name)).casefold().strip(" \t\r\n\ufeff\u200b_-:.'\"*@#$/")


def _words(name: str) -> list[str]:
    """The words of a name, at capitals too: "aclGroups" has two."""
    return [word.casefold() for word in _WORDS.findall(latin_letters(str(name)[:200]))]


def _plain_words(name: str) -> list[str]:
    """The words of a name as marks part them: "ACLs" is one."""
    return _PLAIN_WORDS.findall(latin_letters(str(name)[:200]).casefold())


def _has_acl(name: str) -> bool:
    return not _NEAR.isdisjoint([*_words(name), *_plain_words(name)])


def _is_near(name: str) -> bool:
    return any(
        not _NEAR.isdisjoint(words) and {word for word in words if not word.isdecimal()} <= _NEAR | _BESIDE
        for words in (_words(name), _plain_words(name))
    )


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(repr, names))


def _quoted(name: str) -> str:
    return name if re.fullmatch(r"[\w.-]+", name) else repr(name)
