"""Reads files of other programs, files of unknown kinds, and columns that nobody has named."""

import base64
import gzip
import io
import json
import sys
import zipfile
import zlib
from email.message import EmailMessage
from pathlib import Path

import pytest

from kraq_dspy.asset.corpus.chunk import chunk_document
from kraq_dspy.asset.corpus.formats.docx import read_docx
from kraq_dspy.asset.corpus.formats.rows import Reader, ReadSettings
from kraq_dspy.asset.corpus.formats.rtf import read_rtf
from kraq_dspy.asset.corpus.formats.sheets import read_sheets
from kraq_dspy.asset.corpus.formats.slides import read_pptx
from kraq_dspy.errors import MissingExtraError
from kraq_dspy.records import Chunk
from kraq_dspy.settings import ChunkSettings
from tests.asset.corpus.corpora import load_all, only_document, only_failure, write, write_rows


def docx(body: str) -> bytes:
    """A file of Word with this body, as little as Word opens."""
    space = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    kinds = "http://schemas.openxmlformats.org/package/2006/content-types"
    relations = "http://schemas.openxmlformats.org/package/2006/relationships"
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"
    main = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr(
            "[Content_Types].xml",
            f'<Types xmlns="{kinds}"><Default Extension="xml" ContentType="application/xml"/><Default Extension="rels" '
            'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
            f'<Override PartName="/word/document.xml" ContentType="{main}"/></Types>',
        )
        archive.writestr(
            "_rels/.rels",
            f'<Relationships xmlns="{relations}"><Relationship Id="r" Type="{office}" Target="word/document.xml"/>'
            "</Relationships>",
        )
        archive.writestr("word/document.xml", f'<w:document xmlns:w="{space}"><w:body>{body}</w:body></w:document>')
    return data.getvalue()


def paragraph(text: str, style: str = "", raised: str = "") -> str:
    styled = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
    note = f'<w:r><w:rPr><w:vertAlign w:val="superscript"/></w:rPr><w:t>{raised}</w:t></w:r>' if raised else ""
    return f"<w:p>{styled}<w:r><w:t>{text}</w:t></w:r>{note}</w:p>"


def test_a_text_of_word_has_its_headings_tables_and_notes(tmp_path: Path) -> None:
    cells = [("Ship", "Built", "Owner"), ("Alma", "", "Berg")]
    rows = "".join(f"<w:tr>{''.join(f'<w:tc>{paragraph(cell)}</w:tc>' for cell in row)}</w:tr>" for row in cells)
    body = paragraph("Harbour", "Heading1") + paragraph("Founded in 1987", raised="3") + f"<w:tbl>{rows}</w:tbl>"
    document = only_document(write(tmp_path, "report.docx", docx(body)))
    assert document.text == "Harbour\nFounded in 1987 [3]\nShip\tBuilt\tOwner\nAlma\t\tBerg"
    assert (document.title, [heading.text for heading in document.headings]) == ("Harbour", ["Harbour"])


def test_slides_have_their_titles_tables_and_notes(tmp_path: Path) -> None:
    import pptx
    from pptx.util import Inches

    deck = pptx.Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[5])
    slide.shapes.title.text = "The harbour"
    slide.shapes.add_textbox(0, 0, Inches(1), Inches(1)).text_frame.text = "It opened in 1987."
    table = slide.shapes.add_table(2, 2, 0, 0, Inches(2), Inches(1)).table
    for row, cells in enumerate([("Ship", "Built"), ("Alma", "1962")]):
        for column, text in enumerate(cells):
            table.cell(row, column).text = text
    slide.notes_slide.notes_text_frame.text = "Thank the mayor."
    second = deck.slides.add_slide(deck.slide_layouts[5])
    second.shapes.title.text = "The ferry"
    deck.save(str(tmp_path / "talk.pptx"))
    document = only_document(tmp_path)
    assert document.text == (
        "The harbour\nIt opened in 1987.\nShip\tBuilt\nAlma\t1962\nThank the mayor.\n\f\nThe ferry"
    )
    assert [heading.text for heading in document.headings] == ["The harbour", "The ferry"]
    assert [document.text[heading.start :].split("\n")[0] for heading in document.headings] == [
        "The harbour", "The ferry",
    ]  # fmt: skip


def test_rows_of_a_sheet_have_the_names_of_their_columns(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas", reason="needs pandas: pip install 'kraq-dspy[eval]'")
    pytest.importorskip("openpyxl", reason="needs openpyxl: pip install openpyxl")
    ships = pandas.DataFrame({"Ship": ["Alma", "Brita"], "Built": [1962, None], "Owner": ["Berg", "Dahl"]})
    ships.to_excel(tmp_path / "ships.xlsx", index=False, sheet_name="Fleet")
    document = only_document(tmp_path)
    assert document.text == "Fleet\nShip: Alma; Built: 1962; Owner: Berg\nShip: Brita; Owner: Dahl"
    assert [heading.text for heading in document.headings] == ["Fleet"]


XLS = (
    "c-rk)O=uHA6#izDZGLFdO-+SX2%%ur+KYJcV7oSGd$LwNC?aTT7aO{!Wr>I$v|4i%1W$^WLN9u#dhrK6=*@#r(Ss"
    "lei9PltRPfMdee<$gQ_Z0PEh_UZ^XAQa^LF0Odo#PUZ|4)GnMWOE{DeLPP;nz@s*wpQ5x-%8^sXyezYbGz75*ti!"
    "W76R9nWKLLNbOj-eqWb7<@$(_)O&_CNVUTx6&Jk4EvB3(uZE60(VIgM>~7f%JdA=O-vtf&lgPhvE&BRUg}#CCopd"
    "gb?@=A__)@|x;W&0pRmnGmh3_sUdt@La#K|M>gacJS^Mu)q=L<u1;uU9%3Ds>E+I()oW)l+4J`R9^<`SgH&!k{@^"
    "5S9p*r$gS`e6mdzurxh!{!%snIcDTUKEidu4FBP{*TVxk(+!oX^<>st;YDn3K5QK9{8`V>xG~*2xuQbANWsj>`R-"
    "*SE1|eaATOn~9F1h4}<$zd<|r^1Uzb4vq|)r&uz@dwO-}-zuGji>uOtjN_~ctkQ0_*va%7-*pS~9ZZw-P*isfw|U"
    "IKH21mA+AbPrH{-pzt%l!Dd~xyc(^PT6+(G=@VEIyV?t?jlPI?oKlD)j9(Ia}qo!b)6OurW1F7b(J`!732STj7|U"
    "GMeQf)zxWO)#yt<m`ymmgdcsv=()&1zXGcxU5Cly9Dm1;OV4w(6iR+SZi#pd!uRGUq-A?YsF)!q`mD2qEJv!P*6}"
    "%P*6~441&LDt6%UzK6+Ho2qEvk&I*-^`c3lR;s_?_D$v370P<8jxY$tsY=$oUdx>@0`2Pzfj?w52#xcTvj5nOWbj"
    "B04&$Dhr<M%D0M#rx-;^!Y8|2r?H&MN"
)
"""A workbook of Excel 97 with the sheet of the test above, as xlwt wrote it: deflated, in base 85."""


def test_rows_of_an_old_sheet_have_the_names_of_their_columns(tmp_path: Path) -> None:
    write(tmp_path, "ships.xls", zlib.decompress(base64.b85decode(XLS)))
    document = only_document(tmp_path)
    assert document.text == "Fleet\nShip: Alma; Built: 1962; Owner: Berg\nShip: Brita; Owner: Dahl"
    assert [heading.text for heading in document.headings] == ["Fleet"]


def test_rows_of_an_open_sheet_have_the_names_of_their_columns(tmp_path: Path) -> None:
    def text(value: str) -> str:
        return f'<table:table-cell office:value-type="string"><text:p>{value}</text:p></table:table-cell>'

    built = '<table:table-cell office:value-type="float" office:value="1962"><text:p>1962</text:p></table:table-cell>'
    rows = [
        text("Ship") + text("Built") + text("Owner"),
        text("Alma") + built + text("Berg"),
        text("Brita") + "<table:table-cell/>" + text("Dahl"),
    ]
    names = " ".join(
        f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"' for name in ("office", "table", "text")
    )
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        archive.writestr("META-INF/manifest.xml", "<manifest/>")
        archive.writestr(
            "content.xml",
            f'<office:document-content {names}><office:body><office:spreadsheet><table:table table:name="Fleet">'
            + "".join(f"<table:table-row>{row}</table:table-row>" for row in rows)
            + "</table:table></office:spreadsheet></office:body></office:document-content>",
        )
    document = only_document(write(tmp_path, "ships.ods", data.getvalue()))
    assert document.text == "Fleet\nShip: Alma; Built: 1962; Owner: Berg\nShip: Brita; Owner: Dahl"


def test_a_book_is_read_chapter_by_chapter_in_its_order(tmp_path: Path) -> None:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr("META-INF/container.xml", '<container><rootfile full-path="OPS/book.opf"/></container>')
        archive.writestr(
            "OPS/book.opf",
            "<package><metadata><dc:title>The Harbour</dc:title></metadata><manifest>"
            '<item id="b" href="two.xhtml"/><item id="a" href="one%20.xhtml"/></manifest>'
            '<spine><itemref idref="a"/><itemref idref="b"/></spine></package>',
        )
        archive.writestr("OPS/one .xhtml", "<html><body><h1>One</h1><p>It began in 1987<sup>3</sup>.</p></body></html>")
        archive.writestr("OPS/two.xhtml", "<html><body><h1>Two</h1><p>It grew.</p></body></html>")
    document = only_document(write(tmp_path, "book.epub", data.getvalue()))
    assert (document.title, document.text) == ("The Harbour", "One\nIt began in 1987 [3].\n\nTwo\nIt grew.")
    assert [document.text[heading.start :].split("\n")[0] for heading in document.headings] == ["One", "Two"]


@pytest.mark.parametrize("subtype", ["plain", "html"])
def test_a_message_has_its_subject_and_its_sender(tmp_path: Path, subtype: str) -> None:
    message = EmailMessage()
    message["Subject"], message["From"], message["To"] = "The fähre", "Mira <mira@example.org>", "jonas@example.org"
    body = "It sails at six." if subtype == "plain" else "<p hidden>99</p><p>It sails at six.</p>"
    message.set_content(body, subtype=subtype)
    message.add_attachment(b"\x00" * 50, maintype="image", subtype="png", filename="a.png")
    document = only_document(write(tmp_path, "a.eml", bytes(message)))
    assert (document.title, document.text) == ("The fähre", "It sails at six.")
    assert document.metadata == {"from": "Mira <mira@example.org>", "to": "jonas@example.org"}


def test_a_notebook_has_its_text_its_code_and_what_it_printed(tmp_path: Path) -> None:
    cells = [
        {"cell_type": "markdown", "source": ["# Tides\n", "\n", "They turn.<!-- 99 -->"]},
        {"cell_type": "code", "source": "print(6)", "outputs": [{"text": ["6\n"]}, {"data": {"image/png": "iVBOR"}}]},
    ]
    document = only_document(write(tmp_path, "a.ipynb", json.dumps({"cells": cells})))
    assert document.text == "# Tides\n\nThey turn.\n\n```\nprint(6)\n```\n\n```\n6\n```"
    assert document.title == "Tides"


@pytest.mark.parametrize("name", ["README", "NEWS", "app.py", "server.log", "notes.tex", "Makefile", "a.yaml"])
def test_a_file_of_an_unknown_kind_that_is_text_is_text(tmp_path: Path, name: str) -> None:
    document = only_document(write(tmp_path, name, "It opened in 1987.\n"))
    assert (document.title, document.text) == (name, "It opened in 1987.\n")


@pytest.mark.parametrize("name", ["a.png", "a.doc", "archive"])
def test_one_that_is_not_is_named_with_the_kinds_that_are_known(tmp_path: Path, name: str) -> None:
    failure = only_failure(write(tmp_path, name, b"\x89PNG\x00\x01\x02" * 20))
    assert failure.item_id == name
    assert "not known" in failure.reason
    assert "docx" in failure.reason


@pytest.mark.parametrize(
    ("name", "text", "headings"),
    [
        ("a.rst", "Harbour\n=======\n\nIt opened.\n\nPrices\n------\n\nTwelve.\n", [(1, "Harbour"), (2, "Prices")]),
        ("a.org", "* Harbour\nIt opened.\n** Prices\nTwelve.\n", [(1, "Harbour"), (2, "Prices")]),
        ("a.adoc", "= Harbour\n\nIt opened.\n\n== Prices\n\nTwelve.\n", [(1, "Harbour"), (2, "Prices")]),
    ],
)
def test_other_mark_up_has_headings(tmp_path: Path, name: str, text: str, headings: list[tuple[int, str]]) -> None:
    document = only_document(write(tmp_path, name, text))
    assert (document.title, [(each.level, each.text) for each in document.headings]) == ("Harbour", headings)


@pytest.mark.parametrize(
    ("name", "content", "title"),
    [
        ("notes.txt.gz", b"It opened.", "notes"),
        ("a.md.gz", b"# Harbour\n\nIt opened.", "Harbour"),
        ("NEWS.gz", b"It opened.", "NEWS"),
        ("a.html.gz", b"<title>Harbour</title><p>It opened.", "Harbour"),
        ("a.csv.gz", b"title,text\nHarbour,It opened.\n", "Harbour"),
    ],
)
def test_a_file_that_gzip_compressed_is_read_as_what_it_is(
    tmp_path: Path, name: str, content: bytes, title: str
) -> None:
    document = only_document(write(tmp_path, name, gzip.compress(content)))
    assert (document.title, document.source) == (title, name)
    assert "It opened." in document.text


def test_a_compressed_bomb_and_a_damaged_file_cost_themselves_alone(tmp_path: Path) -> None:
    write(tmp_path, "bomb.txt.gz", gzip.compress(b"a" * 3_000_000))
    write(tmp_path, "torn.txt.gz", gzip.compress(bytes(range(256)) + b"It opened.")[:-12])
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", "a" * 3_000_000)
    write(tmp_path, "bomb.docx", bomb.getvalue())
    write(tmp_path, "torn.docx", b"PK\x03\x04 nothing")
    write(tmp_path, "torn.epub", docx(""))
    write(tmp_path, "torn.pptx", docx(""))
    write(tmp_path, "torn.xlsx", docx(""))
    write(tmp_path, "torn.ipynb", "{}")
    write(tmp_path, "good.txt", "It opened.")
    documents, failures = load_all(tmp_path, max_bytes=1_000_000, max_unpacked=10)
    assert [document.id for document in documents] == ["good.txt"]
    assert len(failures) == 8
    assert all("unpacks" in each.reason for each in failures if each.item_id.startswith("bomb"))


@pytest.mark.parametrize(
    ("reader", "package", "content"),
    [
        (read_docx, "mammoth", docx(paragraph("text"))), (read_pptx, "pptx", docx("")),
        (read_sheets, "xlrd", b"\xd0\xcf\x11\xe0"), (read_rtf, "striprtf", b"{\\rtf1 text}"),
    ],
)  # fmt: skip
def test_without_its_package_a_file_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reader: Reader, package: str, content: bytes
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match="formats"):
        list(reader(write(tmp_path, "a", content), ReadSettings()))


@pytest.mark.parametrize("column", ["content", "page_content", "body", "Text", "contents", "passage", "Body"])
def test_the_text_is_found_under_its_usual_names(tmp_path: Path, column: str) -> None:
    document = only_document(write_rows(tmp_path, "a.jsonl", {"_id": "d1", "Title": "Ferry", column: "It sails."}))
    assert (document.id, document.title, document.text, document.metadata) == ("d1", "Ferry", "It sails.", {})
    table = write(tmp_path / "csv", "a.csv", f"doc_id;{column}\nd1;It sails.\n")
    assert (only_document(table).id, only_document(table).text) == ("d1", "It sails.")


def test_text_goes_before_other_names_and_a_name_that_was_given_before_all(tmp_path: Path) -> None:
    rows = write_rows(tmp_path, "a.jsonl", {"content": "No.", "text": "Yes.", "note": "Note."})
    assert only_document(rows).text == "Yes."
    assert only_document(rows, text_column="note").text == "Note."
    assert "no column 'nothing'" in only_failure(rows, text_column="nothing").reason


def test_several_columns_make_one_text(tmp_path: Path) -> None:
    rows = write_rows(tmp_path, "a.jsonl", {"ship": "Alma", "built": 1962, "owner": None, "port": "Tarnvik"})
    document = only_document(rows, text_column="ship, built, owner")
    assert (document.text, document.metadata) == ("ship: Alma\nbuilt: 1962", {"port": "Tarnvik"})


@pytest.mark.parametrize("text", ["# Harbour\n\nIt opened.", "Harbour\n=======\n\nIt opened.", "HARBOUR\nIt opened."])
def test_a_title_stands_once_in_a_passage(text: str) -> None:
    assert Chunk("c", "d", 0, 0, 0, text, 0, title="Harbour").passage == "Harbour\nIt opened."
    assert Chunk("c", "d", 0, 0, 0, "It opened.", 0, title="Harbour").passage == "Harbour\nIt opened."
    assert Chunk("c", "d", 0, 0, 0, "Harbour", 0, title="Harbour").passage == "Harbour\nHarbour"


def test_no_passage_is_a_heading_alone(tmp_path: Path) -> None:
    sections = "".join(f"## Section {number}\n\n{'The crane lifts fifty tons. ' * 4}\n\n" for number in range(9))
    document = only_document(write(tmp_path, "a.md", f"# Harbour\n\n{sections}## The end\n"))
    for tokens in (20, 30, 40, 60, 200):
        chunks = chunk_document(document, ChunkSettings(tokens, 0))
        assert all("crane" in chunk.text for chunk in chunks), tokens
        assert all(chunk.n_tokens <= tokens for chunk in chunks)
        assert all("Harbour" in chunk.headings for chunk in chunks)
