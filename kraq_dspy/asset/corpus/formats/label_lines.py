"""Finds a line that says who may read a text, in a form from which kraq reads no labels.

Comments, `acl:: board`, `**ACL:** board`, a first paragraph of fields, keys of YAML and XML: if the name is that of
labels, and the value may be labels, everybody would read what the line means to keep. A value that is a sentence, a
type or "access control list" is none, and a knee has an ACL, too.

>>> declaring_line("# Safe\\n\\n[//]: # (acl: board)\\n\\nThe code is 4411.", MARKDOWN)
'[//]: # (acl: board)'
>>> declaring_line("# Words\\n\\n**ACL:** access control list\\n", MARKDOWN)
''
"""

import html
import re
from collections.abc import Iterator, Sequence

from kraq_dspy.asset.label_names import is_label_name, latin_letters

MARKDOWN, TEXT, DATA, OTHER = "markdown", "text", "data", "other"
"""Kinds of files: those with front matter by custom; texts, which seldom have some; files of fields, such as YAML,
whose lines are no prose; and others, such as source code."""

_LONGEST = 50_000  # characters that are looked through
_HEAD = 50  # lines before which fields of a text stand
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_NAME = r"(?P<name>[^\W\d_][\w .-]{0,30}?)"
_FIELD = re.compile(
    rf"{_NAME}[\"'*_`]{{0,4}}[ \t]{{0,5}}(?P<mark>::?|=>?|\||：)[\"'*_`]{{0,4}}[ \t]{{0,9}}(?P<value>.{{0,300}})"
)
_BEFORE = re.compile(
    r"[ \t]*(?:\[(?:comment|_[^\[\]]{0,20})\]:[ \t]*|(?:REM|dnl|\.\.)[ \t]+)?([^\w\n]{0,30})", re.IGNORECASE
)
_AFTER = " \t\"'`*_)]}>-/#%|"
_IS_COMMENT = re.compile(r"<!|\[|/[/*]|\{[#/]|\(\*|%|--|;|#|\"\"\"|'''|\*(?!\*)")
_HEADING = re.compile(r" {0,3}(?:#{1,6}[ \t]|=+$|-+$|\*+$)")
_UNDERLINE = re.compile(r"[=*~-]{1,300}")
_TABLE_RULE = re.compile(r"[|:\- \t]{3,}")
_ITEM = re.compile(r"[ \t]*-[ \t]+(.{1,100})")
_TAG = re.compile(r"<(?:\w{1,20}:)?(?P<name>[A-Za-z][\w.-]{0,30})(?P<attributes>[^<>]{0,1000})>")
_CONTENT = re.compile(r"\s{0,50}(?:<[^<>/]{1,50}>\s{0,50})?(?P<value>[^<>]{1,200})<")
_ATTRIBUTE = re.compile(
    r"\s(?:data-|[a-z]{1,20}:)?(?P<name>[A-Za-z][\w.-]{0,30})\s{0,3}=\s{0,3}[\"'](?P<value>[^\"'<>]{1,200})[\"']"
)

_NO_LABELS = re.compile(
    r"(?:an?|and/or|are|as|be|been|by|can|does|each|for|has|have|how|if|in|into|is|it|may|must|not|of|on|should|so|that"
    r"|the|their|them|this|to|used?|uses|was|were|what|when|where|which|with|access|control|lists?|ligament"
    r"|str|strings?|int|integer|bool|boolean|dict|object|array|bytes|tuple|set|any|optional|null"
    r"|true|false|yes|no|off|enabled?|disabled?|default|deny|allow|public-read|public-read-write|authenticated-read"
    r"|bucket-owner-read|bucket-owner-full-control|log-delivery-write)"
)
"""Words that stand in sentences, or in settings of other programs, and in no label."""
_KNEE = re.compile(r"\b(?:PCL|MCL|LCL|menisc\w{1,5}|ligament\w{0,5}|knees?)\b", re.IGNORECASE)
_YEAR = re.compile(r"\b(?:19|20)\d\d\b")
_WORDS_OF_A_LABEL, _MOST_LABELS = 4, 20


def declaring_line(text: str, kind: str) -> str:
    """The first line of the text of a file of this kind that says who may read it; "" if none does."""
    head = latin_letters(text[:_LONGEST])
    if "acl" not in head.casefold():
        return ""
    lines = head.split("\n")
    if kind == DATA:
        candidates = _fields_of_data(lines)
    elif kind == OTHER:
        candidates = _first_comments(lines)
    else:
        candidates = _fields_of_prose(lines, kind)
    line = next(candidates, "") or next((field for _, field in fields_of_page(head)), "")
    return "" if line and _KNEE.search(head) else line.strip()


def fields_of_page(source: str) -> Iterator[tuple[str, str]]:
    """What says in the comments, attributes and elements of HTML or XML who may read the page: the name, and the field
    as it is written."""
    for comment in _comments(source):
        for line in comment.split("\n"):
            if name := _declared(line):
                yield name, line.strip()
    for tag in _TAG.finditer(source):
        fields = [(each["name"], each["value"]) for each in _ATTRIBUTE.finditer(tag["attributes"])]
        content = _CONTENT.match(source, tag.end()) if is_label_name(tag["name"]) else None
        fields += [(tag["name"], content["value"])] if content else []
        for name, value in fields:
            if is_label_name(name) and may_be_labels(html.unescape(value)):
                yield name, " ".join(tag[0].split())


def _comments(source: str) -> Iterator[str]:
    """What stands in the comments of HTML or XML; one that nobody closed goes on to the end."""
    begin = source.find("<!--")
    while begin >= 0:
        end = source.find("-->", begin)
        end = len(source) if end < 0 else end
        yield source[begin + 4 : end]
        begin = source.find("<!--", end)


def may_be_labels(value: str) -> bool:
    """Whether the value of a field may be labels: a few names, and no sentence, type or setting."""
    items = [item.strip(_AFTER + "[({<") for item in re.split(r"[,;|]", value)]
    items = [item for item in items if item]
    return 0 < len(items) <= _MOST_LABELS and all(map(_may_be_label, items))


def _may_be_label(item: str) -> bool:
    words = item.casefold().split()
    is_written_out = "".join(word[0] for word in words) in ("acl", "afcl")
    return (
        len(words) <= _WORDS_OF_A_LABEL
        and not any(map(_NO_LABELS.fullmatch, words))
        and not is_written_out
        and not _YEAR.search(item)
        and not re.search(r"[.!?]$|[<>=(){}]", item)
    )


def _declared(line: str) -> str:
    """The name of labels that a line declares, be it in a comment or in bold letters; "" if it declares none."""
    before = _BEFORE.match(line)
    field = _FIELD.match(line, before.end() if before else 0)
    if field is None or not is_label_name(field["name"]) or _YEAR.search(field["name"]):
        return ""
    return field["name"] if may_be_labels(field["value"]) else ""


def _fields_of_prose(lines: Sequence[str], kind: str) -> Iterator[str]:
    """Lines outside code that are marked as no prose, and those of paragraphs of fields before the first other one."""
    in_code = False
    is_head = True
    first = next((line for line in lines if line.strip()), "")
    for number, line in enumerate(lines[:_HEAD]):
        is_fence = _FENCE.match(line) is not None
        in_code ^= is_fence
        if in_code or not line.strip() or _TABLE_RULE.fullmatch(line):
            continue
        is_heading = _HEADING.match(line) is not None if kind == MARKDOWN else _UNDERLINE.fullmatch(line) is not None
        is_head = is_head and (is_heading or is_fence or _is_field(line, lines, number))
        if not is_heading and (is_head or line == first or _is_marked(line)) and _declared(line):
            yield line


def _is_marked(line: str) -> bool:
    """Whether the line is a comment, or has a field in bold letters or with two colons."""
    start = line.strip()
    is_bold = start.startswith(("**", "__"))
    is_comment = _IS_COMMENT.match(start) is not None and not start.startswith(("* ", "- ", "| "))
    field = _FIELD.match(start.lstrip("[(*_ \t>-"))
    return is_bold or is_comment or bool(field and field["mark"] == "::") or start.startswith((":", "#+", ".. "))


def _is_field(line: str, lines: Sequence[str], number: int) -> bool:
    """Whether a line is a field, and so is its neighbour: all lines of such a paragraph are."""
    after = lines[number + 1] if number + 1 < len(lines) else ""
    is_end = not after.strip() or _HEADING.match(after) is not None or _TABLE_RULE.fullmatch(after) is not None
    return _begins_field(line) and (is_end or _begins_field(after))


def _begins_field(line: str) -> bool:
    before = _BEFORE.match(line)
    return _FIELD.match(line, before.end() if before else 0) is not None


def _fields_of_data(lines: Sequence[str]) -> Iterator[str]:
    """Fields without indentation, with the items of a list below them, and comments."""
    for number, line in enumerate(lines):
        if line[:1] in (" ", "\t"):
            continue
        if _declared(line):
            yield line
        elif re.fullmatch(r"[^:=]{1,40}[:=][ \t\r]*", line) and is_label_name(line.strip(" \t\r:=\"'")):
            first = _ITEM.match(lines[number + 1]) if number + 1 < len(lines) else None
            if first and ":" not in first[1] and may_be_labels(first[1]):
                yield line


def _first_comments(lines: Sequence[str]) -> Iterator[str]:
    """Lines of the comments with which source code begins."""
    in_block = False
    for line in lines[:_HEAD]:
        start = line.strip()
        in_block ^= start.startswith(("/*", '"""', "'''", "(*", "{-", "=begin", "<!--"))
        if start and not in_block and not _IS_COMMENT.match(start) and not start.upper().startswith(("REM ", "DNL ")):
            return
        if _declared(line):
            yield line
        if in_block and re.search(r"(?:\*/|\*\)|-\}|-->|=end|...\"\"\"|...''')$", start):
            in_block = False
