"""Dialects in which documentation is written are read as text; rows of long tables keep their columns."""

from pathlib import Path

import pytest

from kraq_dspy.asset.corpus.chunk import chunk_document
from kraq_dspy.asset.corpus.formats.markdown_blocks import as_documented, find_headings
from kraq_dspy.asset.corpus.formats.markdown_marks import as_read
from kraq_dspy.asset.corpus.load import load_documents
from kraq_dspy.records import Document
from kraq_dspy.settings import ChunkSettings
from tests.asset.corpus.corpora import only_failure, write
from tests.asset.corpus.office import docx, paragraph, run


def only(folder: Path, name: str, text: str) -> Document:
    (folder / name).write_text(text, "utf-8")
    return only_document(folder)


def only_document(folder: Path) -> Document:
    (document,) = load_documents(folder)
    assert isinstance(document, Document), document
    return document


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("# Locks { #locks .guide }", "# Locks"),
        ("## Toll {#toll}", "## Toll"),
        ("## Toll {: #toll}", "## Toll"),
        ("## The set {a, b}", "## The set {a, b}"),
        ('!!! note "In winter"\n    It is closed.\n\nIt opens.', "In winter\nIt is closed.\n\nIt opens."),
        ("??? tip\n    Buy early.\n\n    On the quay.\nAfter.", "\nBuy early.\n\nOn the quay.\nAfter."),
        ('=== "Adult"\n\n    Twelve.\n\n    !!! note\n        Cash.', "Adult\n\nTwelve.\n\n\nCash."),
        (":::tip\nBuy early.\n:::", "\nBuy early.\n"),
        (":::note[Boats]\nCall.\n:::", "Boats\nCall.\n"),
        ("::: details Click\nMore.\n:::", "Click\nMore.\n"),
        ("/// tip | Boats\n\nCall.\n\n///", "Boats\n\nCall.\n\n"),
        ("{* ../src/lock.py hl[2:4] *}\nText.", "Text."),
        ('--8<-- "a.md"\nText.', "Text."),
        ("import Tabs from '@theme/Tabs';\n\n<Tabs>\n<Tab label=\"A\">\nTwelve.\n</Tab>\n</Tabs>", "\nTwelve."),
        ("import the goods from abroad.", "import the goods from abroad."),
        ("<b>Bold</b> and a <Ship> in a line.", "<b>Bold</b> and a <Ship> in a line."),
        ("Buoy\n: A float\n\nQuay\n:   A place", "Buoy: A float\n\nQuay: A place"),
        ("Time:\n\n: alone", "Time:\n\n: alone"),
        ("~~~\n!!! note\n# C {#c}\n~~~", "~~~\n!!! note\n# C {#c}\n~~~"),
        ("```py\nimport a\n:::\n```\n:::tip", "```py\nimport a\n:::\n```\n"),
        ("The ratio is 3 ::: 4", "The ratio is 3 ::: 4"),
    ],
)
def test_marks_of_documentation_go_and_what_they_hold_stays(written: str, read: str) -> None:
    assert as_documented(written) == read


@pytest.mark.parametrize(
    ("text", "headings"),
    [
        ("# Guide\n\n````md\n# No\n```py\n# no\n```\n````\n\n# Real", ["Guide", "Real"]),
        ("# Guide\n\n```npm install```\n\n## Setup", ["Guide", "Setup"]),
        ("~~~\n# No\n~~~\n# Yes\n\n    # code\n", ["Yes"]),
        ('<h1 align="center">\nHarbour <b>rules</b></h1>\n\nText.\n\n<h2>Fines</h2>', ["Harbour rules", "Fines"]),
        ("Title\n=====\n\nPart\n---\n\n- item\n---\n", ["Title", "Part"]),
    ],
)
def test_headings_are_those_of_commonmark_and_of_html(text: str, headings: list[str]) -> None:
    found = list(find_headings(text))
    assert [heading.text for heading in found] == headings
    assert all(text[heading.start :].lstrip("#< ")[:1] for heading in found)


def test_mdx_has_its_front_matter_and_its_title(tmp_path: Path) -> None:
    text = "---\ntitle: The Ferry\norder: 2\n---\nimport A from './a';\n\n## Buying {#buying}\n\nIt costs twelve.\n"
    document = only(tmp_path, "a.mdx", text)
    assert (document.title, document.metadata) == ("The Ferry", {"order": 2})
    assert document.text.strip() == "## Buying\n\nIt costs twelve."


RST = """.. _mill:

The Mill
========

.. note:: It is closed on *Mondays*.

.. versionadded:: 2.0
   The second stone.

Grinding
--------

See :ref:`the page <mill>` and :func:`~mill.grind`.

.. code-block:: python
   :linenos:
   :caption: A call

   grind("rye")

.. toctree::

   other

Term
  What it means.

=======  ======
Day      Hours
=======  ======
Tuesday  9 to 17
=======  ======
"""


def test_restructured_text_is_read_by_its_titles_roles_directives_and_tables(tmp_path: Path) -> None:
    document = only(tmp_path, "a.rst", RST)
    assert document.title == "The Mill"
    assert [(heading.level, heading.text) for heading in document.headings] == [(1, "The Mill"), (2, "Grinding")]
    for line in ("It is closed on Mondays.", "2.0 The second stone.", "See the page and mill.grind.", 'grind("rye")'):
        assert line in document.text.split("\n")
    assert "Tuesday\t9 to 17" in document.text
    assert "Term: What it means." in document.text
    assert not {"toctree", "linenos", "::", "====", ":ref:"} & set(document.text.split())


def test_restructured_text_includes_no_file_and_no_raw_part(tmp_path: Path) -> None:
    (tmp_path / "secret").mkdir()
    parts = (".. include:: /etc/passwd", ".. raw:: html\n\n   <p>raw</p>", ".. csv-table::\n   :file: /etc/passwd")
    text = "\n\n".join(("A\n=", "Text.", *parts, ""))
    document = only(tmp_path, "a.rst", text)
    assert document.text == "A\nText."


def test_labels_of_restructured_text_are_those_of_its_front_matter(tmp_path: Path) -> None:
    assert only(tmp_path, "a.rst", "---\nacl: [board]\n---\n\nA\n=\n\nText.\n").labels == ("board",)


COLUMNS = ("Route", "Child fare", "Adult fare")
HEADER = "| Route | Child fare | Adult fare |\n|---|---|---|\n"
ROWS = [(f"Route{n}", str(100 + n), str(300 + 2 * n)) for n in range(120)]


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ('import {\n  Tab,\n  Note,\n} from "./parts";\n\nText.', "\n\nText."),
        ("import {the goods} from abroad.", "import {the goods} from abroad."),
        ('```js\nimport { a } from "b"\n```', '```js\nimport { a } from "b"\n```'),
        ('## Toll <Badge type="tip" text="1.0" />\n\n<Note>Pay <b>first</b>.</Note>', "## Toll \n\nPay <b>first</b>."),
        ("Use `<Tabs />`, Set<Ship> and a <Ship> in a line.", "Use `<Tabs />`, Set<Ship> and a <Ship> in a line."),
        ("<script setup>\nconst a = 1\n</script>\n\n<style>a{}</style>\n\nText.", "\n\nText."),
    ],
)
def test_what_pages_of_components_load_and_call_is_no_text(written: str, read: str) -> None:
    assert as_read(written) == read


def test_a_lone_section_a_classifier_and_a_field_of_restructured_text_are_read(tmp_path: Path) -> None:
    text = "Ferry\n=====\n\nGate\n----\n\nBuoy : noun\n    A float.\n\n:param gate: the gate\n"
    document = only(tmp_path, "a.rst", text)
    assert [heading.text for heading in document.headings] == ["Ferry", "Gate"]
    assert document.text == "Ferry\nGate\nBuoy: noun: A float.\nparam gate: the gate"


@pytest.mark.parametrize("kind", ["md", "html", "rst"])
def test_each_row_of_a_long_table_is_told_with_the_tables_columns(kind: str, tmp_path: Path) -> None:
    if kind == "md":
        text = "# Fares\n\n" + HEADER + "".join(f"| {' | '.join(row)} |\n" for row in ROWS)
    elif kind == "html":
        cells = ["<tr><th>Route</th><th>Child fare</th><th>Adult fare</th></tr>"]
        cells += [f"<tr><td>{'</td><td>'.join(row)}</td></tr>" for row in ROWS]
        text = f"<html><body><h1>Fares</h1><table>{''.join(cells)}</table></body></html>"
    else:
        rule = "=========  ==========  ==========\n"
        lines = [f"{route:9}  {child:10}  {adult:10}\n" for route, child, adult in ROWS]
        text = f"Fares\n=====\n\n{rule}Route      Child fare  Adult fare\n{rule}{''.join(lines)}{rule}"
    assert_rows_are_told(only(tmp_path, f"a.{kind}", text))


def test_each_row_of_a_long_table_of_word_is_told_with_the_tables_columns(tmp_path: Path) -> None:
    pytest.importorskip("mammoth", reason="needs mammoth: pip install 'kraq-dspy[formats]'")
    cells = ["".join(f"<w:tc>{paragraph(run(text))}</w:tc>" for text in row) for row in (COLUMNS, *ROWS)]
    table = "".join(f"<w:tr>{row}</w:tr>" for row in cells)
    assert_rows_are_told(only_document(write(tmp_path, "a.docx", docx(f"<w:tbl>{table}</w:tbl>"))))


def test_each_row_of_a_long_table_on_a_slide_is_told_with_the_tables_columns(tmp_path: Path) -> None:
    pptx = pytest.importorskip("pptx", reason="needs python-pptx: pip install 'kraq-dspy[formats]'")
    deck = pptx.Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[5])
    table = slide.shapes.add_table(len(ROWS) + 1, len(COLUMNS), 0, 0, 9_000_000, 6_000_000).table
    for place, row in enumerate((COLUMNS, *ROWS)):
        for column, text in enumerate(row):
            table.cell(place, column).text = text
    deck.save(str(tmp_path / "a.pptx"))
    assert_rows_are_told(only_document(tmp_path))


def assert_rows_are_told(document: Document) -> None:
    chunks = chunk_document(document, ChunkSettings())
    assert len(chunks) > 1
    assert any("Route: Route97; Child fare: 197; Adult fare: 494" in chunk.text for chunk in chunks)


def test_a_short_table_and_one_without_names_stay_tables(tmp_path: Path) -> None:
    short = HEADER + "| Route1 | 1 | 2 |"
    assert as_documented(short) == short
    nameless = "| a | |\n|---|---|\n" + "| one | two |\n" * 100
    assert as_documented(nameless) == nameless


def test_the_corner_of_a_long_table_needs_no_name() -> None:
    text = as_documented("| | Child | Adult |\n|---|---|---|\n" + "| R1 | 2 | 4 |\n" * 200)
    assert text.splitlines()[0] == "R1; Child: 2; Adult: 4"


def test_a_table_in_code_stays_as_it_is() -> None:
    assert "one | two" in as_documented("```\n" + HEADER + "| one | two | three |\n" * 100 + "```")


def test_terms_and_their_meanings_stand_on_one_line(tmp_path: Path) -> None:
    terms = "<dt>Quay<dd>A place<dt>Buoy</dt><dd>A float</dd><dd>A mark</dd>"
    page = f"<html><body><h1>Words</h1><dl>{terms}</dl><p>End.</p></body></html>"
    document = only(tmp_path, "a.html", page)
    assert document.text == "Words\nQuay: A place\nBuoy: A float\nA mark\nEnd."
    assert document.title == "Words"


@pytest.mark.parametrize(
    ("page", "title"),
    [
        ("<title>T</title><h1>One</h1>", "T"),
        ("<h1>One</h1><p>x</p><h1>Two</h1>", "a"),
        ("<h2>Part</h2><p>x</p>", "a"),
        ("<h1>Harbour <b>rules</b></h1><p>x</p><h2>Fines</h2>", "Harbour rules"),
        ("<h1> </h1><p>x</p><h1>Fares</h1>", "Fares"),
    ],
)
def test_a_page_is_called_by_its_title_or_its_only_first_heading(page: str, title: str, tmp_path: Path) -> None:
    assert only(tmp_path, "a.html", f"<html><body>{page}<p>Text.</p></body></html>").title == title


@pytest.mark.parametrize(
    ("head", "fields"),
    [
        ("title: Ferry: the plan\nver: 1.10", {"ver": 1.1}),
        ('title: "Ferry" the plan\nby: @ann', {"by": "@ann"}),
        ("title: 50% off\nmark: %a\na line\nby: Ann", {"mark": "%a", "by": "Ann"}),
        ("title: [draft] The plan\nver: 2\ntags: [a, b", {"ver": 2, "tags": "[a, b"}),
        ("title: 50% off: now\n\tas: told\nby: *Ann", {"by": "*Ann"}),
    ],
)
def test_front_matter_that_is_no_strict_yaml_is_read(head: str, fields: dict[str, object], tmp_path: Path) -> None:
    document = only(tmp_path, "a.md", f"---\n{head}\n---\nText.\n")
    assert document.text == "Text.\n"
    assert document.title == head.split("\n")[0].partition(": ")[2]
    assert document.metadata == fields


def test_labels_in_front_matter_that_is_no_yaml_are_not_guessed(tmp_path: Path) -> None:
    write(tmp_path, "a.md", "---\ntitle: [draft] The plan\nacl: [staff\n---\nText.\n")
    assert "seem to say who may read" in only_failure(tmp_path).reason


def test_a_key_of_toml_with_thousands_of_parts_is_text(tmp_path: Path) -> None:
    key = "a." * 20_000
    assert only(tmp_path, "a.md", f"+++\n{key}a = 1\n+++\nText.\n").text.endswith("Text.\n")
