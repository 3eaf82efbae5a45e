"""Headings are kept with the text that stands under them."""

from pathlib import Path

import pypdf
import pytest

from kraq_dspy.asset.corpus.chunk import _without_headings_alone, chunk_document
from kraq_dspy.asset.corpus.normalise import redacted_document
from kraq_dspy.asset.corpus.tokens import count_tokens
from kraq_dspy.records import Chunk, Document, Heading
from kraq_dspy.settings import ChunkSettings, RedactSettings
from tests.asset.corpus.corpora import only_document, write, write_pdf

MARKDOWN = """# The lighthouse

It was built in 1874.

## Opening hours ##

Daily from ten to four.

```sh
# no heading
```

### On [holidays](h.md)

Closed on every holiday.

Getting there
-------------

By bus. See C#.
"""


def texts(document: Document) -> list[tuple[int, str]]:
    """Level and text of each heading; its place is where the text has it."""
    for heading in document.headings:
        assert heading.text.split()[0].strip("[") in document.text[heading.start :].split("\n")[0]
    return [(heading.level, heading.text) for heading in document.headings]


def test_those_of_markdown(tmp_path: Path) -> None:
    document = only_document(write(tmp_path, "a.md", MARKDOWN))
    assert document.title == "The lighthouse"
    assert texts(document) == [
        (1, "The lighthouse"), (2, "Opening hours"), (3, "On holidays"), (2, "Getting there"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("Words first.\n\n## Opening hours\n\nDaily.\n\n## Getting there\n\nBy bus.\n", "visitors"),
        ("```\n# a comment\n```\n\n### On foot\n\n### By bus\n", "visitors"),
        ("## Opening hours\n\n### On holidays\n\nClosed.\n", "Opening hours"),
        ("Words first.\n\n# The lighthouse\n\n# Getting there\n", "The lighthouse"),
        ("No heading at all.\n", "visitors"),
    ],
)
def test_the_first_of_several_sections_is_no_title(text: str, title: str, tmp_path: Path) -> None:
    assert only_document(write(tmp_path, "visitors.md", text)).title == title


def test_those_of_a_web_page_lead_to_their_lines(tmp_path: Path) -> None:
    page = """<title>T</title><ul><li>Opening hours<li>Getting there</ul><h1>The <b>light</b>house</h1><p>Built.
      <h2></h2><p>No heading.<h2>Opening <br>hours</h2>Daily.<h3>On holidays<p>Closed.</h3><h2>Getting there</h2>Bus."""
    document = only_document(write(tmp_path, "a.html", page))
    assert texts(document) == [
        (1, "The lighthouse"), (2, "Opening"), (3, "On holidays"), (2, "Getting there"),
    ]  # fmt: skip
    assert document.text[document.headings[-1].start :] == "Getting there\nBus."


def test_those_of_a_pdfs_outline_stand_on_their_pages(tmp_path: Path) -> None:
    write_pdf(tmp_path / "plain.pdf", "Built in 1874. Opening hours: daily.", "By bus.")
    writer = pypdf.PdfWriter(clone_from=tmp_path / "plain.pdf")
    above = writer.add_outline_item(title="The lighthouse", page_number=0)
    writer.add_outline_item(title="Opening hours", page_number=0, parent=above)
    writer.add_outline_item(title="Getting there", page_number=1)
    writer.write(tmp_path / "a.pdf")
    document = only_document(tmp_path / "a.pdf")
    second = document.text.index("By bus")
    assert document.headings == (
        Heading(0, 1, "The lighthouse"), Heading(15, 2, "Opening hours"), Heading(second, 1, "Getting there"),
    )  # fmt: skip


def chunks(document: Document, tokens: int) -> list[Chunk]:
    return chunk_document(document, ChunkSettings(tokens=tokens, overlap=0))


def test_a_chunk_knows_the_path_that_it_stands_under_and_the_headings_inside(tmp_path: Path) -> None:
    document = only_document(write(tmp_path, "a.md", MARKDOWN))
    [whole] = chunks(document, 300)
    assert whole.headings == ("The lighthouse", "Opening hours", "On holidays", "Getting there")
    closed = next(chunk for chunk in chunks(document, 8) if "Closed" in chunk.text)
    assert closed.headings == ("The lighthouse", "Opening hours", "On holidays")
    bus = next(chunk for chunk in chunks(document, 8) if chunk.text.strip().startswith("By bus"))
    assert bus.headings == ("The lighthouse", "Getting there")


def test_ids_of_chunks_depend_on_their_text_alone(tmp_path: Path) -> None:
    document = only_document(write(tmp_path, "a.md", MARKDOWN))
    other = only_document(write(tmp_path, "b.txt", MARKDOWN))
    same = Document(document.id, document.title, other.text)
    assert [chunk.id for chunk in chunks(same, 20)] == [chunk.id for chunk in chunks(document, 20)]


def test_places_follow_what_was_struck_out() -> None:
    text = "Write to ada@example.org.\nOpening hours\nAsk ada@example.org.\nGetting there\nBus."
    headings = (Heading(26, 2, "Opening hours"), Heading(61, 2, "Getting there"))
    document = redacted_document(Document("a", "", text, headings=headings), RedactSettings(emails=True))
    assert [document.text[heading.start :].split("\n")[0] for heading in document.headings] == [
        "Opening hours",
        "Getting there",
    ]


def test_a_heading_alone_begins_the_next_span_up_to_the_very_limit() -> None:
    document = Document("a", "", "Opening hours\n\nDaily from ten.", headings=(Heading(0, 2, "Opening hours"),))
    spans, limit = [(0, 15), (15, 30)], count_tokens(document.text)
    assert _without_headings_alone(document, spans, limit) == [(0, 30)]
    assert _without_headings_alone(document, spans, limit - 1) == [(15, 30)]
