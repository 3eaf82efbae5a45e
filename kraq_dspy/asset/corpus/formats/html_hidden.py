"""Tells what of a web page nobody sees, or nobody is to read any more: hidden, struck out, for screen readers alone."""

import re
from collections.abc import Mapping

from kraq_dspy.asset.corpus.formats.html_parts import Part

DROPPED = frozenset(
    (
        *("audio", "canvas", "datalist", "iframe", "nav", "noembed", "noframes", "noscript", "object", "rp"),
        *("script", "select", "style", "svg", "template", "title", "video", "annotation", "annotation-xml"),
    )
)
"""Tags in which nobody reads a text of the page; a title is read by itself."""
INLINE = frozenset(
    (
        *("a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "data", "del", "dfn", "em", "font", "i"),
        *("img", "ins", "kbd", "label", "mark", "q", "rb", "rp", "rt", "rtc", "ruby", "s", "samp", "small", "span"),
        *("strike", "strong", "sub", "sup", "time", "tt", "u", "var", "wbr"),
        # MathML
        *("math", "mfrac", "mi", "mn", "mo", "mover", "mrow", "mspace", "msqrt", "mstyle", "msub", "msubsup", "msup"),
        *("mtext", "munder", "munderover", "semantics", "mroot", "mpadded"),
    )
)
"""Tags that do not end a line."""
STRUCK_OUT = frozenset(("del", "s", "strike"))

_NAVIGATION = frozenset(("navheader", "navfooter"))
"""Classes under which DocBook puts the titles of the chapters before and after the page."""
_FOR_SCREEN_READERS = re.compile(
    r"(?:[\w-]*-)?(?:visually-?hidden|sr-only|screen-reader(?:-text|-only)?|off-?screen|element-invisible)"
    r"(?:-focusable|-text)?|show-for-sr|katex-mathml|mjx_assistive_mathml"
)
_UNSEEN_STYLE = re.compile(
    r"(?:^|;)\s*(?:display\s*:\s*none|visibility\s*:\s*(?:hidden|collapse))\b"
    r"|\bclip\s*:\s*rect\(\s*[01](?:px)?[\s,]+[01](?:px)?[\s,]|\b(?:left|top|text-indent)\s*:\s*-\d{4,}"
    r"|\btext-decoration(?:-line)?\s{0,20}:[^;]{0,200}?\bline-through\b",
    re.IGNORECASE,
)
"""What is not displayed, stands off the page, or is struck out."""


def hides(tag: Part, attributes: Mapping[str, str]) -> bool:
    """Whether what the tag begins is not to be read, by its name and its attributes."""
    if tag.name in DROPPED or tag.name in STRUCK_OUT:
        return True
    if tag.name == "dialog" and "open" not in attributes:
        return True
    return bool(attributes) and _is_hidden_by_attributes(tag, attributes)


def _is_hidden_by_attributes(tag: Part, attributes: Mapping[str, str]) -> bool:
    """Whether the tag says itself that nobody sees it, that it is for screen readers alone, or that it is
    navigation, as `nav` does."""
    if attributes.get("hidden", "until-found").lower() != "until-found":
        return True
    if _UNSEEN_STYLE.search(attributes.get("style", "")):
        return True

    classes = attributes.get("class", "").split()
    if attributes.get("role", "").lower() == "navigation" or not _NAVIGATION.isdisjoint(classes):
        return True
    if "not-sr-only" not in classes and any(map(_FOR_SCREEN_READERS.fullmatch, classes)):
        return True
    is_icon = tag.name == "i"  # icon fonts draw in empty ones, and write the icon's name into others
    return _is_aria_hidden(attributes) and (is_icon or tag.name not in INLINE)


def is_decoration(tag: Part, attributes: Mapping[str, str]) -> bool:
    """Whether screen readers are to pass over a stretch of a line: it is read only if it has
    letters or digits.

    A price is often written twice, once for the eye and once for screen readers; the one for the eye
    is kept.
    """
    return tag.name in INLINE and _is_aria_hidden(attributes)


def _is_aria_hidden(attributes: Mapping[str, str]) -> bool:
    return attributes.get("aria-hidden", "").lower() == "true"
