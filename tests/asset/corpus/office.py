"""Writes office files for the tests of their readers, as little as the programs open."""

import io
import zipfile
from collections.abc import Mapping

_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_SHEET = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_MATH = "http://schemas.openxmlformats.org/officeDocument/2006/math"


def packed(parts: Mapping[str, str]) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
    return data.getvalue()


def relations(**targets: str) -> str:
    """Relations of an id and a target each; the id up to its first digit is the kind."""
    kinds = {name: name.rstrip("0123456789") for name in targets}
    listed = "".join(
        f'<Relationship Id="{name}" Type="{_OFFICE}/{kinds[name]}" Target="{target}"/>'
        for name, target in targets.items()
    )
    return f'<Relationships xmlns="{_PACKAGE}/relationships">{listed}</Relationships>'


def xlsx(
    *sheets: str,
    states: tuple[str, ...] = (),
    strings: tuple[str, ...] = (),
    formats: tuple[str, ...] = (),
    book: str = "",
    fonts: str = "",
) -> bytes:
    """A workbook of sheets, each the inside of its `worksheet`; the style N shows numbers by the Nth of `formats`, and
    has the Nth of `fonts`."""
    listed = "".join(
        f'<sheet name="S{number}" sheetId="{number}" r:id="worksheet{number}"'
        + (f' state="{states[number - 1]}"' if number <= len(states) else "")
        + "/>"
        for number in range(1, len(sheets) + 1)
    )
    targets = {f"worksheet{number}": f"worksheets/s{number}.xml" for number in range(1, len(sheets) + 1)}
    codes = "".join(f"<numFmt numFmtId='{200 + place}' formatCode='{code}'/>" for place, code in enumerate(formats))
    cells = "".join(f'<xf numFmtId="{200 + place}" fontId="{place}"/>' for place in range(len(formats)))
    parts = {
        "_rels/.rels": relations(officeDocument="xl/workbook.xml"),
        "xl/workbook.xml": f'<workbook xmlns="{_SHEET}" xmlns:r="{_OFFICE}">{book}<sheets>{listed}</sheets></workbook>',
        "xl/_rels/workbook.xml.rels": relations(**targets, sharedStrings="sharedStrings.xml", styles="styles.xml"),
        "xl/sharedStrings.xml": f'<sst xmlns="{_SHEET}">{"".join(f"<si>{each}</si>" for each in strings)}</sst>',
        "xl/styles.xml": f'<styleSheet xmlns="{_SHEET}"><numFmts>{codes}</numFmts><fonts>{fonts}</fonts>'
        f"<cellXfs>{cells}</cellXfs></styleSheet>",
    }
    for number, sheet in enumerate(sheets, start=1):
        parts[f"xl/worksheets/s{number}.xml"] = f'<worksheet xmlns="{_SHEET}">{sheet}</worksheet>'
    return packed(parts)


def row(number: int, *cells: str, attributes: str = "") -> str:
    """A row of cells from column A; a text, or the inside of a `c` if it begins with "<"."""
    written = (
        cell if cell.startswith("<") else f'<c t="inlineStr"><is><t>{cell}</t></is></c>' if cell else "<c/>"
        for cell in cells
    )
    return f'<row r="{number}" {attributes}>{"".join(written)}</row>'


def docx(
    body: str, *, numbering: str = "", styles: str = "", parts: Mapping[str, str] | None = None, **targets: str
) -> bytes:
    """A text of Word with this body. `targets` are relations to further `parts`, such as header1="header1.xml"."""
    main = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
    rels = "application/vnd.openxmlformats-package.relationships+xml"
    spaces = f'xmlns:w="{_WORD}" xmlns:r="{_OFFICE}" xmlns:m="{_MATH}"'
    files = {
        "[Content_Types].xml": f'<Types xmlns="{_PACKAGE}/content-types"><Default Extension="xml" ContentType='
        f'"application/xml"/><Default Extension="rels" ContentType="{rels}"/>'
        f'<Override PartName="/word/document.xml" ContentType="{main}"/></Types>',
        "_rels/.rels": relations(officeDocument="word/document.xml"),
        "word/document.xml": f"<w:document {spaces}><w:body>{body}</w:body></w:document>",
        "word/_rels/document.xml.rels": relations(numbering="numbering.xml", styles="styles.xml", **targets),
        "word/numbering.xml": f"<w:numbering {spaces}>{numbering}</w:numbering>",
        "word/styles.xml": f"<w:styles {spaces}>{styles}</w:styles>",
    }
    for name, text in (parts or {}).items():
        files[f"word/{name}"] = text.replace("<w:hdr>", f"<w:hdr {spaces}>").replace("<w:ftr>", f"<w:ftr {spaces}>")
    return packed(files)


def run(text: str, properties: str = "") -> str:
    return f'<w:r><w:rPr>{properties}</w:rPr><w:t xml:space="preserve">{text}</w:t></w:r>'


def paragraph(*runs: str, properties: str = "") -> str:
    return f"<w:p><w:pPr>{properties}</w:pPr>{''.join(runs)}</w:p>"
