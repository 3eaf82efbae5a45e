"""Tells by its name which column, or which field of front matter, says who may read a document.

kraq reads labels from `acl`, or from the name that somebody gave. A name that is nearly `acl` is refused, since
everybody would read what it means to keep. Of a name that may mean labels, or something else, the run warns.

>>> label_column(["text", "acl"]), near_name(["text", "aclGroups"]), possible_names(["text", "Allowed groups"])
('acl', 'aclGroups', ['Allowed groups'])
"""

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache

from kraq_dspy.asset.scope import ACL
from kraq_dspy.errors import CorpusError

_A, _C, _L = r"[a\u0430\u03b1]", r"[c\u0441\u03f2]", r"[l\u04cf\u217c]"
_NEAR = re.compile(rf"(?<![^\W\d_])(?i:{_A}{_C}{_L}s?)(?![a-z])|(?<=[a-z])A(?:CL|cl)s?(?![a-z])")
"""A name with the word "acl", also as it is written in Cyrillic or Greek, or in a name such as "readAcl"."""
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_POSSIBLE = re.compile(
    r"(allowed|permitted|authorized|authorised|restricted|visible|shared) ?(to|for|with|by)?"
    r" ?(group|groups|user|users|role|roles|team|teams|reader|readers)?"
    r"|(access|read|reader|security) (control|groups?|labels?|level|list|rights?|roles?|permissions?)"
    r"|groups|permissions?|readers|viewers|visibility|confidential|confidentiality|clearance|entitlements?"
    r"|principals?|labels|who may read"
)
_MENTION = re.compile(
    rf"^[^\w\n]{{0,20}}{_A}{_C}{_L}s?(?![^\W_])|[\"'<>/]{_A}{_C}{_L}s?(?![^\W_])"
    rf"|(?<![^\W_]){_A}{_C}{_L}s?[\"'*_`\t ]{{0,5}}[:=|}}]",
    re.IGNORECASE | re.MULTILINE,
)
_OWN_EXPORT = frozenset(("id", "title", "text", "source", "metadata", "headings", "left_out", "labels"))
"""The fields of a document in our own export as JSON lines."""


def label_column(names: Iterable[str], named: str = "", *, is_row: bool = False, is_strict: bool = True) -> str:
    """The column with labels: the one that somebody has `named`, else `acl`; "" if there is none.
    Of a row (`is_row`) of our own export as JSON lines it is `labels`.

    Raises CorpusError for a name that is nearly `acl`, if nobody has named a column (unless not `is_strict`).
    """
    return named or _label_column(tuple(names), is_row, is_strict)


@lru_cache(maxsize=1024)
def _label_column(names: tuple[str, ...], is_row: bool, is_strict: bool) -> str:
    if is_strict and (near := near_name(names)):
        raise CorpusError(
            f"The name {near!r} looks like the labels of who may read the document, and kraq reads those from 'acl'. "
            f"If it holds them: --acl-column {near!r} ([corpus] acl_column). If not, give it another name."
        )
    if ACL not in names and is_row and {*names, "id", "title", "text"} >= _OWN_EXPORT:
        return "labels"
    return ACL if ACL in names else ""


def near_name(names: Iterable[str]) -> str:
    """The first name that is nearly `acl`, such as "ACL", "acl_groups", "readAcl" or "access"; "" if there is none."""
    return next((name for name in names if name != ACL and _is_near(name)), "")


@lru_cache(maxsize=4096)
def _is_near(name: str) -> bool:
    plain = _plain(name)
    return plain.strip(" _-:.'\"").casefold() == "access" or _NEAR.search(plain) is not None


def possible_names(names: Iterable[str]) -> list[str]:
    """The names that often say who may read something, and may mean something else."""
    return [name for name in names if _POSSIBLE.fullmatch(" ".join(_WORDS.findall(_plain(name))).casefold())]


MENTIONED = "the word 'acl' in a place from which kraq reads no labels"
"""What of a document without labels is not read, if it mentions them."""


def mentions_labels(text: str) -> bool:
    """Whether the word "acl" stands in a text where it may declare labels: as the first of a line, in quotes or in a
    tag, or before a colon or an equals sign."""
    return _MENTION.search(_plain(text)) is not None


def _plain(text: str) -> str:
    """The text without what nobody sees."""
    if text.isascii():
        return text
    return "".join(letter for letter in unicodedata.normalize("NFKC", text) if unicodedata.category(letter) != "Cf")
