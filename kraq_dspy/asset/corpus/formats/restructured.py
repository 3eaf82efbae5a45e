"""Reads reStructuredText by docutils: its titles, lists, tables and directives become a page, which is read as one."""

import dataclasses
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from docutils.core import publish_parts
from docutils.parsers.rst import Directive, directives
from docutils.parsers.rst.languages import en

from kraq_dspy.asset.corpus.formats.decode import refuses_unreadable
from kraq_dspy.asset.corpus.formats.front_matter import read_source
from kraq_dspy.asset.corpus.formats.html import page_row
from kraq_dspy.asset.corpus.formats.rows import BadRow, ReadSettings, Row
from kraq_dspy.asset.corpus.normalise import normalised

_ROLE = re.compile(r":[A-Za-z][\w:+.-]{0,40}:`[~!]?([^`<>\n]{1,200}?)(?:\s*<[^`<>\n]{0,200}>)?`")
_DIRECTIVE = re.compile(r"^[ \t]*\.\.[ \t]+([\w:+.-]+)::", re.MULTILINE)
_UNREAD = ("toctree", "literalinclude", "index", "highlight", "currentmodule", "module", "program", "testsetup")
_OF_CODE = ("code", "code-block", "sourcecode", "prompt")
_SUBTITLE = re.compile(r'<p class="subtitle"[^<>]{0,200}>(.{0,1000}?)</p>', re.DOTALL)
_COLON, _CLASSIFIER = '<span class="colon">:</span>', '<span class="classifier">'
_QUIET = {
    "report_level": 5, "halt_level": 5, "file_insertion_enabled": False, "raw_enabled": False,
    "embed_stylesheet": False, "stylesheet_path": "", "doctitle_xform": True,
    "line_length_limit": 1_000_000, "_disable_config": True,
}  # fmt: skip


class _Told(Directive):
    """A directive of another tool, such as "versionadded": its argument and its content are text."""

    optional_arguments = 1
    final_argument_whitespace = True
    has_content = True
    option_spec: ClassVar = defaultdict(lambda: directives.unchanged, {"class": directives.unchanged})

    def run(self) -> list[Any]:
        if self.name.startswith("auto") or self.name in _UNREAD:
            return []
        arguments = [nodes.paragraph(text, text) for text in self.arguments]
        inside = nodes.container()
        self.state.nested_parse(self.content, self.content_offset, inside)
        return [*arguments, *inside.children]


class _Code(_Told):
    """Code, whatever options another tool gives it."""

    def run(self) -> list[Any]:
        code = "\n".join(self.content)
        return [nodes.literal_block(code, code)]


@refuses_unreadable
def read_restructured(path: Path, settings: ReadSettings) -> Iterator[Row | BadRow]:
    """The title is that of the document; roles are their texts, notes and unknown directives what they hold."""
    raw, labels = read_source(path, settings)
    for name in set(_DIRECTIVE.findall(raw)):
        if name in _OF_CODE or name.lower() not in en.directives:
            directives.register_directive(name, _Code if name in _OF_CODE else _Told)
    parts = publish_parts(_ROLE.sub(r"\1", raw), writer="html5", settings_overrides=_QUIET)
    page = _SUBTITLE.sub(r"<h2>\1</h2>", parts["html_body"])  # a lone section, which docutils joins to the title
    page = page.replace(_COLON, "").replace(_CLASSIFIER, f": {_CLASSIFIER}")  # which style sheets write
    row = page_row(page, normalised(path.stem))
    if row is None:
        yield BadRow("The file has no text.")
    else:
        yield dataclasses.replace(row, labels=labels)
