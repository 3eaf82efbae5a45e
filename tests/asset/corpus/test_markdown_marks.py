"""Tests that parts of Markdown which nobody reads are left out, and that notes and wiki links become plain text."""

import base64
from pathlib import Path

import pytest

from kraq_dspy.asset.corpus.formats.markdown_marks import as_read
from tests.asset.corpus.corpora import load_all, only_document, write, write_rows
from tests.growth import require_linear

PICTURE = "data:image/png;base64," + base64.b64encode(bytes(range(256)) * 20).decode()
WRAPPED = "data:image/png;base64,\n" + "\n".join(["iVBORw0KGgoAAAANSUhEUgAAAAUAAAAFCAYAAACN"] * 40)


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (f"The crane.\n\n![Figure 1]({PICTURE})\n\nIt is old.", "The crane.\n\nFigure 1\n\nIt is old."),
        (f'![Figure 1]({PICTURE} "a title") It is old.', "Figure 1 It is old."),
        (f"![Figure 1]({WRAPPED}) It is old.", "Figure 1 It is old."),
        (f"See ![Figure 1][fig] and ![fig].\n\n[fig]: <{PICTURE}>\n", "See Figure 1 and fig.\n\n"),
        (f'See <img alt="the crane" src="{PICTURE}"/>.', "See the crane."),
        (f"See <img src='{PICTURE}'>.", "See ."),
        (f"[Download]({PICTURE}) it.", "Download it."),
        (f"```\n{PICTURE}\n```\n", "```\n\n```\n"),
        ("![Figure 1](crane.png)", "![Figure 1](crane.png)"),
        ("![Figure 1][fig]\n\n[fig]: crane.png", "![Figure 1][fig]\n\n[fig]: crane.png"),
        ("A page data: of the harbour.", "A page data: of the harbour."),
    ],
)
def test_embedded_pictures_leave_what_they_are_called(written: str, read: str) -> None:
    assert as_read(written) == read


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("It costs 12.<!-- not 99 --> Always.", "It costs 12. Always."),
        ("It costs 12.\n\n<!--\nnot 99\n\n```\n98\n```\n-->\n\nAlways.", "It costs 12.\n\nAlways."),
        ("[//]: # (not 99)\nIt costs 12.", "It costs 12."),
        ('[comment]: <> "not 99"\nIt costs 12.', "It costs 12."),
        ("It costs 12 %%not 99%% crowns.", "It costs 12  crowns."),
        ("It costs ~~99~~ 12 crowns.", "It costs  12 crowns."),
        ("It costs <del>99</del><ins>12</ins>.", "It costs <ins>12</ins>."),
        ("<div style='display: none'>\n99\n</div>\nIt costs 12.", "\nIt costs 12."),
        ("It costs 12.<span hidden>99</span>", "It costs 12."),
        ("`<!-- 99 -->` is a comment.", "`<!-- 99 -->` is a comment."),
        ("```html\n<!-- 99 -->\n<del>98</del>\n```\n", "```html\n<!-- 99 -->\n<del>98</del>\n```\n"),
        ("An arrow <!-- never closed. 99", "An arrow <!-- never closed. 99"),
        ("It is 100%% sure, or 99%% so.", "It is 100%% sure, or 99%% so."),
        ("a == b and c == d", "a == b and c == d"),
    ],
)
def test_comments_and_what_is_struck_out_are_left_out(written: str, read: str) -> None:
    assert as_read(written) == read


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("Founded in 1987[^3].\n\n[^3]: See the report.", "Founded in 1987 [3].\n\n[3] See the report."),
        ("Founded in 1987^[See the report.] by Berg.", "Founded in 1987 (See the report.) by Berg."),
        ("Founded in 1987<sup>3</sup>, 10<sup>6</sup> litres", "Founded in 1987 [3], 10^6 litres"),
        ("the CO<sub>2</sub> of it", "the CO2 of it"),
        ("[[Jonas Berg|Berg]] met [[Mira Tolan]].", "Berg met Mira Tolan."),
        ("See [[Harbour#Prices]].![[crane.png]]", "See Harbour Prices."),
        ("It is ==closed== today. ^note-1", "It is closed today."),
        ("Berg&nbsp;&amp;&nbsp;Dahl, 3 &lt; 4", "Berg & Dahl, 3 &lt; 4"),
        ("`a[^3]` and `[[x]]`", "`a[^3]` and `[[x]]`"),
        ("x^2 and [^a-z] in a pattern", "x^2 and [^a-z] in a pattern"),
    ],
)
def test_notes_and_wiki_links_are_written_as_they_are_read(written: str, read: str) -> None:
    assert as_read(written) == read


def test_a_file_with_an_embedded_picture_is_as_long_as_its_text(tmp_path: Path) -> None:
    write(tmp_path, "a.md", f"# Harbour\n\nFounded.\n\n![Figure]({PICTURE})\n\n## Crane\n\nOld.\n")
    document = only_document(tmp_path)
    assert document.text == "# Harbour\n\nFounded.\n\nFigure\n\n## Crane\n\nOld.\n"
    assert [document.text[each.start :].split("\n")[0] for each in document.headings] == ["# Harbour", "## Crane"]


def test_texts_and_rows_are_without_embedded_pictures_too(tmp_path: Path) -> None:
    write(tmp_path, "a.txt", f"Founded. {PICTURE}")
    write_rows(tmp_path, "b.jsonl", {"text": f"![Crane]({PICTURE}) is old."})
    documents, _ = load_all(tmp_path)
    assert [document.text for document in documents] == ["Founded. ", "![Crane]() is old."]


@pytest.mark.parametrize(
    "piece",
    [
        "<!--",
        "```\n",
        "~~a",
        "==a",
        "[[a",
        "[^a",
        "<del>",
        "<a hidden>",
        "<sup>",
        "%%a ",
        "![a",
        "data:a;base64,",
        "`a",
    ],
)
def test_no_text_takes_time_that_grows_with_the_square_of_its_length(piece: str) -> None:
    require_linear(as_read, lambda n: piece * n, 10_000)
    require_linear(as_read, lambda n: f"{piece}\n" * n, 5_000)
