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
_NOT_DISPLAYED = re.compile(r"(?:^|;)\s*display\s*:\s*none\b", re.IGNORECASE)
_OFF_THE_PAGE = re.compile(
    r"\bclip\s*:\s*rect\(\s*[01](?:px)?[\s,]+[01](?:px)?[\s,]|\b(?:left|top|text-indent)\s*:\s*-\d{4,}",
    re.IGNORECASE,
)
_STRUCK = re.compile(r"\btext-decoration(?:-line)?\s{0,20}:[^;]{0,200}?\bline-through\b", re.IGNORECASE)
_VISIBILITY = re.compile(r"\bvisibility\s*:\s*(hidden|collapse|visible)\b", re.IGNORECASE)
_ONE_NAME = re.compile(r"\s*([a-z]\w*)?([.#][\w-]+)\s*", re.IGNORECASE)
_COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)", re.DOTALL)
_BRACE = re.compile(r"[{}]")


class HiddenParts:
    """Knows which tags of a page begin what nobody sees, by their attributes and the page's own style sheets."""

    def __init__(self) -> None:
        self._rules: dict[str, bool] = {}  # by a selector of one name: whether it hides

    def add_style_sheet(self, css: str) -> None:
        """Takes rules for all media whose selectors are one class or one id; of others nothing is known.

        A later rule that shows what an earlier one hides takes its place.
        """
        for rule in _without_conditions(_COMMENT.sub("", css)).split("}"):
            selectors, _, declarations = rule.partition("{")
            hides = bool(_NOT_DISPLAYED.search(declarations)) or _is_invisible(declarations)
            if not hides and "display" not in declarations and "visibility" not in declarations:
                continue
            for selector in selectors.split(","):
                if match := _ONE_NAME.fullmatch(selector):
                    self._rules[match[2]] = hides

    def hides(self, tag: Part, attributes: Mapping[str, str]) -> bool:
        """Whether what the tag begins is not to be read."""
        if tag.name in DROPPED or tag.name in STRUCK_OUT:
            return True
        if tag.name == "dialog" and "open" not in attributes:
            return True
        return bool(attributes) and (_is_hidden_by_attributes(tag, attributes) or self._is_hidden_by_rules(attributes))

    def _is_hidden_by_rules(self, attributes: Mapping[str, str]) -> bool:
        """Whether one of the page's own rules hides the tag, by its class or its id."""
        names = [f".{name}" for name in attributes.get("class", "").split()]
        names.append(f"#{attributes.get('id', '')}")
        return any(self._rules.get(name, False) for name in names)


def _is_hidden_by_attributes(tag: Part, attributes: Mapping[str, str]) -> bool:
    """Whether the tag says itself that nobody sees it, that it is for screen readers alone, or that it is
    navigation, as `nav` does."""
    if attributes.get("hidden", "until-found").lower() != "until-found":
        return True
    style = attributes.get("style", "")
    if any(rule.search(style) for rule in (_NOT_DISPLAYED, _OFF_THE_PAGE, _STRUCK)):
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


def visibility(attributes: Mapping[str, str]) -> bool | None:
    """Whether the style makes visible (True) or invisible; None if it says neither."""
    declaration = _VISIBILITY.search(attributes.get("style", ""))
    return declaration[1].lower() == "visible" if declaration else None


def _is_aria_hidden(attributes: Mapping[str, str]) -> bool:
    return attributes.get("aria-hidden", "").lower() == "true"


def _is_invisible(declarations: str) -> bool:
    declaration = _VISIBILITY.search(declarations)
    return declaration is not None and declaration[1].lower() != "visible"


def _without_conditions(css: str) -> str:
    """Leave out what stands in @media and the like, whose rules hold for some readers only, and statements such as
    "@import url;"."""
    pieces: list[str] = []
    place = 0
    while (at := css.find("@", place)) >= 0:
        pieces.append(css[place:at])
        begin, semicolon = css.find("{", at), css.find(";", at)
        is_block = begin >= 0 and not 0 <= semicolon < begin
        if is_block:
            place = _end_of_block(css, begin)
        elif semicolon >= 0:
            place = semicolon + 1
        else:
            place = len(css)
    return "".join([*pieces, css[place:]])


def _end_of_block(css: str, begin: int) -> int:
    """Where the block that begins with the brace at `begin` ends, with the blocks in it; the end of a torn one."""
    depth = 0
    for brace in _BRACE.finditer(css, begin):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            return brace.end()
    return len(css)
