"""Menus, notices and lists of links are left out of web pages, and nothing of their text."""

from pathlib import Path

import pytest

from kraq_dspy.asset.corpus.boilerplate import RepeatedLines, cleaned
from kraq_dspy.asset.corpus.load import load_documents
from kraq_dspy.asset.corpus.normalise import redacted_document
from kraq_dspy.indexing.index.opening import documents_of
from kraq_dspy.records import Document
from kraq_dspy.settings import CorpusSettings, RedactSettings, Settings
from tests.asset.corpus.corpora import load_all, only_document, write, write_rows
from tests.growth import require_linear

MENU = "\n".join(f"*   [Section {number}](https://a.org/{number} 'Go')".replace("'", '"') for number in range(12))
ARTICLE = """# The lighthouse

![Image 1: a photo](https://a.org/1.jpg)

It was built in 1874 by [Mira Lund](https://a.org/lund).

The keepers of the first ten years were:

*   [Ada Holm](https://a.org/holm)
*   [Jon Berg](https://a.org/berg)
*   [Eva Dahl](https://a.org/dahl)

## Opening hours

Daily from ten to four."""
TEXT = """# The lighthouse

It was built in 1874 by Mira Lund.

The keepers of the first ten years were:

*   Ada Holm
*   Jon Berg
*   Eva Dahl

## Opening hours

Daily from ten to four."""


def text_of(page: str, *others: str) -> str:
    repeated = RepeatedLines()
    for each in (page, *others):
        repeated.add(each)
    return cleaned(page, repeated).text


def test_a_page_in_markdown_loses_its_menus_images_and_where_its_links_lead() -> None:
    page = f"Skip to content\n\n{MENU}\n\n{ARTICLE}\n\n### Read more\n\n{MENU}\n\nAccept all cookies\n"
    assert text_of(page) == TEXT


def test_what_was_left_out_is_known_line_by_line() -> None:
    left_out = cleaned(f"{ARTICLE}\n{MENU}\nCookie settings", RepeatedLines()).left_out
    assert left_out[0] == "*   Section 0"
    assert left_out[-1] == "Cookie settings"
    assert len(left_out) == 13


def test_a_short_line_beside_a_menu_goes_where_it_stands_in_three_pages() -> None:
    page = f"{ARTICLE}\n\nTop stories today\n{MENU}"
    assert text_of(page).endswith("four.\n\nTop stories today")
    assert text_of(page, page, page) == TEXT


def test_a_repeated_line_within_the_text_stays() -> None:
    page = f"{MENU}\n\n{ARTICLE}\n\nAdmission is free.\n\nBy bus."
    assert text_of(page, page, page) == f"{TEXT}\n\nAdmission is free.\n\nBy bus."


def test_a_paragraph_within_a_link_is_text() -> None:
    paragraph = "The keeper wrote in 1901 that the lamp had failed twice in a storm from the north. " * 4
    page = f"{ARTICLE}\n[{paragraph}](https://a.org/log.jpg)[1](https://a.org/#1)\n{MENU}"
    assert paragraph.strip() in text_of(page)


def test_rows_of_a_table_and_code_stay() -> None:
    table = "| [Oslo](https://a.org/o) | [Bergen](https://a.org/b) | [Moss](https://a.org/m) |"
    code = "```\n[Home](https://a.org)[News](https://a.org)[Sport](https://a.org)\n```"
    assert text_of(f"{table}\n{code}\n{MENU}") == f"| Oslo | Bergen | Moss |\n{code}"


@pytest.mark.parametrize("text", ["See [the manual](manual.md).\n\n\n[a](b)", "Warranty: 2 years\nShare this\n", ""])
def test_a_text_without_many_links_stays_as_it_is(text: str) -> None:
    assert text_of(text, text, text) == text


def test_a_text_that_is_nothing_else_stays_as_it_is() -> None:
    assert text_of(MENU) == MENU


def test_headings_keep_their_places(tmp_path: Path) -> None:
    document = only_document(write(tmp_path, "a.md", f"{MENU}\n\n{ARTICLE}\n\n## Elsewhere\n\n{MENU}"))
    assert document.text == TEXT
    assert [(document.text[each.start :].split("\n")[0], each.level) for each in document.headings] == [
        ("# The lighthouse", 1), ("## Opening hours", 2),
    ]  # fmt: skip


HTML = """<title>The lighthouse</title><div><a href="/">Home</a> <a href="/n">News</a> <a href="/s">Sport</a></div>
<h1>The lighthouse</h1><ul><li><a href="/f">Facebook</a><li><a href="/m">Mail</a><li><a href="/x">Print</a></ul>
<p>It was built in 1874 by <a href="/lund">Mira Lund</a>.</p><a name="top">Opening hours<p>Daily.
<div class=cookies>We use no names.<button>Accept all cookies</button></div>"""


def test_a_page_in_html_loses_lists_of_links_and_keeps_its_heading_between_them(tmp_path: Path) -> None:
    document = only_document(write(tmp_path, "a.html", HTML))
    assert document.text.split("\n") == [
        "The lighthouse", "It was built in 1874 by Mira Lund.", "Opening hours", "Daily.", "We use no names.",
    ]  # fmt: skip
    assert document.left_out == ("Home News Sport", "Facebook", "Mail", "Print", "Accept all cookies")
    assert document.headings[0].start == 0


def test_the_numbers_of_a_list_of_links_are_no_text_of_it(tmp_path: Path) -> None:
    menu = "".join(f'<li><a href="/{name}">{name}</a>' for name in ("Home", "News", "Shop", "Map"))
    document = only_document(write(tmp_path, "a.html", f"<ol start=98>{menu}</ol><p>It was built in 1874."))
    assert document.text == "It was built in 1874."


def test_it_can_be_kept(tmp_path: Path) -> None:
    [document] = load_documents(write(tmp_path, "a.html", HTML), boilerplate="keep")
    assert isinstance(document, Document)
    assert document.text.startswith("Home News Sport\nThe lighthouse\nFacebook")
    settings = Settings(corpus=CorpusSettings(boilerplate="keep"))
    assert list(documents_of([Document("a", "", MENU)], settings)) == [Document("a", "", MENU)]


def test_pages_that_come_as_rows_or_as_documents_are_cleaned_too(tmp_path: Path) -> None:
    page = f"Popular now\n{MENU}\n{ARTICLE}"
    pages = [{"id": str(number), "text": f"{page}\nPage {number}."} for number in range(3)]
    documents, _ = load_all(write_rows(tmp_path, "pages.jsonl", *pages))
    assert [document.text for document in documents] == [f"{TEXT}\nPage {number}." for number in range(3)]
    in_memory = documents_of([Document(row["id"], "", row["text"]) for row in pages], None)
    assert [document.text for document in in_memory if isinstance(document, Document)] == [
        one.text for one in documents
    ]


def test_a_page_that_comes_later_loses_what_was_left_out_of_others() -> None:
    assert "popular now" in RepeatedLines(["Popular now"])


def test_personal_data_is_struck_out_of_what_was_left_out_too() -> None:
    document = Document("a", "", "text", left_out=("Write to ada@example.org",))
    assert redacted_document(document, RedactSettings(emails=True)).left_out == ("Write to [e-mail address]",)


@pytest.mark.parametrize(
    "piece",
    ["[", "[a", "[a](", "[a](b", "[a](b(", '[a](b "', "![", "[[a]", "\\[", "[](javascript:(", "we cookie ", "# "],
)
def test_no_text_takes_time_that_grows_with_the_square_of_its_length(piece: str) -> None:
    require_linear(text_of, lambda n: MENU + "\n" + piece * n, 15_000)
    require_linear(text_of, lambda n: MENU + f"\n{piece}\n" * n, 4_000)
