"""Tests that files as people really have them are read as they were meant, or refused in the right words."""

import csv
import gzip
import io
import json
import random
import tempfile
import zlib
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pypdf
import pytest
from hypothesis import given, strategies as st

from kraq_dspy.asset.corpus.formats.front_matter import split_front_matter
from kraq_dspy.asset.corpus.formats.html import Page
from kraq_dspy.asset.corpus.formats.html_parts import parts_of
from kraq_dspy.errors import ConfigError
from kraq_dspy.settings import CorpusSettings
from tests.asset.corpus.corpora import load_all, only_document, only_failure, write, write_pdf, write_rows
from tests.growth import require_linear


def ids(path: Path, **options: str) -> list[str]:
    return [document.id for document in load_all(path, **options)[0]]


def test_a_quote_that_never_closes_is_a_failure_that_says_which_lines_went_with_it(tmp_path: Path) -> None:
    rows = [f"{i},row number {i} of the log" for i in range(1, 1001)]
    rows[499] = '500,"a quote that nobody closed'
    rows[799] = '800,"a quote that is closed"'
    documents, failures = load_all(write(tmp_path, "a.csv", "\n".join(["id,text", *rows])))
    assert [document.id for document in documents] == [str(i) for i in range(1, 1001) if not 500 <= i <= 800]
    assert [failure.item_id for failure in failures] == ["a.csv#500"]
    assert "Row 500 (lines 501 to 801)" in failures[0].reason


@given(st.integers(0, 2**32))
def test_whatever_is_written_with_quotes_is_read_beside_rows_that_are_broken(seed: int) -> None:
    chance = random.Random(seed)
    texts = ["".join(chance.choices('ab,;"\n ', k=9)) + str(n) for n in range(12)]
    out = io.StringIO()
    table = csv.writer(out, quoting=csv.QUOTE_ALL)
    table.writerows([["id", "text"], *([n, text] for n, text in enumerate(texts))])
    folder = Path(tempfile.mkdtemp())
    whole = write(folder, "a.csv", out.getvalue())
    assert [document.text for document in load_all(whole)[0]] == texts
    broken = write(folder, "b.csv", out.getvalue() + 'x,"never closed\ny,last')
    assert [document.text for document in load_all(broken)[0]] == texts


def test_rows_that_all_leave_a_quote_open_do_not_take_for_ever(tmp_path: Path) -> None:
    content = "id,text\n" + "".join(f'{i},"open {i}\n' for i in range(3000))
    documents, failures = load_all(write(tmp_path, "a.csv", content))
    assert len(documents) + len(failures) <= 3000


def test_excels_own_first_line_names_the_mark(tmp_path: Path) -> None:
    assert ids(write(tmp_path, "a.csv", "sep=;\r\nid;text\r\na;one, two\r\n")) == ["a"]


def test_two_columns_of_one_name_are_both_kept_or_refused(tmp_path: Path) -> None:
    document = only_document(write(tmp_path, "a.csv", "text,note,note\none,x,y\n"))
    assert document.metadata == {"note": "x", "note (2)": "y"}
    assert "2 columns 'text'" in only_failure(write(tmp_path, "b.csv", "text,text\none,two\n")).reason
    table = pa.Table.from_arrays([pa.array(["one"]), pa.array(["two"])], names=["text", "text"])
    pq.write_table(table, tmp_path / "c.parquet")
    assert "2 columns 'text'" in only_failure(tmp_path / "c.parquet").reason


def test_text_in_a_column_of_bytes_is_text(tmp_path: Path) -> None:
    table = pa.table({"text": pa.array([b"caf\xc3\xa9", b"\x89PNG\x00"]), "id": pa.array([b"a", b"b"])})
    pq.write_table(table, tmp_path / "a.parquet")
    documents, failures = load_all(tmp_path)
    assert [(document.id, document.text) for document in documents] == [("a", "caf\u00e9")]
    assert "holds a value of type bytes" in failures[0].reason


def test_json_is_read_by_what_it_is_not_by_its_name(tmp_path: Path) -> None:
    rows = [{"id": "a", "text": "one"}, {"id": "b", "text": "two"}]
    assert ids(write_rows(tmp_path, "lines.json", *rows)) == ["a", "b"]
    assert ids(write(tmp_path, "list.jsonl", json.dumps(rows, indent=1))) == ["a", "b"]
    assert ids(write(tmp_path, "one.json", json.dumps(rows[0], indent=1))) == ["a"]


@pytest.mark.parametrize(
    "page",
    [
        "<!DOCTYPE html><html lang=en><head><meta charset=utf-8><title>Tides</title><body><p>The harbour opens.</p>",
        "<title>Tides</title><p>The harbour opens.",
        "<meta charset=utf-8><title>Tides</title>The harbour opens.",
        "<html><head><title>Tides</title></head>The harbour opens.",
        "<title>Tides</title><!-- > --><a title='a>b' href=\"x>y\">The</a> harbour opens.",
        "<TITLE>Tides</TITLE><SCRIPT>if (a < b) '</p>'</SCRIPT><P>The harbour opens.</P></I></DIV>",
        "<title>Tides</title><table><tr><td>The harbour opens.",
    ],
)
def test_tags_that_html_lets_one_leave_out_are_left_out(tmp_path: Path, page: str) -> None:
    document = only_document(write(tmp_path, "a.html", page))
    assert (document.title, document.text) == ("Tides", "The harbour opens.")


@given(st.text(st.sampled_from("<>/!-\"'= ap\n&;\ue003[]?")))
def test_any_page_is_read_to_its_end(source: str) -> None:
    page = Page()
    for part in parts_of(source):
        page.add(part)
    text, headings, linked = page.text()
    assert all(0 <= heading.start < len(text) for heading in headings)
    assert all(0 <= start <= len(text) for start in linked)


@pytest.mark.parametrize(
    ("page", "size"),
    [
        pytest.param(lambda n: "<pre>" + " " * n, 1_000_000, id="spaces"),
        pytest.param(lambda n: "<p>" * n, 25_000, id="<p>"),
        pytest.param(lambda n: "<!--" * n, 150_000, id="<!--"),
        pytest.param(lambda n: "<a href='" * n, 100_000, id="<a href='"),
        pytest.param(lambda n: "<div x=" * n, 100_000, id="<div x="),
        pytest.param(lambda n: "<b>" * n + "</i>" * n, 12_500, id="<b>"),
        pytest.param(lambda n: "<script>" * n, 50_000, id="<script>"),
        pytest.param(lambda n: "<h2>" * n, 12_500, id="<h2>"),
        pytest.param(lambda n: "<" * n, 60_000, id="<"),
        pytest.param(lambda n: "&" * n, 250_000, id="&"),
        pytest.param(lambda n: "<![CDATA[" * n, 50_000, id="<![CDATA["),
        pytest.param(lambda n: '<a x="1"' * n, 50_000, id='<a x="1"'),
    ],
)
def test_no_page_takes_time_that_grows_with_the_square_of_its_length(
    tmp_path: Path, page: Callable[[int], str], size: int
) -> None:
    require_linear(lambda text: load_all(write(tmp_path, "a.html", text)), lambda n: page(n) + "<p>end", size)


def test_a_page_is_read_as_what_it_is_where_it_declares_something_else(tmp_path: Path) -> None:
    def text(declared: str, encoding: str, content: str) -> str:
        page = f'<meta charset="{declared}"><p>{content}</p>'.encode(encoding)
        return only_document(write(tmp_path, "a.html", page)).text

    assert text("utf-8", "cp1252", "caf\u00e9 \u2013 bar") == "caf\u00e9 \u2013 bar"
    assert text("iso-8859-1", "utf-8", "caf\u00e9") == "caf\u00e9"
    assert text("utf-16", "utf-8", "caf\u00e9") == "caf\u00e9"
    assert text("utf-16", "cp1252", "caf\u00e9") == "caf\u00e9"
    assert text("no-such", "cp1252", "caf\u00e9") == "caf\u00e9"
    assert text("shift_jis", "cp932", "\u2460\u9ad9\u6e2f") == "\u2460\u9ad9\u6e2f"
    assert text("gb2312", "gb18030", "\u6e2f\u53e3") == "\u6e2f\u53e3"
    japanese = write(tmp_path, "a.html", b"<meta charset=utf-8>" + "\u6e2f\u53e3\u6e2f".encode("cp932"))
    assert "not UTF-8" in only_failure(japanese).reason


@pytest.mark.parametrize("name", ["a.txt", "a.md", "a.html", "a.csv", "a.jsonl", "a.json"])
@pytest.mark.parametrize("encoding", ["cp932", "cp1252", "utf-16-le"])
def test_an_encoding_that_the_user_says_is_that_of_files_that_are_not_utf_8(
    tmp_path: Path, name: str, encoding: str
) -> None:
    text = "\u6e2f\u53e3\u306e\u706f\u53f0" if encoding == "cp932" else "caf\u00e9 \u20ac"
    content = {"a.csv": f"text\n{text}\n", "a.jsonl": f'{{"text": "{text}"}}\n', "a.json": f'{{"text": "{text}"}}'}
    write(tmp_path, name, content.get(name, text).encode(encoding))
    write(tmp_path, "other.txt", "gr\u00fcn")
    documents, failures = load_all(tmp_path, encoding=encoding)
    assert failures == []
    assert [document.text.strip() for document in documents] == [text, "gr\u00fcn"]


def test_an_unknown_encoding_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"corpus.encoding is 'utf-9'"):
        CorpusSettings(encoding="utf-9")


@pytest.mark.parametrize(
    "text", ["---\nAnna: Well?\nBen: Well.\nAnna: Yes.\n---\nThey go.", "---\nAnna: Well?\nBen: No.\n---\nThey go."]
)
def test_a_dialogue_between_rules_is_text(text: str) -> None:
    assert split_front_matter(text) == ({}, text)


def test_folded_yaml_is_front_matter() -> None:
    text = "---\ntitle: The tides\n  of the north\ndescription: >-\n  Folded\n  text.\n"
    text += "note: |\n  a\n  b\nTags: [x]\n---\nText."
    fields = {"title": "The tides of the north", "description": "Folded text.", "note": "a\nb", "Tags": "x"}
    assert split_front_matter(text) == (fields, "Text.")


def test_words_that_a_pdfs_lines_cut_are_whole(tmp_path: Path) -> None:
    from kraq_dspy.asset.corpus.formats.pdf import _without_hyphenation

    assert _without_hyphenation("an inter-\nnational and well-known, well-\nknown Anglo-\nSaxon gran\u00ad\nary-") == (
        "an international and well-known, well-known Anglo-Saxon granary-"
    )


@pytest.mark.parametrize(
    "title", ["Microsoft Word - Draft", "untitled", "report.docx", "PowerPoint Presentation", "Slide 1", "\u200b"]
)
def test_a_title_that_a_program_put_there_is_none(tmp_path: Path, title: str) -> None:
    assert only_document(write_pdf(tmp_path / "tides.pdf", "text", title=title)).title == "tides"


def test_a_text_of_invisible_characters_is_empty(tmp_path: Path) -> None:
    assert only_failure(write(tmp_path, "a.txt", "\u200b\u200d \u2800\n")).reason == "The text is empty."


def test_file_names_are_normalised(tmp_path: Path) -> None:
    assert ids(write(tmp_path, "cafe\u0301.txt", "text").parent) == ["caf\u00e9.txt"]


def test_a_row_put_on_top_changes_no_other_id(tmp_path: Path) -> None:
    before = ids(write_rows(tmp_path, "a.jsonl", {"text": "one"}, {"text": "two"}))
    after = ids(write_rows(tmp_path, "a.jsonl", {"text": "new"}, {"text": "one"}, {"text": "two"}))
    assert after[1:] == before


def test_a_gzip_bomb_is_left(tmp_path: Path) -> None:
    bomb = gzip.compress(b'{"text": "one"}\n' + b"\n" * 3_000_000)
    documents, failures = load_all(write(tmp_path, "a.jsonl.gz", bomb), max_bytes=1000)
    assert [document.text for document in documents] == ["one"]
    assert "200 times its size" in failures[0].reason


def test_a_pdf_bomb_is_read_in_the_memory_of_a_file(tmp_path: Path) -> None:
    write_pdf(tmp_path / "a.pdf", "harmless", "bomb")
    bomb = zlib.compress(b"BT /F1 12 Tf (x) Tj ET " + b" " * 200_000_000, 9)
    data = (tmp_path / "a.pdf").read_bytes()
    plain = b"BT /F1 12 Tf 72 720 Td (bomb) Tj ET"
    at = data.index(plain)
    start = data.rindex(b"<<", 0, at)
    stream = b"<< /Length " + str(len(bomb)).encode() + b" /Filter /FlateDecode >>\nstream\n" + bomb
    (tmp_path / "a.pdf").write_bytes(data[:start] + stream + data[at + len(plain) :])
    assert only_document(tmp_path).text == "harmless\n\f\nx"


def test_the_text_of_a_pdf_has_a_limit(tmp_path: Path) -> None:
    writer = pypdf.PdfWriter(clone_from=write_pdf(tmp_path / "a.pdf", *["a long page " * 900] * 9))
    for page in writer.pages:
        page.compress_content_streams()
    writer.write(tmp_path / "a.pdf")
    failure = only_failure(tmp_path / "a.pdf", max_bytes=40_000)
    assert "The text of the first 4 pages is longer than 40,000" in failure.reason
