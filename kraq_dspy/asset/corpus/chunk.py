"""Cuts documents into overlapping chunks that end at sentences and paragraphs where they can."""

import re
from bisect import bisect
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from kraq_dspy.asset.corpus.tokens import count_tokens
from kraq_dspy.records import Chunk, Document, Heading, Metadata, content_id
from kraq_dspy.settings import ChunkSettings

if TYPE_CHECKING:
    from semantic_text_splitter import TextSplitter

# The splitter's time grows with the square of the longest stretch without a sentence end (25 s for 350 kB of numbers
# in one line), so it sees a window of this many characters per token of a chunk at a time: about ten chunks.
WINDOW = 40
_EMPTY_FIRST_CELL = "\n\t"  # the splitter takes it off, so room is left to put it on again
PAGE_BREAK = "\n\f\n"
"""Between the pages of a document that has some: a chunk of it knows its `page` and `last_page`, from 1."""


def chunk_document(document: Document, settings: ChunkSettings) -> list[Chunk]:
    """Chunks in reading order, at most `settings.tokens` tokens each; none for a text of white space.

    Every other character is in at least one chunk. Only a chunk of a single character may be over the limit, where
    that character alone has more tokens.

    A chunk's id depends on the document's id and the chunk's own text, so a chunk keeps its id
    after an edit elsewhere in the document. Equal chunks of a document are numbered.
    """
    spans: list[tuple[int, int]] = []
    for start, end in _spans(document.text, settings):
        if not spans or end > spans[-1][1]:  # else the overlap alone: a short piece that the chunk before it holds
            spans.append((_with_empty_cells(document.text, start, end, settings.tokens), end))
    return chunks_at(document, _without_headings_alone(document, spans, settings.tokens))


def _without_headings_alone(
    document: Document, spans: Sequence[tuple[int, int]], most_tokens: int
) -> list[tuple[int, int]]:
    """The spans; one of headings alone begins the next, as far as both fit, else ends the one before it."""
    if not document.headings:
        return list(spans)

    joined: list[tuple[int, int]] = []
    waiting: int | None = None  # where the headings begin that go with the next span
    for start, end in spans:
        begin = start if waiting is None else waiting
        if _is_of_headings(document, begin, end):
            waiting = begin
            continue
        if waiting is not None and count_tokens(document.text[begin:end]) > most_tokens:
            begin = start  # the section's text has the heading among its own (`Chunk.headings`)
        joined.append((begin, end))
        waiting = None

    if waiting is not None and joined:
        begin, end = joined[-1][0], spans[-1][1]
        if count_tokens(document.text[begin:end]) <= most_tokens:
            joined[-1] = (begin, end)
    return joined or list(spans)


def _is_of_headings(document: Document, start: int, end: int) -> bool:
    """Whether a span holds nothing but lines that are headings."""
    headings = document.headings
    first = bisect(headings, start - 1, key=lambda heading: heading.start)
    inside = headings[first : bisect(headings, end - 1, key=lambda heading: heading.start)]
    lines = [line for line in document.text[start:end].split("\n") if line.strip(" \t=-~#*")]
    return bool(lines) and len(lines) <= len(inside)


def _with_empty_cells(text: str, start: int, end: int, most_tokens: int) -> int:
    """Tell where a chunk begins that has the empty cells before it, as far as they fit: a row of a
    table without its first cell would stand one column too far to the left."""
    first = start
    while first and text[first - 1] == "\t":
        first -= 1
    return first if first < start and count_tokens(text[first:end]) <= most_tokens else start


def chunks_at(document: Document, spans: Sequence[tuple[int, int]]) -> list[Chunk]:
    """The chunks of these (start, end) in characters, with ids as `chunk_document` gives them."""
    chunks: list[Chunk] = []
    texts: Counter[str] = Counter()
    ends = [place for place, letter in enumerate(document.text) if letter == "\f"] if "\f" in document.text else []

    for position, (start, end) in enumerate(spans):
        text = document.text[start:end]
        chunks.append(
            Chunk(
                id=content_id("chunk", document.id, document.title, text, str(texts[text])),
                document_id=document.id,
                position=position,
                start=start,
                end=end,
                text=text,
                n_tokens=count_tokens(text),
                title=document.title,
                metadata={**document.metadata, **_pages(ends, start, end)},
                headings=_headings(document.headings, start, end),
            )
        )
        texts[text] += 1
    return chunks


def _headings(headings: Sequence[Heading], start: int, end: int) -> tuple[str, ...]:
    """The path of sections that are open at `start`, then the headings that begin before `end`."""
    here = bisect(headings, start, key=lambda heading: heading.start)
    path: list[Heading] = []
    for heading in headings[:here]:
        while path and path[-1].level >= heading.level:
            path.pop()
        path.append(heading)
    inside = headings[here : bisect(headings, end - 1, key=lambda heading: heading.start)]
    return tuple(heading.text for heading in (*path, *inside))


def _pages(ends: Sequence[int], start: int, end: int) -> Metadata:
    """The page on which a chunk begins and, if that is another, on which it ends; {} without pages."""
    if not ends:
        return {}
    first, last = bisect(ends, start) + 1, bisect(ends, end - 1) + 1
    return {"page": first} if first == last else {"page": first, "last_page": last}


def _spans(text: str, settings: ChunkSettings) -> Iterator[tuple[int, int]]:
    """(start, end) in characters. A window ends anywhere, so its last chunk is not used: the next starts with it."""
    text = _SURROGATE.sub("\ufffd", text)  # Rust refuses lone ones; tokens are counted of this character, too
    room = 1 if _EMPTY_FIRST_CELL in text and settings.tokens > settings.overlap + 1 else 0
    splitter = _splitter(settings.tokens - room, settings.overlap)
    width = WINDOW * max(settings.tokens, 50)
    begin = 0
    while begin < len(text):
        window = text[begin : begin + width]
        is_last = begin + width >= len(text)
        pieces = [
            (begin + offset, begin + offset + len(piece))
            for offset, piece in splitter.chunk_indices(window)
            if not piece.isspace()
        ]
        if is_last:
            yield from pieces
            return

        if len(pieces) > 1:
            yield from pieces[:-1]
            begin = pieces[-1][0]
        elif pieces:
            width *= 2  # one chunk fills the window: look further
        else:
            begin += len(window)


@lru_cache(maxsize=8)
def _splitter(tokens: int, overlap: int) -> "TextSplitter":
    from semantic_text_splitter import TextSplitter

    return TextSplitter.from_callback(count_tokens, tokens, overlap)  # its own vocabulary would take 24 MB


_SURROGATE = re.compile("[\ud800-\udfff]")
