"""Reads slides as they are shown, from top to bottom."""

from pathlib import Path
from typing import Any

import pytest

from tests.asset.corpus.corpora import only_document, only_failure

pptx = pytest.importorskip("pptx", reason="needs python-pptx: pip install 'kraq-dspy[formats]'")


def new_deck() -> tuple[Any, Any]:
    """A deck with one slide that has a title."""
    deck = pptx.Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[5])
    slide.shapes.title.text = "Fares"
    return deck, slide


def add(shapes: Any, text: str, left: float, top: float, height: float = 0.4) -> Any:
    box = shapes.add_textbox(*(pptx.util.Inches(each) for each in (left, top, 2, height)))
    box.text_frame.text = text
    return box


def test_boxes_are_read_from_top_to_bottom_and_from_left_to_right(tmp_path: Path) -> None:
    deck, slide = new_deck()
    for text, left, top in (("fourth", 1, 5), ("third", 5, 3.1), ("first", 1, 2), ("second", 1, 3)):
        add(slide.shapes, text, left, top)
    deck.save(str(tmp_path / "a.pptx"))
    assert only_document(tmp_path).text == "Fares\nfirst\nsecond\nthird\nfourth"


def test_boxes_of_a_group_stand_where_the_group_stands(tmp_path: Path) -> None:
    deck, slide = new_deck()
    group = slide.shapes.add_group_shape()
    add(group.shapes, "low", 1, 1)
    group.top = pptx.util.Inches(6)
    add(slide.shapes, "high", 1, 3)
    deck.save(str(tmp_path / "a.pptx"))
    assert only_document(tmp_path).text == "Fares\nhigh\nlow"


def test_hidden_slides_and_shapes_and_struck_text_are_left_out_and_counted(tmp_path: Path) -> None:
    deck, slide = new_deck()
    add(slide.shapes, "secret", 1, 3)._element.xpath("./*/p:cNvPr")[0].set("hidden", "1")
    paragraph = add(slide.shapes, "80", 1, 4).text_frame.paragraphs[0]
    struck = paragraph.add_run()
    struck.text = "99"
    struck.font._element.set("strike", "dblStrike")
    hidden = deck.slides.add_slide(deck.slide_layouts[5])
    hidden.shapes.title.text = "Old"
    hidden._element.set("show", "0")
    last = deck.slides.add_slide(deck.slide_layouts[5])
    last.shapes.title.text = "New"
    deck.save(str(tmp_path / "a.pptx"))
    document = only_document(tmp_path)
    assert document.text == "Fares\n80\n\f\n\n\f\nNew"
    assert [heading.text for heading in document.headings] == ["Fares", "New"]
    assert document.left_out == ("1 hidden slide", "1 hidden shape", "2 letters of text struck out")
    assert document.metadata == {"pages": 3}


def test_a_chart_has_its_numbers_as_it_shows_them(tmp_path: Path) -> None:
    import pptx.chart.data as charts
    from pptx.enum.chart import XL_CHART_TYPE

    charts_of: Any = charts
    deck, slide = new_deck()
    data: Any = charts_of.CategoryChartData(number_format="0%")
    data.categories = ["2023", "2024"]
    data.add_series("Alma", (0.25, 0.5))
    data.add_series("Berta", (0.75, None))
    inches = pptx.util.Inches
    slide.shapes.add_chart(XL_CHART_TYPE.COLUMN_CLUSTERED, inches(1), inches(2), inches(4), inches(2), data)
    points: Any = charts_of.XyChartData()
    series = points.add_series("Depth")
    series.add_data_point(1.5, 20)
    slide.shapes.add_chart(XL_CHART_TYPE.XY_SCATTER, inches(1), inches(5), inches(4), inches(2), points)
    deck.save(str(tmp_path / "a.pptx"))
    assert only_document(tmp_path).text == "Fares\n2023: Alma: 25%; Berta: 75%\n2024: Alma: 50%\n1.5: Depth: 20"


def test_a_hidden_title_is_left_out_and_a_shape_that_has_its_id_is_not(tmp_path: Path) -> None:
    deck, slide = new_deck()
    box = add(slide.shapes, "80 kr", 1, 3)
    box._element.xpath("./*/p:cNvPr")[0].set("id", str(slide.shapes.title.shape_id))
    hidden = deck.slides.add_slide(deck.slide_layouts[5])
    hidden.shapes.title.text = "Old fares"
    hidden.shapes.title._element.xpath("./*/p:cNvPr")[0].set("hidden", "1")
    add(hidden.shapes, "90 kr", 1, 3)
    deck.save(str(tmp_path / "a.pptx"))
    document = only_document(tmp_path)
    assert (document.text, document.left_out) == ("Fares\n80 kr\n\f\n90 kr", ("1 hidden shape",))


def test_categories_of_a_chart_have_their_groups_and_show_dates(tmp_path: Path) -> None:
    import datetime

    import pptx.chart.data as charts
    from pptx.enum.chart import XL_CHART_TYPE

    charts_of: Any = charts
    deck, slide = new_deck()
    place = [pptx.util.Inches(each) for each in (1, 2, 4, 2)]
    quarters: Any = charts_of.CategoryChartData()
    for year in ("2023", "2024"):
        quarters.add_category(year).add_sub_category("Q1")
    quarters.add_series("Alma", (1, 2))
    slide.shapes.add_chart(XL_CHART_TYPE.COLUMN_CLUSTERED, *place, quarters)
    days: Any = charts_of.CategoryChartData()
    days.categories = [datetime.date(2024, 3, 5)]
    days.add_series("Berta", (3,))
    slide.shapes.add_chart(XL_CHART_TYPE.LINE, *place, days)
    deck.save(str(tmp_path / "a.pptx"))
    assert only_document(tmp_path).text == "Fares\n2023 Q1: Alma: 1\n2024 Q1: Alma: 2\n2024-03-05: Berta: 3"


def test_points_of_a_chart_may_stand_at_words_or_lack_a_place(tmp_path: Path) -> None:
    import pptx.chart.data as charts
    from pptx.enum.chart import XL_CHART_TYPE

    charts_of: Any = charts
    deck, slide = new_deck()
    points: Any = charts_of.XyChartData()
    series = points.add_series("Depth")
    for x, y in ((1.5, 20), (2, 30), (2.5, 40)):
        series.add_data_point(x, y)
    place = [pptx.util.Inches(each) for each in (1, 2, 4, 2)]
    chart = slide.shapes.add_chart(XL_CHART_TYPE.XY_SCATTER, *place, points).chart
    without_place, at_word = chart._chartSpace.xpath(".//c:xVal//c:pt")[:2]
    without_place.getparent().remove(without_place)
    at_word.xpath("./c:v")[0].text = "harbor"
    deck.save(str(tmp_path / "a.pptx"))
    assert only_document(tmp_path).text == "Fares\n1: Depth: 20\nharbor: Depth: 30\n2.5: Depth: 40"


def test_an_equation_is_written_on_its_line(tmp_path: Path) -> None:
    deck, slide = new_deck()
    paragraph = add(slide.shapes, "It is ", 1, 2).text_frame.paragraphs[0]._p
    equation = (
        '<a14:m xmlns:a14="http://schemas.microsoft.com/office/drawing/2010/main"><m:oMath '
        'xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math"><m:r><m:t>a=2</m:t></m:r></m:oMath></a14:m>'
    )
    paragraph.append(pptx.oxml.parse_xml(equation))
    deck.save(str(tmp_path / "a.pptx"))
    assert only_document(tmp_path).text == "Fares\nIt is a=2"


def test_a_merged_cell_stands_in_each_of_its_rows(tmp_path: Path) -> None:
    deck, slide = new_deck()
    inches = pptx.util.Inches
    table = slide.shapes.add_table(3, 2, inches(1), inches(2), inches(4), inches(2)).table
    for row, cells in enumerate([("Port", "Ship"), ("Tarnvik", "Alma"), ("", "Berta")]):
        for column, text in enumerate(cells):
            table.cell(row, column).text = text
    table.cell(1, 0).merge(table.cell(2, 0))
    deck.save(str(tmp_path / "a.pptx"))
    assert only_document(tmp_path).text == "Fares\nPort\tShip\nTarnvik\tAlma\nTarnvik\tBerta"


def test_a_deck_that_hides_all_says_so(tmp_path: Path) -> None:
    deck, slide = new_deck()
    slide._element.set("show", "0")
    deck.save(str(tmp_path / "a.pptx"))
    assert "1 hidden slide" in only_failure(tmp_path).reason


def test_raised_and_lowered_letters_stand_on_the_line(tmp_path: Path) -> None:
    deck, slide = new_deck()
    paragraph = add(slide.shapes, "CO", 1, 3).text_frame.paragraphs[0]
    for text, baseline in (("2", "-25000"), (" falls by 10", "0"), ("1", "30000"), ("2", "30000"), (" tonnes", "")):
        run = paragraph.add_run()
        run.text = text
        if baseline:
            run.font._element.set("baseline", baseline)
    deck.save(str(tmp_path / "a.pptx"))
    assert only_document(tmp_path).text == "Fares\nCO2 falls by 10^12 tonnes"
