"""Reads sheets as they are shown: without what is hidden, and whatever their size pretends to be."""

from pathlib import Path

import pytest

from kraq_dspy.asset.corpus.formats.number_formats import shown
from tests.asset.corpus.corpora import load_all, only_document, only_failure, write
from tests.asset.corpus.office import packed, row, xlsx


def sheet(*rows: str, before: str = "", after: str = "") -> str:
    return f"{before}<sheetData>{''.join(rows)}</sheetData>{after}"


SHIPS = (row(1, "Ship", "Fare"), row(2, "Alma", "<c><v>80</v></c>"), row(3, "Berta", "<c><v>60</v></c>"))


@pytest.mark.parametrize("far", ["XFD1048576", "CV1048576", "XFD1", "A1048576"])
def test_a_far_cell_is_one_cell(tmp_path: Path, far: str) -> None:
    number = int(far.lstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZ"))
    cell = f'<c r="{far}" t="inlineStr"><is><t>x</t></is></c>'
    rows = [row(1, "Ship", "Fare", cell), *SHIPS[1:]] if number == 1 else [*SHIPS, f'<row r="{number}">{cell}</row>']
    document = only_document(write(tmp_path, "fares.xlsx", xlsx(sheet(*rows))))
    assert "Alma" in document.text
    assert document.text.count("\n") < 6
    assert len(document.text) < 100


def test_what_is_hidden_is_left_out_and_counted(tmp_path: Path) -> None:
    rows = (
        row(1, "Ship", "Cost", "Fare"),
        row(2, "Alma", "11", "80"),
        row(3, "Cleo", "12", "99", attributes='hidden="1"'),
        row(4, "Dora", "13", "70", attributes='ht="0" customHeight="1"'),
    )
    columns = '<cols><col min="2" max="2" hidden="1"/><col min="4" max="16384" hidden="1"/></cols>'
    states = ("visible", "hidden", "veryHidden")
    file = xlsx(sheet(*rows, before=columns), sheet(row(1, "Old 45")), sheet(row(1, "Older 46")), states=states)
    document = only_document(write(tmp_path, "a.xlsx", file))
    assert document.text == "S1\nShip\tFare\nAlma\t80" or document.text == "S1\nShip: Alma; Fare: 80"
    assert document.left_out == (
        "2 hidden rows of sheet 'S1'",
        "1 hidden column of sheet 'S1'",
        "sheet 'S2', which is hidden",
        "sheet 'S3', which is hidden",
    )


def test_what_is_struck_out_is_left_out_and_counted(tmp_path: Path) -> None:
    struck = "<rPr><strike/></rPr>"
    rows = (
        row(1, "Ship", "Fare"),
        row(2, "Alma", f"<c t='inlineStr'><is><r>{struck}<t>45</t></r><r><t>60</t></r></is></c>"),
        row(3, "Berta", "<c t='s'><v>0</v></c>"),
        row(4, "<c s='1' t='inlineStr'><is><t>Cleo</t></is></c>", "<c s='1'><v>99</v></c>"),
        row(5, "Dora", "<c s='0'><v>70</v></c>"),
    )
    strings = (f"<r><t>50</t></r><r>{struck}<t> or 51</t></r><r><rPr><strike val='0'/></rPr><t> crowns</t></r>",)
    fonts = "<font/><font><strike/></font>"
    file = xlsx(sheet(*rows), strings=strings, formats=("General", "General"), fonts=fonts)
    document = only_document(write(tmp_path, "a.xlsx", file))
    assert document.text == "S1\nShip: Alma; Fare: 60\nShip: Berta; Fare: 50 crowns\nShip: Dora; Fare: 70"
    assert document.left_out == ("14 letters of text struck out of sheet 'S1'",)


def test_a_name_for_several_columns_is_told_apart_by_the_row_below_it(tmp_path: Path) -> None:
    rows = (
        row(1, "Ship", "Fares", ""),
        row(2, "", "Adult", "Child"),
        row(3, "Alma", "80", "40"),
        row(4, "Berta", "60"),
    )
    merged = '<mergeCells><mergeCell ref="A1:A2"/><mergeCell ref="B1:C1"/></mergeCells>'
    document = only_document(write(tmp_path, "a.xlsx", xlsx(sheet(*rows, after=merged))))
    assert document.text == "S1\nShip: Alma; Fares Adult: 80; Fares Child: 40\nShip: Berta; Fares Adult: 60"


def test_a_row_below_a_wide_title_is_no_second_header(tmp_path: Path) -> None:
    rows = (row(1, "Fares", ""), row(2, "Ship", "Port"), row(3, "Alma", "Tarnvik"), row(4, "Berta", "Skarv"))
    merged = '<mergeCells><mergeCell ref="A1:B1"/></mergeCells>'
    document = only_document(write(tmp_path, "a.xlsx", xlsx(sheet(*rows, after=merged))))
    assert document.text == "S1\nFares\nShip: Alma; Port: Tarnvik\nShip: Berta; Port: Skarv"


def test_a_file_that_hides_all_says_so(tmp_path: Path) -> None:
    failure = only_failure(write(tmp_path, "a.xlsx", xlsx(sheet(*SHIPS), states=("hidden",))))
    assert "sheet 'S1', which is hidden" in failure.reason


def test_a_formula_without_a_kept_value_is_read_as_itself(tmp_path: Path) -> None:
    rows = (row(1, "Item", "Sum"), row(2, "Rope", "<c><f>B2*C2</f></c>"), row(3, "Bell", "<c><f>1+1</f><v>2</v></c>"))
    document = only_document(write(tmp_path, "a.xlsx", xlsx(sheet(*rows))))
    assert document.text == "S1\nItem: Rope; Sum: =B2*C2\nItem: Bell; Sum: 2"
    assert document.left_out == ("values of 1 formula of sheet 'S1', which the file does not keep",)


def test_a_merged_cell_stands_in_each_of_its_rows_and_names_each_of_its_columns(tmp_path: Path) -> None:
    rows = (row(1, "Fares 2024"), row(2, "Port", "Crew", ""), row(3, "Tarnvik", "Alma", "5"), row(4, "", "Berta", "6"))
    merged = '<mergeCells><mergeCell ref="A1:C1"/><mergeCell ref="B2:C2"/><mergeCell ref="A3:A1048576"/></mergeCells>'
    document = only_document(write(tmp_path, "a.xlsx", xlsx(sheet(*rows, after=merged))))
    assert document.text == ("S1\nFares 2024\nPort: Tarnvik; Crew: Alma; Crew: 5\nPort: Tarnvik; Crew: Berta; Crew: 6")


def test_strings_are_shared_escaped_and_without_readings(tmp_path: Path) -> None:
    strings = ("<t>Alma</t>", "<r><t>Ber</t></r><r><t>ta</t></r><rPh><t>BERUTA</t></rPh>", "<t>a_x000D_b</t>")
    cells = ["<c t='s'><v>0</v></c>", "<c t='s'><v>1</v></c>", "<c t='s'><v>2</v></c>", "<c t='b'><v>1</v></c>"]
    document = only_document(write(tmp_path, "a.xlsx", xlsx(sheet(row(1, *cells)), strings=strings)))
    assert document.text == "S1\nAlma\tBerta\ta b\tTRUE"


def test_numbers_are_read_by_their_formats(tmp_path: Path) -> None:
    formats = ("General", "0.0%", "[h]:mm:ss", "d. mmmm yyyy")
    values = ("0.30000000000000004", "0.125", "1.0833333333333333", "45356")
    cells = [f'<c s="{style}"><v>{value}</v></c>' for style, value in enumerate(values)]
    document = only_document(write(tmp_path, "a.xlsx", xlsx(sheet(row(1, *cells)), formats=formats)))
    assert document.text == "S1\n0.3\t12.5%\t26:00\t2024-03-05"


def test_raised_and_lowered_letters_of_a_cell_stand_on_the_line(tmp_path: Path) -> None:
    up, down = (f"<rPr><vertAlign val='{each}script'/></rPr>" for each in ("super", "sub"))
    power = f"<c t='inlineStr'><is><r><t>holds 10</t></r><r>{up}<t>3</t></r><r><t> litres</t></r></is></c>"
    formula = f"<c t='inlineStr'><is><r><t>CO</t></r><r>{down}<t>2</t></r></is></c>"
    file = xlsx(sheet(row(1, power, formula)))
    assert only_document(write(tmp_path, "a.xlsx", file)).text == "S1\nholds 10^3 litres\tCO2"


def test_days_count_from_1904_where_the_workbook_says_so(tmp_path: Path) -> None:
    file = xlsx(sheet(row(1, '<c s="0"><v>1</v></c>')), formats=("yyyy-mm-dd",), book='<workbookPr date1904="1"/>')
    assert only_document(write(tmp_path, "a.xlsx", file)).text == "S1\n1904-01-02"


@pytest.mark.parametrize(
    ("value", "code", "text"),
    [
        (0.125, "0%", "13%"),
        (0.5, "0.00%", "50.00%"),
        (1234567.891, "#,##0.00", "1,234,567.89"),
        (5, "000", "005"),
        (-5, "0.0", "-5.0"),
        (-5, "0;(0)", "-5"),
        (0, '0;-0;"none"', "0"),
        (5, ";;;", ""),
        (1500000, "0.0,,", "1.5"),
        (80, '0" kr"', "80 kr"),
        (80, "[$€-407] 0.00", "€ 80.00"),
        (80, "_-* #,##0_-", "80"),
        (1234.5, "0.00E+00", "1.23E+03"),
        (0.5, "h:mm", "12:00"),
        (0.75, "h:mm AM/PM", "18:00"),
        (0.0005, "mm:ss.0", "00:00:43"),
        (1.5, "[mm]:ss", "36:00"),
        (45356.5, "yyyy-mm-dd hh:mm", "2024-03-05 12:00"),
        (45356, "dd/mm/yy", "2024-03-05"),
        (45356, "ddd d-mmm", "2024-03-05"),
        (45356, "mmm-yy", "2024-03"),
        (45356, "yyyy", "2024"),
        (45356.5, "d mmm hh:mm", "2024-03-05 12:00"),
        (1, "yyyy-mm-dd", "1900-01-01"),
        (61, "yyyy-mm-dd", "1900-03-01"),
        (1.5, "# ?/?", "1.5"),
        (-0.5, "# ?/?;(# ?/?)", "-0.5"),
        (-1234.5, "$#,##0.00", "-$1,234.50"),
        (45000.5, "d/m/yyyy", "2023-03-15"),
        (3.0, "General", "3"),
        (1e300, "yyyy", "1e+300"),
        (12, "[<10]0.0;0", "12.0"),
        (2, "[Red]0.0", "2.0"),
        (0.001, "0.0", "0.0"),
        (-0.001, "0.0", "0.0"),
        (0.5, "#.##", "0.5"),
        (7, "0.##", "7"),
        (2.5, "0", "3"),
        (80, '"a;b" 0', "a;b 80"),
    ],
)
def test_a_number_format(value: float, code: str, text: str) -> None:
    assert shown(value, code) == text


NAMES = " ".join(
    f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"' for name in ("office", "table", "text", "style")
)


def ods(tables: str, styles: str = "") -> bytes:
    content = f"<office:automatic-styles>{styles}</office:automatic-styles><office:body><office:spreadsheet>{tables}"
    whole = f"<office:document-content {NAMES}>{content}</office:spreadsheet></office:body></office:document-content>"
    return packed({"mimetype": "application/vnd.oasis.opendocument.spreadsheet", "content.xml": whole})


def cell(text: str, attributes: str = "") -> str:
    return f"<table:table-cell {attributes}><text:p>{text}</text:p></table:table-cell>"


@pytest.mark.parametrize(
    ("beside", "text"),
    [("", "Fares\nPort: Tarnvik; Crew: Alma; Crew: 5"), ("full", "Fares\nPort\tCrew\nTarnvik\tAlma\t5\tfull")],
)
def test_a_merged_cell_of_an_open_sheet_names_each_of_its_columns_and_no_other(
    tmp_path: Path, beside: str, text: str
) -> None:
    names = cell("Port") + cell("Crew", 'table:number-columns-spanned="2"') + "<table:covered-table-cell/>"
    values = cell("Tarnvik") + cell("Alma") + cell("5") + (cell(beside) if beside else "")
    rows = f"<table:table-row>{names}</table:table-row><table:table-row>{values}</table:table-row>"
    document = only_document(write(tmp_path, "a.ods", ods(f'<table:table table:name="Fares">{rows}</table:table>')))
    assert document.text == text


def test_an_open_sheet_repeats_hides_and_merges(tmp_path: Path) -> None:
    empty = '<table:table-cell table:number-columns-repeated="16381"/>'
    spanning = 'table:number-rows-spanned="2"'
    rows = (
        f"<table:table-row>{cell('Port')}{cell('Ship')}{cell('Cost')}{empty}</table:table-row>",
        f"<table:table-row>{cell('Tarnvik', spanning)}{cell('Alma')}{cell('7')}</table:table-row>",
        f"<table:table-row><table:covered-table-cell/>{cell('Berta')}{cell('8')}</table:table-row>",
        f'<table:table-row table:visibility="collapse">{cell("Oslo")}{cell("Cleo")}{cell("9")}</table:table-row>',
        f'<table:table-row table:number-rows-repeated="1048000">{empty}</table:table-row>',
        f"<table:table-row>{cell('Bergen')}{cell('12.50%')}</table:table-row>",
    )
    columns = '<table:table-column table:number-columns-repeated="2"/><table:table-column table:visibility="collapse"/>'
    hidden = '<style:style style:name="h"><style:table-properties table:display="false"/></style:style>'
    tables = f'<table:table table:name="Fares">{columns}{"".join(rows)}</table:table>'
    row_of_old = f"<table:table-row>{cell('45')}</table:table-row>"
    old = f'<table:table table:name="Old" table:style-name="h">{row_of_old}</table:table>'
    document = only_document(write(tmp_path, "a.ods", ods(tables + old, hidden)))
    assert document.text == ("Fares\nPort: Tarnvik; Ship: Alma\nPort: Tarnvik; Ship: Berta\nPort: Bergen; Ship: 12.50%")
    assert document.left_out == (
        "1 hidden row of sheet 'Fares'",
        "1 hidden column of sheet 'Fares'",
        "sheet 'Old', which is hidden",
    )


def test_an_open_sheet_reads_text_inside_links_and_spans(tmp_path: Path) -> None:
    inside = "The <text:a>ferry <text:span>Alma</text:span></text:a><text:s/>sails."
    rows = f"<table:table-row>{cell('Note')}</table:table-row><table:table-row>{cell(inside)}</table:table-row>"
    document = only_document(write(tmp_path, "a.ods", ods(f'<table:table table:name="a">{rows}</table:table>')))
    assert document.text.endswith("The ferry Alma sails.")


@pytest.mark.parametrize("attributes", ["number-columns-repeated", "number-rows-repeated"])
def test_a_text_repeated_without_end_costs_its_file_alone(tmp_path: Path, attributes: str) -> None:
    inside = cell("The ferry sails.", f'table:{attributes}="9999999999"' if "columns" in attributes else "")
    around = "" if "columns" in attributes else f'table:{attributes}="9999999999"'
    table = f'<table:table table:name="a"><table:table-row {around}>{inside}</table:table-row></table:table>'
    write(tmp_path, "a.ods", ods(table))
    write(tmp_path, "b.txt", "goes on")
    documents, failures = load_all(tmp_path)
    assert [document.id for document in documents] == ["b.txt"]
    assert "max_bytes" in failures[0].reason


def test_a_shared_text_that_a_million_cells_repeat_costs_its_file_alone(tmp_path: Path) -> None:
    cells = row(1, *["<c t='s'><v>0</v></c>"] * 3000)
    failure = only_failure(
        write(tmp_path, "a.xlsx", xlsx(sheet(cells), strings=(f"<t>{'a' * 30_000}</t>",))), max_unpacked=10_000
    )
    assert "max_bytes" in failure.reason


def test_a_sheet_that_kraq_does_not_read_says_what_to_do(tmp_path: Path) -> None:
    assert "xlsx" in only_failure(write(tmp_path, "a.xlsb", packed({"xl/workbook.bin": "x"}))).reason
    protected = bytes.fromhex("d0cf11e0a1b11ae1") + b"\0" * 600 + "EncryptedPackage".encode("utf-16-le")
    assert "password" in only_failure(write(tmp_path / "b", "a.xlsx", protected)).reason
