"""Every format, as real files."""

import codecs
import csv
import datetime
import gzip
import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kraq_dspy.records import Document
from tests.asset.corpus.corpora import load_all, only_document, row_id, write, write_pdf, write_rows


def test_a_text_file_is_a_document_called_by_its_path_and_titled_by_its_stem(tmp_path: Path) -> None:
    write(tmp_path, "notes/ada.txt", "Ada wrote programs.\r\nIn 1843.\r\n")
    document = only_document(tmp_path)
    assert (document.id, document.source, document.title) == ("notes/ada.txt", "notes/ada.txt", "ada")
    assert document.text == "Ada wrote programs.\nIn 1843.\n"


def test_a_single_file_is_a_corpus(tmp_path: Path) -> None:
    assert only_document(write(tmp_path, "ada.TXT", "Ada")).id == "ada.TXT"


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("intro\n\n## The *Engine* ##\ntext", "The *Engine*"),
        ("```\n# a comment\n```\n# Ada", "Ada"),
        ("Ada Lovelace\n============\ntext", "Ada Lovelace"),
        ("no heading, #hashtag\n\n---\nmore", "page"),
    ],
)
def test_the_title_of_markdown_is_its_first_heading(tmp_path: Path, text: str, title: str) -> None:
    document = only_document(write(tmp_path, "page.md", text))
    assert (document.title, document.text) == (title, text)


def test_html_gives_what_a_reader_sees_with_a_line_for_each_block(tmp_path: Path) -> None:
    page = """<!DOCTYPE html><html><head><title> Ada
      Lovelace </title><style>p {color: red}</style></head><body><nav><a href="/">Home</a></nav><!-- hidden -->
      <h1>Ada</h1><p>She wrote <b>pro</b>grams &amp; notes<br>for the engine.</p><script>alert(1)</script>
      <table><tr><td>born</td><td>1815</td></tr><tr><td>died</td><td>1852</td></tr></table>
      <pre>a
  b</pre></body></html>"""
    document = only_document(write(tmp_path, "page.html", page))
    assert document.title == "Ada Lovelace"
    assert document.text.split("\n") == [
        "Ada", "She wrote programs & notes", "for the engine.", "born\t1815", "died\t1852", "a", "b",
    ]  # fmt: skip


def test_html_that_declares_its_encoding_is_read_in_it(tmp_path: Path) -> None:
    page = '<meta charset="iso-8859-1"><p>caf\u00e9 \u2013 bar</p>'.encode("cp1252")
    assert only_document(write(tmp_path, "page.htm", page)).text == "caf\u00e9 \u2013 bar"


def test_html_nested_deeper_than_the_stack_is_read(tmp_path: Path) -> None:
    assert only_document(write(tmp_path, "deep.html", "<div>" * 5000 + "bottom")).text == "bottom"


def test_pdf_pages_are_joined_and_the_title_is_the_one_in_its_properties(tmp_path: Path) -> None:
    [document], [failure] = load_all(
        write_pdf(tmp_path / "a.pdf", "Ada wrote programs.", "", "In 1843.", title="Notes")
    )
    assert (failure.item_id, "1 of 3 pages have no text, which may be scanned: 2." in failure.reason) == (
        "a.pdf#page 2",
        True,
    )
    assert document.text == "Ada wrote programs.\n\f\n\n\f\nIn 1843."
    assert (document.title, document.metadata) == ("Notes", {"pages": 3})


def test_a_pdf_without_a_title_is_titled_by_its_stem(tmp_path: Path) -> None:
    assert only_document(write_pdf(tmp_path / "report.pdf", "text", title="  ")).title == "report"


def test_a_pdf_that_opens_with_an_empty_password_is_read(tmp_path: Path) -> None:
    assert only_document(write_pdf(tmp_path / "a.pdf", "readable", password="")).text == "readable"


ROWS = [
    {"id": "a", "title": "Ada", "text": "Ada wrote programs.", "year": 1843, "score": 0.5, "living": False},
    {"id": "b", "title": "Charles", "text": "Charles built engines.", "year": 1822, "score": 1.5, "living": False},
]
DOCUMENTS = [
    ("a", "Ada", "Ada wrote programs.", {"year": 1843, "score": 0.5, "living": False}),
    ("b", "Charles", "Charles built engines.", {"year": 1822, "score": 1.5, "living": False}),
]


def in_short(documents: list[Document]) -> list[tuple[str, str, str, Any]]:
    return [(document.id, document.title, document.text, document.metadata) for document in documents]


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.ndjson", "rows.jsonl.gz", "rows.json", "rows.parquet"])
def test_each_row_is_a_document_and_its_other_columns_are_metadata(tmp_path: Path, name: str) -> None:
    lines = "".join(json.dumps(row) + "\r\n" for row in ROWS).encode()
    if name.endswith(".parquet"):
        pq.write_table(pa.Table.from_pylist(ROWS), tmp_path / name)
    elif name.endswith(".gz"):
        write(tmp_path, name, gzip.compress(lines))
    else:
        write(tmp_path, name, json.dumps(ROWS) if name.endswith(".json") else b"\n" + lines)
    documents, failures = load_all(tmp_path)
    assert in_short(documents) == DOCUMENTS
    assert failures == []
    assert {document.source for document in documents} == {name}


@pytest.mark.parametrize(("name", "delimiter"), [("a.csv", ","), ("a.csv", ";"), ("a.csv", "\t"), ("a.tsv", "\t")])
def test_csv_with_any_common_delimiter_keeps_quoted_lines_and_strings(
    tmp_path: Path, name: str, delimiter: str
) -> None:
    out = io.StringIO()
    table = csv.writer(out, delimiter=delimiter)
    table.writerows([["id", "title", "text", "code"], ["a", "Ada", 'She, "Ada";\n\twrote', "007"], ["b", "B", "b", ""]])
    write(tmp_path, name, codecs.BOM_UTF8 + out.getvalue().encode())
    documents, failures = load_all(tmp_path)
    assert in_short(documents) == [("a", "Ada", 'She, "Ada";\n\twrote', {"code": "007"}), ("b", "B", "b", {})]
    assert failures == []


def test_a_csv_cell_may_be_longer_than_the_csv_modules_own_limit(tmp_path: Path) -> None:
    text = "long " * 40_000
    assert len(only_document(write(tmp_path, "a.csv", f"id,text\na,{text}\n")).text) == 200_000


def test_columns_may_have_other_names(tmp_path: Path) -> None:
    write_rows(tmp_path, "a.jsonl", {"_id": 7, "name": "Ada", "body": "text", "id": "other"})
    document = only_document(tmp_path, id_column="_id", title_column="name", text_column="body")
    assert in_short([document]) == [("7", "Ada", "text", {"id": "other"})]


def test_rows_without_an_id_are_called_by_file_and_content_and_have_no_made_up_title(tmp_path: Path) -> None:
    write_rows(tmp_path, "a.jsonl", {"text": "one"}, {"text": "two", "id": None}, {"text": "three", "id": " "})
    write(tmp_path, "b.csv", "id,text\n,four\nNaN,five\n")
    table = pa.table({"text": ["six", "seven"], "id": pa.array([float("nan"), 12.0])})
    pq.write_table(table, tmp_path / "c.parquet")
    documents, failures = load_all(tmp_path)
    assert failures == []
    assert [document.id for document in documents] == [
        *(row_id("a.jsonl", text) for text in ("one", "two", "three")),
        *(row_id("b.csv", text) for text in ("four", "five")),
        row_id("c.parquet", "six"),
        "12",
    ]
    assert {document.title for document in documents} == {""}


def test_metadata_is_plain_values_only(tmp_path: Path) -> None:
    row = {
        "text": "t", "tags": ["x", "y"], "born": datetime.date(1815, 12, 10), "none": None, "nan": float("nan"),
        "big": 2**62, "image": b"\x89PNG", "at": 1,
    }  # fmt: skip
    table = pa.Table.from_pylist([row])
    table = table.set_column(table.column_names.index("at"), "at", pa.array([1], pa.timestamp("ns")))
    pq.write_table(table, tmp_path / "a.parquet")
    metadata = dict(only_document(tmp_path).metadata)
    assert "1970-01-01" in str(metadata.pop("at"))
    assert metadata == {"tags": '["x", "y"]', "born": "1815-12-10", "big": 2**62}


def test_numbers_that_no_store_can_hold_become_strings(tmp_path: Path) -> None:
    write(tmp_path, "a.jsonl", '{"text": "t", "big": 36893488147419103232, "inf": Infinity, "nan": NaN}\n')
    assert only_document(tmp_path).metadata == {"big": "36893488147419103232", "inf": "inf"}


def test_lone_surrogates_and_nul_become_replacement_characters(tmp_path: Path) -> None:
    write(tmp_path, "a.jsonl", r'{"id": "\ud800", "text": "a\ud83d\ude00b\udfffc\u0000d", "m": "\udead"}')
    document = only_document(tmp_path)
    assert (document.id, document.text, document.metadata) == ("\ufffd", "a😀b\ufffdc\ufffdd", {"m": "\ufffd"})


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
@pytest.mark.parametrize("name", ["a.txt", "a.html", "a.jsonl", "a.csv", "a.json"])
def test_a_byte_order_mark_says_the_encoding(tmp_path: Path, name: str, encoding: str) -> None:
    content = {
        "a.jsonl": '{"text": "crêpe"}\r\n', "a.csv": "text\r\ncrêpe\r\n", "a.json": '{"text": "crêpe"}',
    }.get(name, "crêpe")  # fmt: skip
    assert only_document(write(tmp_path, name, content.encode(encoding))).text == "crêpe"
