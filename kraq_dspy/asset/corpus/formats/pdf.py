"""Reads PDF through PDFium (extra `formats`): a file is a document, with a form feed between its pages."""

import re
from collections.abc import Iterator, Sequence
from itertools import accumulate, islice
from pathlib import Path
from typing import Any

from kraq_dspy.asset.corpus.chunk import PAGE_BREAK
from kraq_dspy.asset.corpus.formats.decode import read_limited, refuses_unreadable
from kraq_dspy.asset.corpus.formats.pdf_forms import typed_in
from kraq_dspy.asset.corpus.formats.pdf_layout import page_text
from kraq_dspy.asset.corpus.formats.rows import BadRow, ReadSettings, Row, damaged
from kraq_dspy.asset.corpus.normalise import is_blank, normalised
from kraq_dspy.errors import counted, import_extra
from kraq_dspy.records import Heading


@refuses_unreadable
def read_pdf(path: Path, settings: ReadSettings) -> Iterator[Row | BadRow]:
    """The title is the one in the PDF's properties, if it is one. Words that a line's end cuts in two are whole
    again; what was typed into the fields of a page stands below its text. A page that cannot be read is a bad row, and
    so are those without text; the others are kept.

    PDFium serves one thread at a time.
    """
    pypdfium2 = import_extra("pypdfium2", "formats", "Reading PDF")
    data = read_limited(path, settings)
    try:
        document = pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        is_encrypted = pypdfium2.raw.FPDF_GetLastError() == pypdfium2.raw.FPDF_ERR_PASSWORD
        yield BadRow("The PDF is encrypted. Save it without a password.") if is_encrypted else damaged(error)
        return

    with document:
        document.init_forms()
        texts: list[str] = []
        damaged_pages: list[int] = []
        for number in range(1, min(len(document), _MOST_PAGES) + 1):
            try:
                text = _text_of(document[number - 1], document.formenv)
            except pypdfium2.PdfiumError as error:
                text = ""
                damaged_pages.append(number)
                yield BadRow(f"Page {number} is damaged ({error}); the other pages are used.", f"page {number}")
            texts.append(text)
            if sum(map(len, texts)) > settings.max_bytes:
                yield BadRow(
                    f"The text of the first {counted(number, 'page')} is longer than {settings.max_bytes:,} letters, "
                    "the limit. Split the PDF, or raise max_bytes in [corpus] of kraq.toml."
                )
                return

        if len(document) > _MOST_PAGES:
            yield BadRow(
                f"The PDF has {counted(len(document), 'page')}, of which the first {_MOST_PAGES:,} are used. Split it.",
                "pages",
            )
        title = " ".join(normalised(document.get_metadata_value("Title")).split())
        headings = _headings(document, texts)

    if not any(texts):
        yield BadRow(
            f"None of the PDF's {counted(len(texts), 'page')} has text; it may be scanned. Run it through OCR first."
        )
        return

    yield from _empty_pages(texts, damaged_pages)
    yield Row(
        PAGE_BREAK.join(texts),
        title=normalised(path.stem) if is_blank(title) or _NO_TITLE.search(title) else title,
        metadata={"pages": len(texts)},
        headings=headings,
    )


def _text_of(page: Any, form: Any) -> str:
    """The text of a page, then what was typed into it; "" if nothing can be seen."""
    text = _without_hyphenation(page_text(page))
    if is_blank(text):
        text = ""
    lines = [text.replace("\f", "\n").strip(), *typed_in(page, form)]
    page.close()
    return "\n".join(lines).strip("\n")


def _empty_pages(texts: Sequence[str], damaged: Sequence[int]) -> Iterator[BadRow]:
    empty = [number for number, text in enumerate(texts, start=1) if not text and number not in damaged]
    if empty:
        shown = ", ".join(map(str, empty[:20])) + (", ..." if len(empty) > 20 else "")
        yield BadRow(
            f"{len(empty)} of {counted(len(texts), 'page')} have no text, which may be scanned: {shown}. The "
            "others are used; "
            "run the PDF through OCR for these.",
            f"page {empty[0]}",
        )


_NO_TITLE = re.compile(
    r"^(microsoft (word|powerpoint|excel|office)\b|powerpoint presentation$|presentation\d*$|document\d*$|doc\d*$"
    r"|slide \d+$|untitled\b|no title$|title$|unbenannt\b|sans titre\b|about:blank$|layout \d+$|print$|https?://\S*$)"
    r"|\.(docx?|odt|rtf|pptx?|xlsx?|indd|qxd|tex|dvi|pdf|p65|pages|pub|html?)$",
    re.IGNORECASE,
)
_LINE_END = re.compile(r"(?<=[^\W\d_])(-|\u2010|\u00ad)[ \t]?\r?\n[ \t]*(?=[^\W\d_])")
_HYPHENATED = re.compile(r"(?<![^\W\d_])[^\W\d_]+(?:-[^\W\d_]+)+")


def _without_hyphenation(text: str) -> str:
    """The text of a page with the words whole that its lines cut: "inter-" and "national" is
    "international". A hyphen stays where the page writes the same word with it inside a line, or
    where the next line begins with a capital."""
    hyphenated = {word.lower() for word in _HYPHENATED.findall(text)}
    parts: list[str] = []
    place = 0
    for cut in _LINE_END.finditer(text):
        before = re.search(r"(?<![^\W\d_])[^\W\d_]+$", text[max(0, cut.start() - 40) : cut.start()])
        after = re.match(r"[^\W\d_]+", text[cut.end() : cut.end() + 40])
        assert before is not None
        assert after is not None

        is_written_so = f"{before[0]}-{after[0]}".lower() in hyphenated
        is_soft = cut[1] == "\u00ad"
        keeps_hyphen = not is_soft and (is_written_so or after[0][0].isupper())
        parts += [text[place : cut.start()], "-" if keeps_hyphen else ""]
        place = cut.end()
    return normalised("".join(parts) + text[place:])


def _headings(document: Any, texts: Sequence[str]) -> tuple[Heading, ...]:
    """The headings of the outline, placed where their page has them word by word, else at its beginning."""
    starts = [0, *accumulate(len(text) + len(PAGE_BREAK) for text in texts)]
    headings: list[Heading] = []
    for item in islice(document.get_toc(), _MOST_HEADINGS):
        destination = item.get_dest()
        page = None if destination is None else destination.get_index()
        text = " ".join(normalised(item.get_title()).split())
        if page is not None and 0 <= page < len(texts) and not is_blank(text):
            headings.append(Heading(starts[page] + max(0, texts[page].find(text)), item.level + 1, text))
    return tuple(sorted(headings, key=lambda heading: heading.start))


_MOST_HEADINGS = 10_000
_MOST_PAGES = 50_000
