"""Every format and every kind of bad input, as real files."""

import codecs
import csv
import datetime
import gzip
import io
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pypdf
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject

from kraq_dspy.corpus import load
from kraq_dspy.corpus.formats import READERS
from kraq_dspy.corpus.load import load_documents
from kraq_dspy.errors import CorpusError
from kraq_dspy.records import Document, Failure


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


def write_pdf(path: Path, *pages: str, title: str | None = None, password: str | None = None) -> Path:
    writer = pypdf.PdfWriter()
    for text in pages:
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
        stream.set_data(f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET".encode() if text else b"")
        page[NameObject("/Contents")] = writer._add_object(stream)
    if title is not None:
        writer.add_metadata({"/Title": title})
    if password is not None:
        writer.encrypt(password, "owner", algorithm="RC4-128")
    with path.open("wb") as out:
        writer.write(out)
    return path


# Formats


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
    document = only_document(write_pdf(tmp_path / "a.pdf", "Ada wrote programs.", "", "In 1843.", title="Notes"))
    assert document.text == "Ada wrote programs.\n\nIn 1843."
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


def test_rows_without_an_id_are_called_by_file_and_row_and_have_no_made_up_title(tmp_path: Path) -> None:
    write_rows(tmp_path, "a.jsonl", {"text": "one"}, {"text": "two", "id": None}, {"text": "three", "id": " "})
    write(tmp_path, "b.csv", "id,text\n,four\nNaN,five\n")
    table = pa.table({"text": ["six", "seven"], "id": pa.array([float("nan"), 12.0])})
    pq.write_table(table, tmp_path / "c.parquet")
    documents, failures = load_all(tmp_path)
    assert failures == []
    assert [document.id for document in documents] == [
        "a.jsonl#1", "a.jsonl#2", "a.jsonl#3", "b.csv#1", "b.csv#2", "c.parquet#1", "12",
    ]  # fmt: skip
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


# The walk


def test_files_come_in_sorted_order_and_hidden_ones_are_passed_over(tmp_path: Path) -> None:
    for name in ("b.txt", "a/z.txt", "a/b/c.md", "Z.txt", ".hidden.txt", ".git/x.txt", "a/.DS_Store"):
        write(tmp_path, name, name)
    documents, failures = load_all(tmp_path)
    assert [document.id for document in documents] == ["Z.txt", "a/b/c.md", "a/z.txt", "b.txt"]
    assert failures == []


def test_an_unknown_extension_is_a_failure_that_lists_the_known_ones(tmp_path: Path) -> None:
    write(tmp_path, "a.docx", "x")
    failure = only_failure(tmp_path)
    assert failure.item_id == "a.docx"
    assert all(extension.removeprefix(".") in failure.reason for extension in READERS)


def test_links_inside_the_corpus_are_followed_to_files_and_others_are_refused(tmp_path: Path) -> None:
    corpus = tmp_path / "corpus"
    write(corpus, ".store/real.txt", "real")
    write(corpus, "folder/a.txt", "a")
    write(tmp_path, "secret.txt", "secret")
    (corpus / "linked.txt").symlink_to(".store/real.txt")
    (corpus / "out.txt").symlink_to(tmp_path / "secret.txt")
    (corpus / "up").symlink_to(tmp_path)
    (corpus / "again").symlink_to(corpus / "folder")
    (corpus / "folder" / "loop").symlink_to(corpus)
    (corpus / "self.txt").symlink_to("self.txt")
    (corpus / "gone.txt").symlink_to("nowhere.txt")
    documents, failures = load_all(corpus)
    assert [(document.id, document.text) for document in documents] == [("folder/a.txt", "a"), ("linked.txt", "real")]
    reasons = {failure.item_id: failure.reason for failure in failures}
    assert reasons.keys() == {"out.txt", "up", "again", "folder/loop", "self.txt", "gone.txt"}
    assert all("out of the corpus folder" in reasons[name] for name in ("out.txt", "up"))
    assert all("under its own name" in reasons[name] for name in ("again", "folder/loop"))
    assert all("nowhere or in a circle" in reasons[name] for name in ("self.txt", "gone.txt"))


def test_a_pipe_is_refused_without_waiting_for_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.txt")
    assert "Not a regular file" in only_failure(tmp_path).reason


def test_a_file_name_that_is_not_utf8_gives_an_id_that_is(tmp_path: Path) -> None:
    try:
        write(tmp_path, os.fsdecode(b"caf\xe9.txt"), "coffee")
    except OSError:
        pytest.skip("this file system takes UTF-8 names only")
    assert only_document(tmp_path).id == "caf\ufffd.txt"


@pytest.fixture
def without_privileges() -> Iterator[Path]:
    """A folder, and a user who is not root while the test runs: root may read everything."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    was_root = os.geteuid() == 0
    if was_root:
        os.seteuid(65534)
    try:
        yield folder
    finally:
        if was_root:
            os.seteuid(0)
        shutil.rmtree(folder)


def test_files_and_folders_without_permission_are_failures(without_privileges: Path) -> None:
    folder = without_privileges
    privileged = os.geteuid() == 65534
    if privileged:
        os.seteuid(0)
    write(folder, "open.txt", "open")
    write(folder, "closed.txt", "closed").chmod(0)
    write(folder, "vault/a.txt", "a")
    (folder / "vault").chmod(0)
    if privileged:
        os.seteuid(65534)
    documents, failures = load_all(folder)
    if not privileged:
        (folder / "vault").chmod(0o755)
    assert [document.id for document in documents] == ["open.txt"]
    assert [failure.item_id for failure in failures] == ["closed.txt", "vault"]
    assert all("Permission denied" in failure.reason for failure in failures)


# Bad content


@pytest.mark.parametrize("name", [f"a{extension}" for extension in READERS])
def test_an_empty_file_of_any_kind_is_a_failure_that_names_it(tmp_path: Path, name: str) -> None:
    failure = only_failure(write(tmp_path, name, b""))
    assert failure.item_id == name
    assert failure.reason


def test_white_space_is_not_a_text(tmp_path: Path) -> None:
    assert only_failure(write(tmp_path, "a.txt", " \n\t\n")).reason == "The text is empty."


@pytest.mark.parametrize("name", ["a.txt", "a.md", "a.html", "a.jsonl", "a.csv", "a.json"])
def test_binary_content_under_a_text_name_is_a_failure(tmp_path: Path, name: str) -> None:
    failure = only_failure(write(tmp_path, name, b"PK\x03\x04\x00\x00 \x08" + bytes(range(256)) * 50))
    assert failure.item_id == name
    assert "binary" in failure.reason
    assert ".docx" in failure.reason


def test_control_characters_give_binary_content_away_even_where_it_is_utf8(tmp_path: Path) -> None:
    assert "binary" in only_failure(write(tmp_path, "a.txt", b"\x01\x02abc\x03\x04" * 100)).reason


@pytest.mark.parametrize("name", ["a.txt", "a.md", "a.html", "a.json"])
def test_another_encoding_is_refused_with_the_offset_of_its_first_byte(tmp_path: Path, name: str) -> None:
    failure = only_failure(write(tmp_path, name, "a nice café".encode("latin-1")))
    assert "0xe9 at offset 10" in failure.reason
    assert "iconv" in failure.reason


def test_a_line_in_another_encoding_fails_alone_with_its_offset_in_the_file(tmp_path: Path) -> None:
    write(tmp_path, "a.jsonl", b'{"text": "one"}\n{"text": "caf\xe9"}\n{"text": "three"}\n')
    documents, failures = load_all(tmp_path)
    assert [document.id for document in documents] == ["a.jsonl#1", "a.jsonl#3"]
    assert failures[0].item_id == "a.jsonl#2"
    assert "0xe9 at offset 29" in failures[0].reason


def test_a_csv_row_in_another_encoding_fails_whole_and_alone(tmp_path: Path) -> None:
    write(tmp_path, "a.csv", b'id,text\na,one\nb,"two\ncaf\xe9\nend"\nc,three\n')
    documents, failures = load_all(tmp_path)
    assert [document.id for document in documents] == ["a", "c"]
    assert [failure.item_id for failure in failures] == ["a.csv#2"]
    assert "0xe9 at offset 24" in failures[0].reason


@pytest.mark.parametrize("name", ["a.txt", "a.md", "a.html", "a.json", "a.pdf"])
def test_a_file_over_the_limit_is_a_failure_that_says_both_sizes(tmp_path: Path, name: str) -> None:
    failure = only_failure(write(tmp_path, name, b"x" * 2345), max_bytes=1000)
    assert "2,345 bytes" in failure.reason
    assert "1,000" in failure.reason


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz", "a.csv"])
def test_a_line_over_the_limit_fails_alone(tmp_path: Path, name: str) -> None:
    lines = ['{"text": "one"}', '{"text": "%s"}' % ("x" * 5000), '{"text": "three"}']
    if name == "a.csv":
        lines = ["text", "one", "x" * 5000, "three"]
    data = "\n".join(lines).encode()
    write(tmp_path, name, gzip.compress(data) if name.endswith(".gz") else data)
    documents, failures = load_all(tmp_path, max_bytes=1000)
    assert [document.text for document in documents] == ["one", "three"]
    assert [failure.item_id for failure in failures] == [f"{name}#2"]
    assert "limit is 1,000" in failures[0].reason


def test_a_compression_bomb_is_left_after_a_bounded_read(tmp_path: Path) -> None:
    write(tmp_path, "bomb.jsonl.gz", gzip.compress(b'{"text": "' + b"x" * 30_000_000 + b'"}'))
    documents, failures = load_all(tmp_path, max_bytes=10_000)
    assert documents == []
    assert [failure.item_id for failure in failures] == ["bomb.jsonl.gz#1", "bomb.jsonl.gz"]
    assert "rest of the file is left" in failures[1].reason


def test_a_parquet_text_over_the_limit_fails_alone(tmp_path: Path) -> None:
    pq.write_table(pa.table({"text": ["one", "é" * 600]}), tmp_path / "a.parquet")
    documents, failures = load_all(tmp_path, max_bytes=1000)
    assert [document.text for document in documents] == ["one"]
    assert "1,200 bytes" in failures[0].reason


def test_a_broken_json_line_fails_alone_and_names_its_line(tmp_path: Path) -> None:
    write(tmp_path, "a.jsonl", '{"text": "one"}\n{"text": \n[1]\n"text"\n{"text": "five"}\n' + "[" * 100_000 + "\n")
    documents, failures = load_all(tmp_path)
    assert [document.id for document in documents] == ["a.jsonl#1", "a.jsonl#5"]
    assert [failure.item_id for failure in failures] == ["a.jsonl#2", "a.jsonl#3", "a.jsonl#4", "a.jsonl#6"]
    assert failures[0].reason.startswith("Line 2: not valid JSON at column 10")
    assert failures[1].reason.startswith("Line 3 is a list; expected an object")


def test_rows_without_a_usable_text_fail_alone(tmp_path: Path) -> None:
    write_rows(tmp_path, "a.jsonl", {"text": "one"}, {"body": "x"}, {"text": None}, {"text": 3}, {"text": "  "})
    documents, failures = load_all(tmp_path)
    assert len(documents) == 1
    assert [failure.reason for failure in failures] == [
        "Line 2: There is no column 'text'; found: 'body'. Name the right one with the column settings.",
        "Line 3: The column 'text' is empty.",
        "Line 4: The column 'text' holds a value of type int; expected a string.",
        "Line 5: The column 'text' is empty.",
    ]


def test_an_id_that_is_a_list_fails_alone(tmp_path: Path) -> None:
    write_rows(tmp_path, "a.jsonl", {"text": "one", "id": [1]}, {"text": "two", "id": 2})
    documents, failures = load_all(tmp_path)
    assert [document.id for document in documents] == ["2"]
    assert "holds a list" in failures[0].reason


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.parquet"])
def test_a_table_without_the_text_column_is_one_failure_that_names_its_columns(tmp_path: Path, name: str) -> None:
    if name.endswith(".parquet"):
        pq.write_table(pa.table({"id": [1, 2], "body": ["x", "y"]}), tmp_path / name)
    else:
        write(tmp_path, name, "id,body\n1,x\n2,y\n".replace(",", "\t" if name.endswith("tsv") else ","))
    failure = only_failure(tmp_path)
    assert failure.item_id == name
    assert "no column 'text'; found: 'id', 'body'" in failure.reason


def test_csv_rows_with_stray_cells_or_quotes_fail_alone(tmp_path: Path) -> None:
    write(tmp_path, "a.csv", 'id,text\na,one\nb,two,surplus\nc,"quo"ted\n\nd\ne,"good"\nf,"never closed\ng,lost\n')
    documents, failures = load_all(tmp_path)
    assert [document.id for document in documents] == ["a", "e"]
    assert [failure.item_id for failure in failures] == ["a.csv#2", "a.csv#3", "a.csv#4", "a.csv#6"]
    reasons = [failure.reason for failure in failures]
    assert reasons[0].startswith("Row 2 (line 3) has 3 cells for 2 columns")
    assert reasons[1].startswith("Row 3 (line 4):")
    assert reasons[2] == "Row 4 (line 6): The column 'text' is empty."
    assert reasons[3].startswith("Row 6 (line 8): unexpected end of data")


def test_the_first_of_documents_with_the_same_text_is_kept(tmp_path: Path) -> None:
    write(tmp_path, "a.txt", "same\n")
    write(tmp_path, "b.txt", "same\r\n")
    documents, failures = load_all(tmp_path)
    assert [document.id for document in documents] == ["a.txt"]
    assert [(failure.item_id, "'a.txt'" in failure.reason) for failure in failures] == [("b.txt", True)]


def test_duplicates_with_ids_of_their_own_can_be_kept(tmp_path: Path) -> None:
    rows = [{"id": "a", "text": "same"}, {"id": "b", "text": "same"}, {"id": "b", "text": "same"}]
    write_rows(tmp_path, "a.jsonl", *rows)
    documents, failures = load_all(tmp_path, keep_duplicates=True)
    assert [document.id for document in documents] == ["a", "b"]
    assert [failure.item_id for failure in failures] == ["a.jsonl#3"]


def test_an_id_that_comes_again_with_another_text_is_a_failure(tmp_path: Path) -> None:
    write_rows(tmp_path, "a.jsonl", {"id": "a", "text": "one"}, {"id": "a", "text": "two"})
    documents, failures = load_all(tmp_path)
    assert [document.text for document in documents] == ["one"]
    assert "The id 'a' belongs to an earlier document" in failures[0].reason


def test_an_encrypted_pdf_is_a_failure(tmp_path: Path) -> None:
    assert "encrypted" in only_failure(write_pdf(tmp_path / "a.pdf", "secret", password="pw")).reason


def test_a_pdf_without_text_is_a_failure_that_points_to_ocr(tmp_path: Path) -> None:
    assert "OCR" in only_failure(write_pdf(tmp_path / "a.pdf", "", "")).reason


def test_a_damaged_pdf_is_a_failure(tmp_path: Path) -> None:
    whole = write_pdf(tmp_path / "a.pdf", "text").read_bytes()
    write(tmp_path, "a.pdf", whole[:60])
    assert "damaged" in only_failure(tmp_path).reason


def test_a_damaged_page_fails_alone(tmp_path: Path) -> None:
    writer = pypdf.PdfWriter(write_pdf(tmp_path / "a.pdf", "first", "second", "third"))
    content = DecodedStreamObject()
    content.set_data(b"?")
    content[NameObject("/Filter")] = NameObject("/NoSuchFilter")
    writer.pages[1][NameObject("/Contents")] = writer._add_object(content)
    writer.write(tmp_path / "a.pdf")
    documents, failures = load_all(tmp_path)
    assert [document.text for document in documents] == ["first\n\nthird"]
    assert [failure.item_id for failure in failures] == ["a.pdf#page 2"]


def test_pdf_without_pypdf_is_a_failure_that_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_pdf(tmp_path / "a.pdf", "text")
    write(tmp_path, "b.txt", "goes on")
    monkeypatch.setitem(sys.modules, "pypdf", None)
    documents, failures = load_all(tmp_path)
    assert [document.id for document in documents] == ["b.txt"]
    assert "pip install 'kraq-dspy[formats]'" in failures[0].reason


def test_damaged_compression_keeps_the_lines_before_it(tmp_path: Path) -> None:
    lines = "".join(json.dumps({"text": f"text {n} {os.urandom(20).hex()}"}) + "\n" for n in range(2000))
    data = gzip.compress(lines.encode())
    write(tmp_path, "a.jsonl.gz", data[: len(data) // 2])
    documents, failures = load_all(tmp_path)
    assert len(documents) > 100
    assert "gzip data is damaged" in failures[-1].reason


def test_a_file_that_is_not_gzip_or_not_parquet_is_a_failure(tmp_path: Path) -> None:
    write(tmp_path, "a.jsonl.gz", '{"text": "plain"}\n')
    write(tmp_path, "b.parquet", b"PAR1 nothing of the kind PAR1")
    documents, failures = load_all(tmp_path)
    assert documents == []
    assert "gzip data is damaged" in failures[0].reason
    assert "Parquet file is damaged" in failures[1].reason


def test_a_parquet_text_that_is_not_utf8_fails_alone(tmp_path: Path) -> None:
    broken = pa.array([b"one", b"caf\xe9", b"three"]).view(pa.string())
    pq.write_table(pa.table({"text": broken}), tmp_path / "a.parquet")
    documents, failures = load_all(tmp_path)
    assert [document.text for document in documents] == ["one", "three"]
    assert failures[0].item_id == "a.parquet#2"


def test_a_file_of_nothing_but_bad_rows_names_the_first_thousand_and_counts_the_rest(tmp_path: Path) -> None:
    write(tmp_path, "a.jsonl", "broken\n" * 1234)
    documents, failures = load_all(tmp_path)
    assert documents == []
    assert len(failures) == load.FAILURES_NAMED + 1
    assert failures[-1].reason.startswith("234 more rows failed")


# The run


def test_a_path_that_does_not_exist_is_an_error_before_anything_is_read(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=r"There is no corpus at .*nowhere"):
        load_documents(tmp_path / "nowhere")


def test_a_corpus_without_usable_text_is_an_error_after_its_failures(tmp_path: Path) -> None:
    write(tmp_path, "a.txt", "")
    items = load_documents(tmp_path)
    assert isinstance(next(items), Failure)
    with pytest.raises(CorpusError, match=r"no usable text; 1 failed, the first 'a.txt': The file is empty"):
        next(items)


def test_an_empty_folder_is_an_error_that_says_what_to_put_in_it(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=r"holds no files.*txt, .*parquet"):
        list(load_documents(tmp_path))


def test_documents_that_are_known_are_skipped_and_still_have_their_duplicates_found(tmp_path: Path) -> None:
    write_rows(tmp_path, "a.jsonl", {"id": "a", "text": "same"}, {"id": "b", "text": "same"}, {"id": "c", "text": "c"})
    documents, failures = load_all(tmp_path, skip_ids={"a"})
    assert [document.id for document in documents] == ["c"]
    assert [failure.item_id for failure in failures] == ["a.jsonl#2"]


def test_a_corpus_that_is_known_in_full_is_not_an_error(tmp_path: Path) -> None:
    write(tmp_path, "a.txt", "known")
    assert list(load_documents(tmp_path, skip_ids={"a.txt"})) == []


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz", "a.csv"])
def test_the_first_document_comes_before_the_rest_of_the_file_is_read(tmp_path: Path, name: str) -> None:
    rows = (f'{{"text": "text {n}"}}\n' if "jsonl" in name else f"text {n}\n" for n in range(200_000))
    path = tmp_path / name
    with gzip.open(path, "wt", compresslevel=1) if name.endswith(".gz") else path.open("w") as out:
        out.write("" if "jsonl" in name else "text\n")
        out.writelines(rows)
    items = load_documents(path)
    first = next(items)
    assert isinstance(first, Document)
    assert first.text == "text 0"
    path.open("r+b").truncate(path.stat().st_size // 2)  # had it been read, the second half would still come
    n_more = sum(isinstance(item, Document) for item in items)
    assert 50_000 < n_more < 150_000


def test_parquet_is_read_in_batches_so_damage_further_on_costs_only_what_follows(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    texts = [os.urandom(100).hex() for _ in range(5000)]
    pq.write_table(pa.table({"text": texts}), path, row_group_size=1024, compression="none", use_dictionary=False)
    data = bytearray(path.read_bytes())
    place = pq.ParquetFile(path).metadata.row_group(3).column(0).data_page_offset
    data[place : place + 40] = b"\xff" * 40
    path.write_bytes(data)
    documents, failures = load_all(path)
    assert [document.text for document in documents] == texts[:3072]
    assert "damaged after row 3072" in failures[0].reason


@settings(deadline=None, max_examples=150)
@given(
    data=st.one_of(
        st.binary(max_size=300),
        st.text(max_size=200).map(lambda text: text.encode("utf-8", "surrogatepass")),
        st.text(alphabet='{}[]":,text\n\r\\u0d8<>/!-p?#;|\t\0\ufeff', max_size=200).map(str.encode),
        st.sampled_from([b"%PDF-1.4\n", b"PAR1", b"\x1f\x8b\x08", codecs.BOM_UTF16_LE, b"text\n"]).flatmap(
            lambda start: st.binary(max_size=200).map(lambda rest: start + rest)
        ),
    ),
    compress=st.booleans(),
)
def test_no_bytes_whatever_make_the_loader_raise(data: bytes, compress: bool) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for extension in READERS:
            packed = compress and extension.endswith(".gz")
            write(folder, f"a{extension}", gzip.compress(data) if packed else data)
        documents, _ = load_all(folder, max_bytes=250)
        for document in documents:
            assert document.text.strip()
            document.text.encode("utf-8")
            document.id.encode("utf-8")
            json.dumps(dict(document.metadata), allow_nan=False)
