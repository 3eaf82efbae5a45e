"""Takes out of Markdown what nobody reads: comments, embedded pictures, struck-out text.

Notes and wiki links are written as a reader sees them. Code stays as it is.

>>> as_read("Founded in 1987[^3] by [[Jonas Berg|Berg]].<!-- check -->\\n[^3]: See the report.")
'Founded in 1987 [3] by Berg.\\n[3] See the report.'
"""

import html
import re
from collections.abc import Callable, Iterator, Set

from kraq_dspy.asset.corpus.formats.raised import CONTEXT, lowered, raised

FENCE = re.compile(r" {0,3}(`{3,}(?=[^`\n]*$)|~{3,})", re.MULTILINE)

_INLINE_CODE = re.compile(r"(?<!`)(`{1,3})(?!`)[^`\n]+(?<!`)\1(?!`)")
_DATA = r"data:[\w.+/-]{0,80}(?:;[\w.=-]{1,60}){0,3};base64,[A-Za-z0-9+/=%_-]*(?:[ \t]*\r?\n[ \t]*[A-Za-z0-9+/=]{30,})*"
_EMBEDDED = re.compile(_DATA, re.IGNORECASE)
_PICTURE = re.compile(r"!?\[(?P<shown>[^\[\]\n]*)\]\(\s*<?data:[^()\s<>]*>?(?:\s+\"[^\"\n]*\")?\s*\)")
_DEFINED = re.compile(r"^ {0,3}\[(?P<name>[^\[\]\n]+)\]:[ \t]*<?data:[^\s<>]*>?.*$\n?", re.MULTILINE)
_BY_NAME = re.compile(r"!\[(?P<shown>[^\[\]\n]*)\](?:\[(?P<name>[^\[\]\n]*)\])?(?!\()")
_HTML_PICTURE = re.compile(r"<(?:img|source|image)\b[^<>]*\bdata:[^<>]*>", re.IGNORECASE)
_ALT = re.compile(r"\balt\s*=\s*(?:\"([^\"<>]*)\"|'([^'<>]*)')", re.IGNORECASE)
_COMMENT_LINE = re.compile(r"^ {0,3}\[(?://|comment|_[^\[\]\n]*|\s*)\]:[ \t]*(?:#|<>)[ \t]*[\"'(].*$\n?", re.MULTILINE)
_OBSIDIAN_COMMENT = re.compile(r"(?<!\S)%%(?![%\n])(?:[^%]|%(?!%)){1,5000}%%(?!\S)")
_EMPTIED_LINE = re.compile(r"\n[ \t]*\n(?:[ \t]*\n)+")

_NOTE = re.compile(r"\[\^([^\[\]\s]{1,60})\]")
_NOTE_TEXT = re.compile(r"^( {0,3})\[\^([^\[\]\s]{1,60})\]:[ \t]*", re.MULTILINE)
_INLINE_NOTE = re.compile(r"(?<=[\w.,;:!?)\"”*_])\^\[([^\[\]\n]{1,1000})\]")
_WIKI_LINK = re.compile(r"(!?)\[\[([^\[\]|\n]{1,300})(?:\|([^\[\]\n]{1,300}))?\]\]")
_BLOCK_NAME = re.compile(r"(?<![ \t])[ \t]+\^[A-Za-z0-9-]{1,60}$", re.MULTILINE)
_STRUCK = re.compile(r"(?<!~)~~(?=[^\s~])((?:[^~\n]|~(?!~)){1,2000})(?<=[^\s~])~~(?!~)")
_MARKED = re.compile(r"(?<!=)==(?=[^\s=])([^=\n]{1,1000})(?<=[^\s=])==(?!=)")
_UNREAD_HTML = re.compile(r"<(del|s|strike|script|style)\b[^<>]*>.{0,5000}?</\1\s*>", re.IGNORECASE | re.DOTALL)
_HIDDEN_HTML = re.compile(
    r"<(\w+)\s(?=[^<>]*(?:\bhidden\b(?![\w-])|display\s*:\s*none|visibility\s*:\s*hidden))[^<>]*>.{0,5000}?</\1\s*>",
    re.IGNORECASE | re.DOTALL,
)
_COMPONENT = re.compile(r"(?<!\w)<([A-Z][\w.]{0,60})(?:\s[^<>]{0,500}?)?(?:/>|>([^\n]{0,2000}?)</\1>)")
_IMPORT = re.compile(
    r"^import\s[\w\s,*$]{0,100}\{[^{}]{0,2000}\}\s{0,9}from\s{0,9}['\"][^'\"\n]*['\"];?[ \t]*$", re.MULTILINE
)
_OFF_LINE = re.compile(r"<(sup|sub)\b[^<>]*>([^\n]{0,200}?)</\1\s*>", re.IGNORECASE)
_TAGS = re.compile(r"<[^<>]*>")
_ENTITY = re.compile(r"&(?!lt;|gt;|#0*60;|#0*62;|#x0*3[ce];)(?:[A-Za-z]{2,31}|#\d{1,7}|#[xX][0-9A-Fa-f]{1,6});")


def as_read(text: str) -> str:
    """The text of a Markdown file as it is read. Its mark-up of headings, lists, emphasis and tables stays."""
    notes = {name for _, name in _NOTE_TEXT.findall(text)} if "[^" in text else set()
    pieces = (without_embedded(piece) if is_code else _prose(piece, notes) for piece, is_code in _by_fences(text))
    return "".join(pieces)


def without_embedded(text: str) -> str:
    """The text, of any kind, without what is embedded in it as base64: pictures and the like."""
    return _EMBEDDED.sub("", text) if ";base64," in text else text


def _prose(text: str, notes: Set[str]) -> str:
    if ";base64," in text:
        text = _without_pictures(text)
    return _changed(text, lambda prose: _as_shown(prose, notes))


def _without_pictures(text: str) -> str:
    """Pictures that are embedded as base64 leave what they are called."""
    text = _EMBEDDED.sub("data:", text)
    text = _PICTURE.sub(lambda match: match["shown"], text)
    names = {match["name"].casefold() for match in _DEFINED.finditer(text)}

    def shown(match: re.Match[str]) -> str:
        name = match["name"] or match["shown"]
        return match["shown"] if name.casefold() in names else match[0]

    text = _BY_NAME.sub(shown, _DEFINED.sub("", text)) if names else text
    return _HTML_PICTURE.sub(_alt, text).replace("(data:)", "()")


def _alt(tag: re.Match[str]) -> str:
    alternative = _ALT.search(tag[0])
    return (alternative[1] or alternative[2] or "") if alternative else ""


def _changed(text: str, change: Callable[[str], str]) -> str:
    """The text with `change` made to all but inline code. What it left of empty lines is one."""
    codes: list[str] = []

    def keep(code: re.Match[str]) -> str:
        codes.append(code[0])
        return f"\ue010{len(codes) - 1}\ue011"

    changed = change(_INLINE_CODE.sub(keep, text.replace("\ue010", "").replace("\ue011", "")))
    changed = re.sub("\ue010(\\d+)\ue011", lambda place: codes[int(place[1])], changed)
    return changed if changed == text else _EMPTIED_LINE.sub("\n\n", changed)


def _as_shown(text: str, notes: Set[str]) -> str:
    text = _without_comments(text)
    if "%%" in text:
        text = _OBSIDIAN_COMMENT.sub("", text)
    if "]:" in text:
        text = _NOTE_TEXT.sub(r"\1[\2] ", _COMMENT_LINE.sub("", text))

    if "<" in text:
        for unread in (_UNREAD_HTML, _HIDDEN_HTML):
            text = unread.sub("", text)
        text = _on_the_line(_COMPONENT.sub(r"\2", text))
    if "import" in text:
        text = _IMPORT.sub("", text)
    if "~~" in text:
        text = _STRUCK.sub("", text)
    if "==" in text:
        text = _MARKED.sub(r"\1", text)
    if "[[" in text:
        text = _WIKI_LINK.sub(lambda link: "" if link[1] else (link[3] or link[2].replace("#", " ")).strip(), text)

    if "^" in text:
        text = _INLINE_NOTE.sub(r" (\1)", _noted(_BLOCK_NAME.sub("", text), notes))
    if "&" in text:
        text = _ENTITY.sub(lambda entity: html.unescape(entity[0]).replace("\xa0", " "), text)
    return text


def _noted(text: str, notes: Set[str]) -> str:
    """Write "[3]" for each mark of one of the footnotes, apart from the word before it."""

    def mark(match: re.Match[str]) -> str:
        if match[1] not in notes:
            return match[0]
        before = text[match.start() - 1 : match.start()]
        return f" [{match[1]}]" if before and not before.isspace() else f"[{match[1]}]"

    return _NOTE.sub(mark, text)


def _on_the_line(text: str) -> str:
    """Write raised and lowered stretches on the line: "CO<sub>2</sub>" as "CO2"."""
    parts: list[str] = []
    place = 0
    for stretch in _OFF_LINE.finditer(text):
        name, written = stretch[1].lower(), stretch[2]
        parts.append(text[place : stretch.start()])
        place = stretch.end()

        before = _TAGS.sub("", "".join(parts[-2:])[-CONTEXT:].rpartition("\n")[2])
        after = _TAGS.sub("", text[place : place + CONTEXT].partition("\n")[0])
        inside = _TAGS.sub("", written)
        if name != "sup":
            parts.append(lowered(inside, before, after))
        elif "](" in written:
            parts.append(written)
        else:
            is_link = "<a" in written.lower()
            parts.append(raised(inside, before, after, is_link=is_link))
    return "".join([*parts, text[place:]])


def _without_comments(text: str) -> str:
    """Leave out `<!-- ... -->`; one that is never closed is text."""
    pieces: list[str] = []
    place = 0
    while (begin := text.find("<!--", place)) >= 0 and (end := text.find("-->", begin + 2)) >= 0:
        pieces.append(text[place:begin])
        place = end + 3
    return "".join([*pieces, text[place:]])


def _by_fences(text: str) -> Iterator[tuple[str, bool]]:
    """Stretches of whole lines, and whether they are a fenced block of code. A fence in a comment is none."""
    fence = ""
    lines: list[str] = []
    last_end = text.rfind("-->")
    place = 0
    in_comment = False

    for line in text.splitlines(keepends=True):
        place += len(line)
        marks = None if in_comment else FENCE.match(line)
        if not fence:
            in_comment = _leaves_comment_open(line, was_open=in_comment) and place <= last_end

        if not fence and marks:
            yield "".join(lines), False
            fence, lines = marks[1], [line]
        elif fence and marks and marks[1].startswith(fence) and not line[marks.end() :].strip():
            yield "".join([*lines, line]), True
            fence, lines = "", []
        else:
            lines.append(line)

    yield "".join(lines), bool(fence)


def _leaves_comment_open(line: str, *, was_open: bool) -> bool:
    begin, end = _INLINE_CODE.sub("", line).rfind("<!--"), line.rfind("-->")
    return begin > end or (was_open and end < 0)
