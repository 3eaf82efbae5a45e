"""Writes small corpora for the tests of loading, and loads them."""

import json
from pathlib import Path
from typing import Any

import pypdf
from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject

from kraq_dspy.asset.corpus.load import load_documents
from kraq_dspy.errors import CorpusError
from kraq_dspy.records import Document, Failure, content_id


def load_all(path: Path, **options: Any) -> tuple[list[Document], list[Failure]]:
    """Documents and failures, also of a corpus in which nothing is usable."""
    documents, failures = [], []
    try:
        for item in load_documents(path, **options):
            if isinstance(item, Document):
                documents.append(item)
            else:
                failures.append(item)
    except CorpusError:
        assert documents == []
    assert all(failure.stage == "load" for failure in failures)
    return documents, failures


def only_document(path: Path, **options: Any) -> Document:
    documents, failures = load_all(path, **options)
    assert failures == []
    (document,) = documents
    return document


def only_failure(path: Path, **options: Any) -> Failure:
    documents, failures = load_all(path, **options)
    assert documents == []
    (failure,) = failures
    return failure


def write(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
    return path


def write_rows(folder: Path, name: str, *rows: Any) -> Path:
    return write(folder, name, "".join(json.dumps(row) + "\n" for row in rows))


def row_id(file: str, text: str, title: str = "") -> str:
    """How a row without an id is called."""
    return f"{file}#{content_id('row', title, text)[:12]}"


def write_pdf(path: Path, *pages: str, title: str | None = None, password: str | None = None) -> Path:
    writer = drawn_pdf(*(f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET" if text else "" for text in pages))
    if title is not None:
        writer.add_metadata({"/Title": title})
    if password is not None:
        writer.encrypt(password, "owner", algorithm="RC4-128")
    with path.open("wb") as out:
        writer.write(out)
    return path


def drawn_pdf(*contents: str) -> pypdf.PdfWriter:
    """A PDF whose pages are drawn by these operators, with the font /F1."""
    writer = pypdf.PdfWriter()
    for content in contents:
        page = writer.add_blank_page(612, 792)
        font = DictionaryObject(
            {
                NameObject("/Type"): NameObject("/Font"),
                NameObject("/Subtype"): NameObject("/Type1"),
                NameObject("/BaseFont"): NameObject("/Helvetica"),
            }
        )
        page[NameObject("/Resources")] = DictionaryObject(
            {NameObject("/Font"): DictionaryObject({NameObject("/F1"): font})}
        )
        stream = DecodedStreamObject()
        stream.set_data(content.encode("latin-1"))
        page[NameObject("/Contents")] = writer._add_object(stream)
    return writer
