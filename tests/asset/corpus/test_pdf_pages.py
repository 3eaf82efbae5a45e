"""Tests that the text of a PDF page keeps raised digits, rows of tables, and what was typed into its fields."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pypdf
import pytest
from pypdf.generic import ArrayObject, DictionaryObject, FloatObject, NameObject, NumberObject, TextStringObject as Text

from tests.asset.corpus.corpora import drawn_pdf, only_document


def text_of(tmp_path: Path, writer: pypdf.PdfWriter) -> str:
    writer.write(tmp_path / "a.pdf")
    return only_document(tmp_path).text


RISEN = "BT /F1 11 Tf 60 700 Td (in 1987) Tj /F1 7 Tf 4 Ts (3) Tj 0 Ts /F1 11 Tf ( it held 10) Tj /F1 7 Tf 4 Ts (6) Tj \
0 Ts /F1 11 Tf ( litres of CO) Tj /F1 7 Tf -2 Ts (2) Tj 0 Ts /F1 11 Tf (.) Tj ET"
MOVED = "BT /F1 11 Tf 60 700 Td (in 1987) Tj /F1 7 Tf 36.7 4 Td (3) Tj ET \
BT /F1 11 Tf 100.8 700 Td ( it held 10) Tj ET BT /F1 7 Tf 151 704 Td (6) Tj ET BT /F1 11 Tf 158 700 Td (litres.) Tj ET"
SCALED = "BT /F1 1 Tf 11 0 0 11 60 700 Tm (in 1987) Tj 7 0 0 7 96.8 704 Tm (3) Tj 11 0 0 11 102 700 Tm ( and) Tj ET"
NOTE = "BT /F1 6 Tf 60 100 Td (1) Tj ET BT /F1 9 Tf 64 97 Td (See the report.) Tj ET"


@pytest.mark.parametrize(
    ("drawn", "read"),
    [
        (RISEN, "in 1987 [3] it held 10^6 litres of CO2."),
        (MOVED, "in 1987 [3] it held 10^6 litres."),
        (SCALED, "in 1987 [3] and"),
        (NOTE, "[1] See the report."),
        ("BT /F1 11 Tf 60 700 Td (One line,) Tj 0 -13 Td (and another.) Tj ET", "One line,\nand another."),
        ("BT /F1 11 Tf 0 1 -1 0 300 100 Tm (Turned by 90.) Tj ET", "Turned by 90."),
    ],
)
def test_what_is_raised_or_lowered_is_not_glued_to_its_neighbours(tmp_path: Path, drawn: str, read: str) -> None:
    assert text_of(tmp_path, drawn_pdf(drawn)) == read


def row_by_row(rows: Sequence[Sequence[str]], starts: Sequence[int]) -> str:
    """Operators that draw each row from left to right, one below the other."""
    lines = []
    for number, row in enumerate(rows):
        for text, start in zip(row, starts, strict=False):
            if text:
                lines.append(f"BT /F1 11 Tf {start} {700 - 14 * number} Td ({text}) Tj ET")
    return "\n".join(lines)


@pytest.mark.parametrize(
    "rows",
    [
        [("Ship", "Built"), ("Alma", "1962"), ("Brita", "1971"), ("Cora", "1980")],
        [("The ship Alma was built in", "1962"), ("The ship Brita was built in", "1971"), ("The ship Cora in", "1980")],
        [
            ("Where does the ferry sail?", "It sails to the island each day."),
            ("What does a ticket cost?", "It costs twelve crowns or less."),
            ("When is the museum closed?", "It is closed on every Monday."),
        ],
    ],
)
def test_rows_of_a_table_stay_rows(tmp_path: Path, rows: list[tuple[str, str]]) -> None:
    assert text_of(tmp_path, drawn_pdf(row_by_row(rows, [60, 330]))) == "\n".join(map(" ".join, rows))


def field(**values: Any) -> DictionaryObject:
    entries = {"Type": NameObject("/Annot"), "Subtype": NameObject("/Widget"), **values}
    rectangle = ArrayObject(map(FloatObject, (60, 600, 200, 620)))
    return DictionaryObject({NameObject(f"/{name}"): value for name, value in {**entries, "Rect": rectangle}.items()})


def form(body: str, *fields: DictionaryObject) -> pypdf.PdfWriter:
    """A page with fields, each of which but the last may be the parent of those behind it."""
    writer = drawn_pdf(f"BT /F1 11 Tf 60 700 Td ({body}) Tj ET")
    references = [writer._add_object(each) for each in fields]
    for number, (parent, kid) in enumerate(pairwise(fields)):
        kid[NameObject("/Parent")] = references[number]
        parent[NameObject("/Kids")] = ArrayObject([references[number + 1]])
    writer.pages[0][NameObject("/Annots")] = ArrayObject([references[-1]])
    roots = {NameObject("/Fields"): ArrayObject([references[0]]), NameObject("/DA"): Text("/Helv 11 Tf 0 g")}
    writer.root_object[NameObject("/AcroForm")] = writer._add_object(DictionaryObject(roots))
    return writer


TEXT, BUTTON, CHOICE, FIRST = NameObject("/Tx"), NameObject("/Btn"), NameObject("/Ch"), NameObject("/First")
SHOWN = DictionaryObject({NameObject("/N"): DictionaryObject({FIRST: DictionaryObject()})})


@pytest.mark.parametrize(
    ("typed", "read"),
    [
        (field(FT=TEXT, T=Text("Owner"), V=Text("Jonas Berg")), "Owner: Jonas Berg"),
        (field(FT=TEXT, T=Text("f1[0]"), TU=Text("Price"), V=Text("12")), "Price: 12"),
        (field(FT=CHOICE, T=Text("Port"), V=Text("Tarnvik")), "Port: Tarnvik"),
        (field(FT=BUTTON, T=Text("Insured"), V=NameObject("/Yes"), AS=NameObject("/Yes")), "Insured: yes"),
        (field(FT=BUTTON, T=Text("Class"), V=FIRST, AS=FIRST, AP=SHOWN), "Class: First"),
        (field(Subtype=NameObject("/FreeText"), Contents=Text("Paid in May.")), "Paid in May."),
        (field(FT=BUTTON, T=Text("Insured"), V=NameObject("/Off"), AS=NameObject("/Off")), ""),
        (field(FT=TEXT, T=Text("Empty"), V=Text(" ")), ""),
        (field(FT=TEXT, T=Text("Code"), V=Text("99"), Ff=NumberObject(1 << 13)), ""),
        (field(FT=TEXT, T=Text("Hidden"), V=Text("99"), F=NumberObject(2)), ""),
    ],
)  # fmt: skip
def test_what_was_typed_into_a_page_stands_below_its_text(tmp_path: Path, typed: DictionaryObject, read: str) -> None:
    assert text_of(tmp_path, form("A form of the harbour.", typed)) == f"A form of the harbour.\n{read}".strip()


def test_a_value_that_fields_share_has_the_name_of_their_parent(tmp_path: Path) -> None:
    writer = form("A form.", field(FT=TEXT, T=Text("Owner"), V=Text("Jonas Berg")), field())
    assert text_of(tmp_path, writer) == "A form.\nOwner: Jonas Berg"
