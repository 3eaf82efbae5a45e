"""Tests that a web page's text stays true: its notes, tables and lists are read, and hidden text is not."""

from collections.abc import Callable

import pytest

from kraq_dspy.asset.corpus.formats.html import page_row
from tests.growth import require_linear


def text_of(body: str) -> str:
    row = page_row(f"<html><head><title>Harbour</title></head><body>{body}</body></html>", "harbour")
    return row.text if row else ""


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("founded in 1987<sup>3</sup> and", "founded in 1987 [3] and"),
        ("in 2004<sup><a href='#n'>12</a></sup>, ships", "in 2004 [12], ships"),
        ("in 2004<a href='#n'><sup>12</sup></a>, ships", "in 2004 [12], ships"),
        ("class 4<sup>[2]</sup>.", "class 4 [2]."),
        ("a harbour.<sup>2</sup> It grew", "a harbour. [2] It grew"),
        ("310<sup>a</sup> ships", "310 [a] ships"),
        ("holds 10<sup>6</sup> litres", "holds 10^6 litres"),
        ("2 × 3<sup>4</sup>", "2 × 3^4"),
        ("10<sup>−6</sup> m", "10^−6 m"),
        ("25 m<sup>2</sup>", "25 m^2"),
        ("x<sup>2</sup> + y<sup>n+1</sup>", "x^2 + y^(n+1)"),
        ("(a + b)<sup>2</sup>", "(a + b)^2"),
        ("the 1<sup>st</sup> and 2<sup>nd</sup>", "the 1st and 2nd"),
        ("le 19<sup>e</sup> siècle, M<sup>me</sup> Berg", "le 19e siècle, Mme Berg"),
        ("at 20<sup>o</sup>C", "at 20°C"),
        ("Na<sup>+</sup> and Ca<sup>2+</sup>", "Na+ and Ca^2+"),
        ("the isotope <sup>14</sup>C", "the isotope 14C"),
        ("<sup>1</sup>See the report.", "[1] See the report."),
        ("1<sup>3</sup>/<sub>4</sub> tons", "1 3/4 tons"),
        ("COVID-19<sup>3</sup>", "COVID-19 [3]"),
        ("Alma<sup>TM</sup>", "Alma™"),
        ("a claim<sup>citation needed</sup> here", "a claim citation needed here"),
        ("CO<sub>2</sub>, C<sub>6</sub>H<sub>12</sub>", "CO2, C6H12"),
        ("SO<sub>4</sub><sup>2−</sup>", "SO4^2−"),
        ("log<sub>2</sub>8", "log2 8"),
        ("101<sub>2</sub>", "101_2"),
        ("1987<span style='vertical-align: super'>3</span>", "1987 [3]"),
        ("<math><msup><mn>10</mn><mn>6</mn></msup></math> litres", "10^6 litres"),
        ("<math><mfrac><mn>1</mn><mn>2</mn></mfrac></math> ton", "1/2 ton"),
        ("<math><msubsup><mi>x</mi><mn>1</mn><mn>2</mn></msubsup></math>", "x_1^2"),
        ("<ruby>東<rt>とう</rt>京<rt>きょう</rt></ruby>は", "東京(とうきょう)は"),
        ("<ruby>港<rp>(</rp><rt>minato<rp>)</rp></ruby>", "港(minato)"),
        ("she said <q>no</q>", "she said “no”"),
    ],
)
def test_what_is_raised_or_lowered_is_not_glued_to_its_neighbours(written: str, read: str) -> None:
    assert text_of(f"<p>{written}</p>") == read


@pytest.mark.parametrize(
    "unseen",
    [
        "<p hidden>99</p>",
        "<p hidden=hidden>99",
        "<p style='display:none'>99",
        "<div style='color: red; DISPLAY : none !important'><p>99</p></div>",
        "<p style='visibility:hidden'>99</p>",
        "<p style='position:absolute; left:-9999px'>99</p>",
        "<p><del>99</del></p>",
        "<p><s>99</s> <strike>98</strike></p>",
        "<p><span style='text-decoration: line-through'>99</span></p>",
        "<dialog>99</dialog>",
        "<template><p>99</p></template>",
        "<div class='modal' aria-hidden='true'>99</div>",
        "<span class='sr-only'>99</span>",
        "<div role='navigation'>Chapter 99</div>",
        "<div class='navfooter'><table><tr><td>The FAQ</td><td>Chapter 99. Tickets</td></tr></table></div>",
        "<p class='big visually-hidden'>99</p>",
        "<a class='screen-reader-text' href='#main'>99</a>",
        "<span aria-hidden='true'>★★★</span>",
        "<i class='material-icons' aria-hidden='true'>arrow_99</i>",
        "<select><option>99</select>",
        "<datalist><option>99</option></datalist>",
        "<canvas>99</canvas>",
    ],
)
def test_what_nobody_sees_is_left_out(unseen: str) -> None:
    assert text_of(f"{unseen}<p>The ferry costs 12 crowns.</p>") == "The ferry costs 12 crowns."


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("<p>It costs <del>99</del><ins>12</ins> crowns.</p>", "It costs 12 crowns."),
        ("<details><summary>Price</summary>12 crowns</details>", "Price\n12 crowns"),
        ("<dialog open>12</dialog>", "12"),
        ("<p hidden=until-found>12</p>", "12"),
        ("<span class=a-offscreen>$12.99</span><span aria-hidden=true>$12<b>.99</b></span>", "$12.99"),
        ("<p class='sr-only not-sr-only'>12</p>", "12"),
    ],
)
def test_what_somebody_sees_is_kept(written: str, read: str) -> None:
    assert text_of(written) == read


def rows(table: str) -> list[list[str]]:
    return [line.split("\t") for line in text_of(f"<table>{table}</table>").split("\n")]


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        (
            "<tr><th>Ship<th>Built<th>Owner<tr><td>Alma<td><td>Berg<tr><td>Cora<td>1971<td>",
            [["Ship", "Built", "Owner"], ["Alma", "", "Berg"], ["Cora", "1971"]],
        ),
        (
            "<tr><td></td><th>2001</th><th>2002</th></tr><tr><th>Tarnvik</th><td>&nbsp;</td><td>9</td></tr>",
            [["", "2001", "2002"], ["Tarnvik", "", "9"]],
        ),
        (
            "<tr><th rowspan=2>Port</th><th colspan=2>Ships</th></tr><tr><th>2001</th><th>2002</th></tr>"
            "<tr><td rowspan=2>Tarnvik</td><td>12</td><td>15</td></tr><tr><td>7</td><td>9</td></tr>",
            [["Port", "Ships", "Ships"], ["Port", "2001", "2002"], ["Tarnvik", "12", "15"], ["Tarnvik", "7", "9"]],
        ),
        (
            "<tr><td>a<td rowspan=0>b<td>c<tr><td>d<td>e<tr><td>f<td>g",
            [["a", "b", "c"], ["d", "b", "e"], ["f", "b", "g"]],
        ),
        (
            "<tr><th>Port<th>2001<th>2002<tr><td colspan=2>Total<td>27<tr><td colspan=3>As of May",
            [["Port", "2001", "2002"], ["Total", "", "27"], ["As of May"]],
        ),
        (
            "<tr><td><p>Alma</p><p>a ferry</p></td><td><div>12</div></td></tr><tr><td>Brita<td><ul><li>7<li>8</ul>",
            [["Alma a ferry", "12"], ["Brita", "7 8"]],
        ),
        (
            "<thead><tr><th>Ship<th>Built</thead><tbody><tr><td>Alma<td>1962</tbody><tfoot><tr><td>All<td>1</tfoot>",
            [["Ship", "Built"], ["Alma", "1962"], ["All", "1"]],
        ),
        ("<caption>Ships</caption><tr hidden><td>x<td>y<tr><td>Alma<td>12", [["Ships"], ["Alma", "12"]]),
        ("<tr><td hidden>x<td>Alma<td>12", [["Alma", "12"]]),
    ],
)
def test_every_value_of_a_table_stays_in_its_column(table: str, expected: list[list[str]]) -> None:
    assert rows(table) == expected


def test_a_table_that_only_places_things_is_read_block_by_block() -> None:
    page = "<table><tr><td><a href=/>Home</a></td><td><h1>Harbour</h1><p>It opened.</p><p>It grew.</p></td></table>"
    assert text_of(page) == "Home\nHarbour\nIt opened.\nIt grew."
    nested = "<table><tr><td>Menu<td><table><tr><td>Alma<td><td>12<tr><td>Brita<td>1<td>2</table></table>"
    assert text_of(nested) == "Menu\nAlma\t\t12\nBrita\t1\t2"


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("<ol><li>Open.<li>Wait.</ol>", "1. Open.\n2. Wait."),
        ("<ol start=4><li>Open.</li><li><p>Press.</p><p>Twice.</p></li></ol>", "4. Open.\n5. Press.\nTwice."),
        ("<ol><li value=7>Open.<li>Wait.</ol>", "7. Open.\n8. Wait."),
        ("<ol reversed><li>Third.<li>Second.<li>First.</ol>", "Third.\nSecond.\nFirst."),
        ("<ol reversed start=10><li>Ten.<li>Nine.</ol>", "10. Ten.\n9. Nine."),
        ("<ol type=a><li>Open.<li>Wait.</ol>", "a. Open.\nb. Wait."),
        ("<ol type=I start=4><li>Open.<li>Wait.</ol>", "IV. Open.\nV. Wait."),
        ("<ol><li>Open.<ul><li>Slowly.</ul><li>Wait.</ol>", "1. Open.\nSlowly.\n2. Wait."),
        ("<ol><li>Open.<ol><li>Slowly.</ol></li><li>Wait.</ol>", "1. Open.\n1. Slowly.\n2. Wait."),
        ("<ol><li hidden>Never.<li>Open.<li></li><li>Wait.</ol>", "1. Open.\n3. Wait."),
        ("<ol style='list-style: none'><li>Home</ol>", "Home"),
    ],
)
def test_items_of_an_ordered_list_have_their_numbers(written: str, read: str) -> None:
    assert text_of(written) == read


@pytest.mark.parametrize(
    ("page", "size"),
    [
        pytest.param(lambda n: "<table><tr><td>" * n, 4_000, id="tables in tables"),
        pytest.param(lambda n: "<table>" + "<tr><th colspan=999 rowspan=999>a<th colspan=999>b" * n, 600, id="spans"),
        pytest.param(lambda n: "<table><tr>" + "<td rowspan=0>a" * n + "<tr><td>b" * n, 750, id="rowspan=0"),
        pytest.param(lambda n: "<ol><li>" * n, 5_000, id="<ol><li>"),
        pytest.param(lambda n: "<ol reversed>" + "<li>a" * n, 10_000, id="<ol reversed>"),
        pytest.param(lambda n: "<sup>" * n + "a" + "</sup>" * n, 15_000, id="<sup>"),
        pytest.param(lambda n: "<sup>1</sup>" * n, 10_000, id="<sup>1</sup>"),
        pytest.param(lambda n: "<ruby><rt>a" * n, 6_000, id="<ruby><rt>"),
        pytest.param(lambda n: "<li>" + "<div>" * n + "<dt></dt>" * n, 6_000, id="<dt>"),
        pytest.param(lambda n: "<style>" + "a" * n + "</style>", 500_000, id="a style"),
        pytest.param(lambda n: "<p style='" + "display:" * n + "'>", 15_000, id="display:"),
        pytest.param(lambda n: "<span aria-hidden=true>" * n + "*" + "</span>" * n, 10_000, id="aria-hidden"),
    ],
)
def test_no_page_takes_time_that_grows_with_the_square_of_its_length(page: Callable[[int], str], size: int) -> None:
    require_linear(text_of, lambda n: page(n) + "<p>end", size)
