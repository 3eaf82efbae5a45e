"""Every kind of bad input, as real files."""

import gzip
import json
import os
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pypdf
import pytest
from pypdf.generic import DecodedStreamObject, NameObject

from kraq_dspy.asset.corpus import load
from kraq_dspy.asset.corpus.formats.pdf import read_pdf
from kraq_dspy.asset.corpus.formats.readers import READERS
from kraq_dspy.asset.corpus.formats.rows import ReadSettings
from kraq_dspy.errors import MissingExtraError
from tests.asset.corpus.corpora import load_all, only_failure, row_id, write, write_pdf, write_rows


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
    assert [document.id for document in documents] == [row_id("a.jsonl", "one"), row_id("a.jsonl", "three")]
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
    assert [document.id for document in documents] == [row_id("a.jsonl", "one"), row_id("a.jsonl", "five")]
    assert [failure.item_id for failure in failures] == ["a.jsonl#2", "a.jsonl#3", "a.jsonl#4", "a.jsonl#6"]
    assert failures[0].reason.startswith("Line 2: not valid JSON at column 10")
    assert failures[1].reason.startswith("Line 3 is a list; expected an object")


def test_rows_without_a_usable_text_fail_alone(tmp_path: Path) -> None:
    write_rows(tmp_path, "a.jsonl", {"text": "one"}, {"words": "x"}, {"text": None}, {"text": 3}, {"text": "  "})
    documents, failures = load_all(tmp_path)
    assert len(documents) == 1
    assert [failure.reason for failure in failures] == [
        "Line 2: There is no column 'text'; there are: 'words'. Name the right one, or several with commas: "
        "--text-column NAME, or text_column in [corpus] of kraq.toml.",
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
        pq.write_table(pa.table({"id": [1, 2], "words": ["x", "y"]}), tmp_path / name)
    else:
        write(tmp_path, name, "id,words\n1,x\n2,y\n".replace(",", "\t" if name.endswith("tsv") else ","))
    failure = only_failure(tmp_path)
    assert failure.item_id == name
    assert "no column 'text'; there are: 'id', 'words'" in failure.reason


@pytest.mark.parametrize("name", ["rows.csv", "rows.jsonl", "rows.parquet"])
def test_a_column_that_was_named_for_the_title_and_is_nowhere_is_one_failure(tmp_path: Path, name: str) -> None:
    if name == "rows.parquet":
        pq.write_table(pa.table({"text": ["One.", "Two."], "headline": ["Sea", "Sea"]}), tmp_path / name)
    elif name == "rows.csv":
        write(tmp_path, name, "text,headline\nOne.,Sea\nTwo.,Sea\n")
    else:
        write_rows(tmp_path, name, {"text": "One.", "headline": "Sea"}, {"text": "Two.", "headline": "Sea"})
    failure = only_failure(tmp_path, title_column="headlin")
    assert failure.item_id == name
    assert "no column 'headlin' for the title; there are: 'text', 'headline'. Name the right one" in failure.reason


def test_a_column_that_was_named_may_be_empty_or_come_with_a_later_row_and_texts_need_none(tmp_path: Path) -> None:
    write(tmp_path, "empty.csv", "text,headline\nOne.,\nTwo.,\n")
    write(tmp_path, "later.jsonl", '{"text": "Three."}\n{"text": "Four.", "headline": "Sea"}\n')
    write(tmp_path, "plain.txt", "Five.")
    documents, failures = load_all(tmp_path, title_column="headline")
    assert failures == []
    assert [document.title for document in documents] == ["", "", "", "Sea", "plain"]


def test_columns_are_named_by_the_mark_that_parts_most_of_them(tmp_path: Path) -> None:
    write(tmp_path, "a.csv", "id;words;date\n1;x;y\n")
    assert "there are: 'id', 'words', 'date'" in only_failure(tmp_path).reason


def test_csv_rows_with_stray_cells_or_quotes_fail_alone(tmp_path: Path) -> None:
    write(tmp_path, "a.csv", 'id,text\na,one\nb,two,surplus\nc,"quo"ted\n\nd\ne,"good"\nf,"never closed\ng,lost\n')
    documents, failures = load_all(tmp_path)
    assert [document.id for document in documents] == ["a", "e"]
    assert [failure.item_id for failure in failures] == ["a.csv#2", "a.csv#3", "a.csv#4", "a.csv#6"]
    reasons = [failure.reason for failure in failures]
    assert reasons[0].startswith("Row 2 (line 3) has 3 cells for 2 columns")
    assert reasons[1].startswith("Row 3 (line 4):")
    assert reasons[2] == "Row 4 (line 6): The column 'text' is empty."
    assert reasons[3].startswith("Row 6 (lines 8 to 9): unexpected end of data")


def test_the_first_of_documents_with_the_same_text_is_kept(tmp_path: Path) -> None:
    write(tmp_path, "a.txt", "same\n")
    write(tmp_path, "b.txt", "same\r\n")
    documents, failures = load_all(tmp_path)
    assert [document.id for document in documents] == ["a.txt"]
    assert [(failure.item_id, "'a.txt'" in failure.reason) for failure in failures] == [("b.txt", True)]


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
    assert [document.text.split() for document in documents] == [["first", "third"]]
    assert [failure.item_id for failure in failures] == ["a.pdf#page 2"]


def test_pdf_without_pdfium_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_pdf(tmp_path / "a.pdf", "text")
    monkeypatch.setitem(sys.modules, "pypdfium2", None)
    with pytest.raises(MissingExtraError, match="formats"):
        list(read_pdf(tmp_path / "a.pdf", ReadSettings()))


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
