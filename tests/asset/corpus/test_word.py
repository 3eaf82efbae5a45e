"""Reads texts of Word as their pages show them."""

from pathlib import Path

import pytest

from tests.asset.corpus.corpora import load_all, only_document, only_failure, write
from tests.asset.corpus.office import docx, packed, paragraph, run

UNSEEN = {
    "<w:vanish/>": "hidden text",
    "<w:strike/>": "text struck out",
    "<w:dstrike/>": "text struck out",
    '<w:rStyle w:val="Secret"/>': "hidden text",
    '<w:rStyle w:val="Deeper"/>': "hidden text",
}
STYLES = (
    '<w:style w:type="character" w:styleId="Secret"><w:rPr><w:vanish/></w:rPr></w:style>'
    '<w:style w:type="character" w:styleId="Deeper"><w:basedOn w:val="Secret"/></w:style>'
    '<w:style w:type="paragraph" w:styleId="Gone"><w:rPr><w:vanish/></w:rPr></w:style>'
)


@pytest.mark.parametrize("properties", UNSEEN)
def test_what_nobody_sees_is_left_out_and_counted(tmp_path: Path, properties: str) -> None:
    body = paragraph(run("It costs "), run("99", properties), run("80"))
    document = only_document(write(tmp_path, "a.docx", docx(body, styles=STYLES)))
    assert (document.text, document.left_out) == ("It costs 80", (f"2 letters of {UNSEEN[properties]}",))


def test_a_run_may_show_what_its_style_hides_and_turn_a_switch_off(tmp_path: Path) -> None:
    style = '<w:pStyle w:val="Gone"/>'
    body = paragraph(run("Hidden."), run("Seen.", '<w:vanish w:val="0"/>'), properties=style) + paragraph(
        run("Kept.", '<w:strike w:val="false"/>')
    )
    document = only_document(write(tmp_path, "a.docx", docx(body, styles=STYLES)))
    assert (document.text, document.left_out) == ("Seen.\nKept.", ("7 letters of hidden text",))


def test_a_row_that_is_deleted_or_hidden_is_left_out(tmp_path: Path) -> None:
    rows = (("<w:del w:id='1'/>", "Cleo"), ("", "Alma"), ("<w:hidden/>", "Berta"), ("<w:hidden w:val='0'/>", "Dora"))
    cells = (f"<w:tr><w:trPr>{kind}</w:trPr><w:tc>{paragraph(run(ship))}</w:tc></w:tr>" for kind, ship in rows)
    document = only_document(write(tmp_path, "a.docx", docx(f"<w:tbl>{''.join(cells)}</w:tbl>")))
    assert document.text.split() == ["Alma", "Dora"]
    assert document.left_out == ("5 letters of hidden text", "4 letters of deleted text of tracked changes")


def test_tracked_changes_are_read_as_accepted(tmp_path: Path) -> None:
    deleted = "<w:del><w:r><w:delText>99</w:delText></w:r></w:del>"
    moved = f"<w:moveFrom>{run('Away.')}</w:moveFrom>"
    body = paragraph(run("It costs "), deleted, f"<w:ins>{run('80.')}</w:ins>", moved)
    document = only_document(write(tmp_path, "a.docx", docx(body)))
    assert (document.text, document.left_out) == ("It costs 80.", ("7 letters of deleted text of tracked changes",))


def numbered(text: str, number: int = 1, level: int = 0) -> str:
    return paragraph(run(text), properties=f'<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="{number}"/></w:numPr>')


def level(place: int, kind: str, text: str, start: int = 1) -> str:
    shown = f'<w:numFmt w:val="{kind}"/><w:lvlText w:val="{text}"/>'
    return f'<w:lvl w:ilvl="{place}"><w:start w:val="{start}"/>{shown}</w:lvl>'


def test_items_have_the_numbers_that_word_gives_them(tmp_path: Path) -> None:
    outline = f"{level(0, 'decimal', '%1.', 4)}{level(1, 'lowerLetter', '%1.%2)')}{level(2, 'bullet', 'o')}"
    numbering = (
        f'<w:abstractNum w:abstractNumId="0">{outline}</w:abstractNum>'
        f'<w:abstractNum w:abstractNumId="1">{level(0, "upperRoman", "Article %1")}</w:abstractNum>'
        '<w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num><w:num w:numId="2"><w:abstractNumId w:val="1"/></w:num>'
        '<w:num w:numId="3"><w:abstractNumId w:val="0"/><w:lvlOverride w:ilvl="0"><w:startOverride w:val="9"/>'
        "</w:lvlOverride></w:num>"
    )
    body = "".join(
        (
            numbered("Close."),
            numbered("Left.", level=1),
            numbered("Right.", level=1),
            numbered("Bell.", level=2),
            numbered("Open."),
            numbered("Left.", level=1),
            numbered("Duty.", 2),
            numbered("Debt.", 2),
            numbered("Last.", 3),
        )
    )
    assert only_document(write(tmp_path, "a.docx", docx(body, numbering=numbering))).text.split("\n") == [
        "4. Close.",
        "4.a) Left.",
        "4.b) Right.",
        "Bell.",
        "5. Open.",
        "5.a) Left.",
        "Article I Duty.",
        "Article II Debt.",
        "9. Last.",
    ]


def test_a_heading_numbered_by_its_style_has_its_number(tmp_path: Path) -> None:
    styles = (
        '<w:style w:type="paragraph" w:styleId="Heading1"><w:name w:val="heading 1"/>'
        '<w:pPr><w:numPr><w:numId w:val="1"/></w:numPr></w:pPr></w:style>'
    )
    numbering = (
        f'<w:abstractNum w:abstractNumId="0">{level(0, "decimal", "%1")}</w:abstractNum>'
        '<w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num>'
    )
    body = paragraph(run("Scope"), properties='<w:pStyle w:val="Heading1"/>') + paragraph(run("All ships."))
    document = only_document(write(tmp_path, "a.docx", docx(body, numbering=numbering, styles=styles)))
    assert (document.text, [each.text for each in document.headings]) == ("1 Scope\nAll ships.", ["1 Scope"])


def math(inside: str) -> str:
    return f"<m:oMath>{inside}</m:oMath>"


def r(text: str) -> str:
    return f"<m:r><m:t>{text}</m:t></m:r>"


@pytest.mark.parametrize(
    ("inside", "text"),
    [
        (f"{r('a')}<m:sSup><m:e>{r('b')}</m:e><m:sup>{r('2')}</m:sup></m:sSup>", "a b^2"),
        (f"<m:f><m:num>{r('a+b')}</m:num><m:den>{r('c')}</m:den></m:f>", "(a+b)/c"),
        (f"<m:rad><m:radPr/><m:deg/><m:e>{r('x+1')}</m:e></m:rad>", "√(x+1)"),
        (f"<m:rad><m:deg>{r('3')}</m:deg><m:e>{r('x')}</m:e></m:rad>", "√[3]x"),
        (f"<m:sSubSup><m:e>{r('x')}</m:e><m:sub>{r('i')}</m:sub><m:sup>{r('n-1')}</m:sup></m:sSubSup>", "x_i^(n-1)"),
        (
            f'<m:nary><m:naryPr><m:chr m:val="∑"/></m:naryPr><m:sub>{r("i=1")}</m:sub>'
            f"<m:sup>{r('n')}</m:sup><m:e>{r('i')}</m:e>"
            "</m:nary>",
            "∑_(i=1)^n i",
        ),
        (f"{r('f')}<m:d><m:e>{r('x')}</m:e></m:d>{r('=2')}", "f(x)=2"),
        (
            f"<m:m><m:mr><m:e>{r('1')}</m:e><m:e>{r('0')}</m:e></m:mr><m:mr><m:e>{r('0')}</m:e><m:e>{r('1')}</m:e></m:mr></m:m>",
            "[[1, 0], [0, 1]]",
        ),
        (f"<m:func><m:fName>{r('sin')}</m:fName><m:e>{r('x')}</m:e></m:func>", "sin x"),
    ],
)
def test_an_equation_is_written_on_its_line(tmp_path: Path, inside: str, text: str) -> None:
    body = paragraph(run("It is "), math(inside), run(".")) + paragraph(f"<m:oMathPara>{math(inside)}</m:oMathPara>")
    assert only_document(write(tmp_path, "a.docx", docx(body))).text == f"It is {text}.\n{text}"


def test_ticked_and_not_ticked_boxes_are_told_apart(tmp_path: Path) -> None:
    space = 'xmlns:w14="http://schemas.microsoft.com/office/word/2010/wordml"'
    boxes = [
        f'<w:sdt {space}><w:sdtPr><w14:checkbox><w14:checked w14:val="{value}"/></w14:checkbox></w:sdtPr>'
        f"<w:sdtContent>{run(sign)}</w:sdtContent></w:sdt>"
        for value, sign in (("1", "☒"), ("0", "☐"))
    ]
    legacy = (
        '<w:r><w:fldChar w:fldCharType="begin"><w:ffData><w:checkBox><w:default w:val="0"/><w:checked/></w:checkBox>'
        "</w:ffData></w:fldChar></w:r><w:r><w:instrText> FORMCHECKBOX </w:instrText></w:r>"
        '<w:r><w:fldChar w:fldCharType="end"/></w:r>'
    )
    body = "".join(paragraph(box, run(text)) for box, text in zip([*boxes, legacy], ["Yes", "No", "Old"], strict=True))
    assert only_document(write(tmp_path, "a.docx", docx(body))).text == "[x] Yes\n[ ] No\n[x] Old"


def test_what_is_not_read_is_named(tmp_path: Path) -> None:
    file = docx(paragraph(run("It opened.")), parts={"media/image1.png": "x", "charts/chart1.xml": "<c/>"})
    assert only_document(write(tmp_path, "a.docx", file)).left_out == ("1 picture, not read", "1 chart, not read")
    hidden = only_failure(write(tmp_path / "b", "a.docx", docx(paragraph(run("It opened.", "<w:vanish/>")))))
    assert "10 letters of hidden text" in hidden.reason


def test_entities_and_deep_nesting_cost_their_file_alone(tmp_path: Path) -> None:
    entities = '<!DOCTYPE a [<!ENTITY a "It opened."><!ENTITY b "&a;&a;&a;&a;">]>'
    write(tmp_path, "bomb.docx", packed({"word/document.xml": f"{entities}<a>&b;</a>"}))
    write(tmp_path, "deep.docx", docx("<w:p>" * 200_000 + "</w:p>" * 200_000))
    write(tmp_path, "good.docx", docx(paragraph(run("It opened."))))
    documents, failures = load_all(tmp_path)
    assert [document.id for document in documents] == ["good.docx"]
    assert [failure.item_id for failure in failures] == ["bomb.docx", "deep.docx"]
    assert "entities" in failures[0].reason
