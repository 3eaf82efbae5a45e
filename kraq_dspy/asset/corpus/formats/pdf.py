"""Reads PDF through PDFium and pypdf (extra `formats`): a file is a document, with a form feed between its pages."""

import re
import threading
from collections.abc import Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

from kraq_dspy.asset.corpus.chunk import PAGE_BREAK
from kraq_dspy.asset.corpus.formats.decode import read_limited, refuses_unreadable
from kraq_dspy.asset.corpus.formats.pdf_forms import typed_in
from kraq_dspy.asset.corpus.formats.pdf_layout import page_text
from kraq_dspy.asset.corpus.formats.rows import BadRow, ReadSettings, Row
from kraq_dspy.asset.corpus.normalise import is_blank, normalised
from kraq_dspy.errors import counted, needs
from kraq_dspy.records import Heading

_PDFIUM = threading.Lock()
"""PDFium is one for the process, and serves one thread at a time."""


@refuses_unreadable
def read_pdf(path: Path, settings: ReadSettings) -> Iterator[Row | BadRow]:
    """The title is the one in the PDF's properties, if it is one. Words that a line's end cuts in two are whole
    again; what was typed into the fields of a page stands below its text. A page that cannot be read is a bad row, and
    so are those without text; the others are kept.
    """
    with needs("pypdf", "formats", "Reading PDF"):
        import pypdf
        import pypdfium2

    with path.open("rb") as stream:
        data = read_limited(stream, settings)
        stream.seek(0)
        try:
            reader = pypdf.PdfReader(stream)
            if reader.is_encrypted and not _opens_without_password(reader):
                yield BadRow("The PDF is encrypted. Save it without a password.")
                return
            pages = _Pages(reader, _opened(pypdfium2, data))
            title = _title(reader)
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001  pypdf raises whatever a damaged file makes its code raise
            yield BadRow(f"The PDF is damaged ({_words(error)}). Open and save it anew, or take it out of the corpus.")
            return

        texts: list[str] = []
        for number in range(1, min(len(pages), _MOST_PAGES) + 1):
            try:
                text = pages.text(number)
            except MemoryError:
                raise
            except Exception as error:  # noqa: BLE001  as above
                text = ""
                pages.damaged.append(number)
                yield BadRow(f"Page {number} is damaged ({_words(error)}); the other pages are used.", f"page {number}")
            texts.append(text)
            if sum(map(len, texts)) > settings.max_bytes:
                yield BadRow(
                    f"The text of the first {counted(number, 'page')} is longer than {settings.max_bytes:,} letters, "
                    "the limit. Split the PDF, or raise max_bytes in [corpus] of kraq.toml."
                )
                return

        headings = _headings(reader, texts)
        if len(pages) > _MOST_PAGES:
            yield BadRow(
                f"The PDF has {len(pages):,} pages, of which the first {_MOST_PAGES:,} are used. Split it.", "pages"
            )
        pages.close()

    if not any(texts):
        yield BadRow(
            f"None of the PDF's {counted(len(texts), 'page')} has text; it may be scanned. Run it through OCR first."
        )
        return

    yield from _empty_pages(texts, pages.damaged)
    yield Row(
        PAGE_BREAK.join(texts),
        title=title or normalised(path.stem),
        metadata={"pages": len(texts)},
        headings=headings,
    )


class _Pages:
    """The pages of a PDF as text, numbered from 1. `document` is PDFium's, None if it cannot open the file: then
    pypdf's own text is used, which knows less of where words end."""

    def __init__(self, reader: Any, document: Any) -> None:
        self._reader = reader
        self._document = document
        self._n_pages = len(reader.pages)
        self.damaged: list[int] = []

    def __len__(self) -> int:
        return self._n_pages

    def text(self, number: int) -> str:
        """The text of a page, then what was typed into it; "" if nothing can be seen. Raises what pypdf raises."""
        page = self._reader.pages[number - 1]
        contents = page.get_contents()
        if contents is not None:
            contents.get_data()  # pypdf refuses what unpacks to far more than its size; PDFium would unpack it
        if self._document is None or number > len(self._document):
            text = page.extract_text()
        else:
            with _PDFIUM:
                text = page_text(self._document[number - 1])

        text = _without_hyphenation(text)
        if is_blank(text):
            text = ""
        return "\n".join([text.replace("\f", "\n").strip(), *typed_in(page)]).strip("\n")

    def close(self) -> None:
        if self._document is not None:
            with _PDFIUM:
                self._document.close()


def _opened(pypdfium2: Any, data: bytes) -> Any:
    with _PDFIUM:
        try:
            return pypdfium2.PdfDocument(data)
        except pypdfium2.PdfiumError:
            return None


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


def _opens_without_password(reader: Any) -> bool:
    """Many PDFs are encrypted with an empty password, only to forbid printing."""
    import pypdf.errors

    try:
        return bool(reader.decrypt(""))
    except (pypdf.errors.PyPdfError, NotImplementedError, ImportError):  # AES without the package cryptography
        return False


def _title(reader: Any) -> str:
    """ "" if the property holds what a program put there: its own name, a file's name, "untitled"."""
    title = reader.metadata.title if reader.metadata else None
    title = " ".join(normalised(title).split()) if isinstance(title, str) else ""
    return "" if is_blank(title) or _NO_TITLE.search(title) else title


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


def _headings(reader: Any, texts: Sequence[str]) -> tuple[Heading, ...]:
    """The headings of the outline, placed where their page has them word by word, else at its beginning."""
    starts = [0, *accumulate(len(text) + len(PAGE_BREAK) for text in texts)]
    headings: list[Heading] = []
    try:
        outline = list(reader.outline)
    except Exception:  # noqa: BLE001  pypdf raises whatever a damaged file makes its code raise
        return ()

    waiting = [(item, 1) for item in reversed(outline)]
    while waiting and len(headings) < _MOST_HEADINGS:
        item, level = waiting.pop()
        if isinstance(item, list):
            waiting += [(each, level + 1) for each in reversed(item)]
            continue
        try:
            page = reader.get_destination_page_number(item)
            text = " ".join(normalised(str(item.title)).split())
        except Exception:  # noqa: BLE001  an outline may lead anywhere
            continue
        if page is not None and 0 <= page < len(texts) and not is_blank(text):
            headings.append(Heading(starts[page] + max(0, texts[page].find(text)), level, text))
    return tuple(sorted(headings, key=lambda heading: heading.start))


_MOST_HEADINGS = 10_000
_MOST_PAGES = 50_000


def _words(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error)[:200]}"
