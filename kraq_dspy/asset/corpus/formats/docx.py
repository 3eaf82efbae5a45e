"""Reads texts of Word (docx; extra `formats`): what a page shows, through mammoth, which makes HTML of it.

mammoth leaves out equations and numbers of lists, and does not know hidden text. So the parts of the file are rewritten
first: what nobody sees is taken out, and equations and numbers become text. Headers and footers are not read.
"""

import io
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

from kraq_dspy.asset.corpus.formats.decode import UnreadableTextError, refuses_unreadable
from kraq_dspy.asset.corpus.formats.docx_lists import ListNumbers
from kraq_dspy.asset.corpus.formats.docx_math import linear
from kraq_dspy.asset.corpus.formats.docx_styles import Styles, W, find, is_on, value
from kraq_dspy.asset.corpus.formats.html import page_row
from kraq_dspy.asset.corpus.formats.rows import BadRow, ReadSettings, Row, damaged, shows_nothing
from kraq_dspy.asset.corpus.formats.zipped import Parts, opened_zip
from kraq_dspy.asset.corpus.normalise import normalised
from kraq_dspy.errors import counted, import_extra

_MATH = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
_TICKED = re.compile(r'<input(?=[^<>]*type="checkbox")[^<>]*+>')
_NOT_READ = {"word/media/": "picture", "word/charts/chart": "chart", "word/diagrams/data": "drawing"}


@refuses_unreadable
def read_docx(path: Path, settings: ReadSettings) -> Iterator[Row | BadRow]:
    """Headings, tables, lists and notes as those of a web page; the title is the first heading.

    Hidden text and what is struck out or deleted is left out, and counted.
    """
    mammoth = import_extra("mammoth", "formats", "Reading docx")
    with opened_zip(path, settings) as parts:
        try:
            rewriting = _Rewriting(parts)
            shown = rewriting.archive()
            page = mammoth.convert_to_html(shown, convert_image=mammoth.images.img_element(lambda image: {})).value
        except UnreadableTextError:
            raise
        except Exception as error:  # noqa: BLE001  mammoth raises whatever a damaged file makes its code raise
            yield damaged(error)
            return

    page = page.replace("<ol>", "<ul>").replace("</ol>", "</ul>")  # the numbers stand in the text
    page = _TICKED.sub(lambda box: "[x] " if "checked=" in box[0] else "[ ] ", page)
    row = page_row(page, "")
    notes = rewriting.notes()
    if row is None:
        yield shows_nothing(notes)
        return
    title = row.headings[0].text if row.headings else normalised(path.stem)
    yield Row(row.text, title=title, headings=row.headings, linked=row.linked, left_out=tuple(notes))


class _Rewriting:
    """The parts of a file as mammoth is to read them, and what was taken out."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._n_letters = {"hidden": 0, "struck": 0, "deleted": 0}
        self._main = parts.main("word/document.xml")
        self._part_of = dict(parts.relations(self._main).values())
        self._styles = Styles(self._tree("styles"))
        self._numbers = ListNumbers(self._tree("numbering"), self._styles)

    def archive(self) -> io.BytesIO:
        """The file without pictures, its texts rewritten."""
        changed: dict[str, bytes] = {}
        if self._main in self._parts:
            document = ElementTree.fromstring(self._parts.read(self._main))
            self._rewrite(document)
            changed[self._main] = ElementTree.tostring(document)
        for kind in ("footnotes", "endnotes"):
            notes = self._tree(kind)
            if notes is not None:
                self._rewrite(notes)
                changed[self._part_of[kind]] = ElementTree.tostring(notes)

        data = io.BytesIO()
        with zipfile.ZipFile(data, "w") as archive:
            for name in dict.fromkeys(self._parts.names):
                is_text = name.endswith((".xml", ".rels"))
                archive.writestr(name, changed.get(name) or (self._parts.read(name) if is_text else b""))
        return data

    def notes(self) -> list[str]:
        """What was left out, in words."""
        words = {"hidden": "hidden text", "struck": "text struck out", "deleted": "deleted text of tracked changes"}
        notes = [f"{counted(count, 'letter')} of {words[kind]}" for kind, count in self._n_letters.items() if count]
        comments = self._tree("comments")
        n_comments = 0 if comments is None else len(comments)
        if n_comments:
            notes.append(f"{counted(n_comments, 'comment')}, not read")
        return notes + self._parts.not_read(_NOT_READ)

    def _tree(self, kind: str) -> ElementTree.Element | None:
        data = self._parts.read(self._part_of.get(kind, ""))
        return ElementTree.fromstring(data) if data else None

    def _rewrite(self, parent: ElementTree.Element, paragraph_style: str = "") -> None:
        for child in list(parent):
            if child.tag == W + "p":
                paragraph_style = value(find(child, "pPr", "pStyle"))
                self._rewrite(child, paragraph_style)
                self._number(child)
            elif child.tag in (W + "del", W + "moveFrom") or _is_deleted_row(child):
                self._take_out("deleted", parent, child)
            elif child.tag == W + "tr" and is_on(find(child, "trPr", "hidden")):
                self._take_out("hidden", parent, child)
            elif child.tag == W + "r" and (reason := self._styles.unseen(child, paragraph_style)):
                self._take_out(reason, parent, child)
            elif child.tag == f"{_MATH}oMath":
                _replace(parent, child, _run(linear(child)))
            elif child.tag == f"{_MATH}oMathPara":
                equations = [linear(each) for each in child.iter(f"{_MATH}oMath")]
                is_block = parent.tag != W + "p"
                _replace(parent, child, _paragraph("; ".join(equations)) if is_block else _run("; ".join(equations)))
            elif len(child):
                self._rewrite(child, paragraph_style)

    def _take_out(self, reason: str, parent: ElementTree.Element, child: ElementTree.Element) -> None:
        texts = [each.text or "" for each in child.iter() if each.tag in (W + "t", W + "delText")]
        self._n_letters[reason] += sum(map(len, texts))
        parent.remove(child)

    def _number(self, paragraph: ElementTree.Element) -> None:
        """Writes the number of an item of a list as text before it."""
        label = self._numbers.next(paragraph)
        if label:
            place = 1 if len(paragraph) and paragraph[0].tag == W + "pPr" else 0
            paragraph.insert(place, _run(label + " "))


def _is_deleted_row(element: ElementTree.Element) -> bool:
    return element.tag == W + "tr" and find(element, "trPr", "del") is not None


def _replace(parent: ElementTree.Element, child: ElementTree.Element, other: ElementTree.Element) -> None:
    parent[list(parent).index(child)] = other


def _run(text: str) -> ElementTree.Element:
    run = ElementTree.Element(W + "r")
    ElementTree.SubElement(run, W + "t", {"{http://www.w3.org/XML/1998/namespace}space": "preserve"}).text = text
    return run


def _paragraph(text: str) -> ElementTree.Element:
    paragraph = ElementTree.Element(W + "p")
    paragraph.append(_run(text))
    return paragraph
