"""Reads PDF through pypdf (extra `formats`): a file is a document, with a form feed between its pages."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kraq_dspy.asset.corpus.chunk import PAGE_BREAK
from kraq_dspy.asset.corpus.formats.decode import read_limited, refuses_unreadable
from kraq_dspy.asset.corpus.formats.rows import BadRow, ReadSettings, Row, clean
from kraq_dspy.errors import needs


@refuses_unreadable
def read_pdf(path: Path, settings: ReadSettings) -> Iterator[Row | BadRow]:
    """The title is the one in the PDF's properties. A page that pypdf cannot read is a bad row; the others are
    kept. (Pages whose damage pypdf only logs come out empty.)
    """
    with needs("pypdf", "formats", "Reading PDF"):
        import pypdf
    with path.open("rb") as stream:
        read_limited(stream, settings)
        stream.seek(0)
        try:
            reader = pypdf.PdfReader(stream)
            if reader.is_encrypted and not _opens_without_password(reader):
                yield BadRow("The PDF is encrypted. Save it without a password.")
                return
            pages = list(reader.pages)
            title = _title(reader)
        except Exception as error:  # noqa: BLE001  pypdf raises whatever a damaged file makes its code raise
            yield BadRow(f"The PDF is damaged ({_words(error)}). Open and save it anew, or take it out of the corpus.")
            return
        texts = []
        for number, page in enumerate(pages, start=1):
            try:
                texts.append(clean(page.extract_text()).replace("\f", "\n").strip())
            except Exception as error:  # noqa: BLE001  as above
                texts.append("")
                yield BadRow(f"Page {number} is damaged ({_words(error)}); the other pages are used.", f"page {number}")
    if not any(texts):
        yield BadRow(f"None of the PDF's {len(pages)} pages has text; it may be scanned. Run it through OCR first.")
        return
    yield Row(PAGE_BREAK.join(texts), title=title or clean(path.stem), metadata={"pages": len(pages)})


def _opens_without_password(reader: Any) -> bool:
    """Many PDFs are encrypted with an empty password, only to forbid printing."""
    import pypdf.errors

    try:
        return bool(reader.decrypt(""))
    except (pypdf.errors.PyPdfError, NotImplementedError, ImportError):  # AES without the package cryptography
        return False


def _title(reader: Any) -> str:
    title = reader.metadata.title if reader.metadata else None
    return clean(title).strip() if isinstance(title, str) else ""


def _words(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error)[:200]}"
