"""Cuts a web page into tags and the text between them, in one pass whatever the page leaves open."""

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass

VOID = frozenset(("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"))
RAW = frozenset(("script", "style", "title", "textarea", "iframe", "noembed", "xmp"))
"""What holds text alone: nothing in them is a tag but their own end."""

_TAG = re.compile(r"<(?P<end>/)?(?P<name>[A-Za-z][^\s/>]*)")
_QUOTE = re.compile(r"=[ \t\n\f\r]*([\"'])")
_ATTRIBUTE = re.compile(r"([^\s=/>\"']+)(?:\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s>\"']+)))?")
_LONGEST_TAG = 20_000  # characters whose attributes are read


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a page: text if it has no `name`, else a tag that begins or ends. `inside` is what stands in the
    tag behind its name."""

    text: str = ""
    name: str = ""
    is_end: bool = False
    is_closed: bool = False  # as <br/>
    inside: str = ""

    def attributes(self) -> dict[str, str]:
        """The attributes by their names in lower case; "" for one without a value. The first of a
        name counts, as in browsers."""
        values: dict[str, str] = {}
        for match in _ATTRIBUTE.finditer(self.inside[:_LONGEST_TAG]):
            values.setdefault(match[1].lower(), html.unescape(match[2] or match[3] or match[4] or ""))
        return values


def parts_of(source: str) -> Iterator[Part]:
    """Tags and the text between them. No character is looked at twice, so an open tag or comment costs nothing."""
    place = 0
    while (begin := source.find("<", place)) >= 0:
        if begin > place:
            yield Part(html.unescape(source[place:begin]))
        if source.startswith("<!--", begin):
            place = _after(source, "-->", begin + 4)
        elif source.startswith("<![CDATA[", begin):
            place = _after(source, "]]>", begin + 9)
            yield Part(source[begin + 9 : place].removesuffix("]]>"))
        elif source.startswith(("<!", "<?"), begin):
            place = _after(source, ">", begin + 2)
        elif match := _TAG.match(source, begin):
            place = _end_of_tag(source, match.end())
            tag = _tag(match, source[match.end() : place])
            yield tag
            if tag.name in RAW and not tag.is_end and not tag.is_closed:
                end = _end_of_raw(source, tag.name, place)
                raw = source[place:end]
                yield Part(html.unescape(raw) if tag.name in ("title", "textarea") else raw)
                place = end
        else:
            yield Part("<")
            place = begin + 1

    if place < len(source):
        yield Part(html.unescape(source[place:]))


def _tag(match: re.Match[str], rest: str) -> Part:
    is_closed = rest.endswith("/>")
    inside = rest.removesuffix(">")
    return Part("", match["name"].lower(), match["end"] is not None, is_closed, inside)


def _end_of_raw(source: str, name: str, place: int) -> int:
    closing = re.compile(f"</{name}(?=[\\s/>])", re.IGNORECASE).search(source, place)
    return closing.start() if closing else len(source)


def _after(source: str, mark: str, start: int) -> int:
    """Behind the next `mark`; the end if there is none, as HTML has it."""
    place = source.find(mark, start)
    return place + len(mark) if place >= 0 else len(source)


def _end_of_tag(source: str, place: int) -> int:
    """Behind the ">" of a tag; one inside a quoted value is none, unless nobody closed the quote."""
    end = source.find(">", place)
    while end >= 0:
        quote = _QUOTE.search(source, place, end)
        closing = source.find(quote[1], quote.end()) if quote else -1
        if closing < 0:
            return end + 1
        place = closing + 1
        if place > end:
            end = source.find(">", place)
    return len(source)
