"""Tests where chunks begin and end, how they overlap, and what each carries of its document."""

import gzip
import json
from itertools import pairwise
from pathlib import Path

from hypothesis import example, given, strategies as st

from kraq_dspy.asset.corpus.chunk import PAGE_BREAK, WINDOW, chunk_document
from kraq_dspy.asset.corpus.tokens import count_tokens
from kraq_dspy.records import Chunk, Document
from kraq_dspy.settings import ChunkSettings

SENTENCE = "Ada Lovelace wrote the first program for the Analytical Engine. "


def chunks_of(text: str, tokens: int = 300, overlap: int = 50) -> list[Chunk]:
    return chunk_document(Document("d", "Title", text), ChunkSettings(tokens, overlap))


def assert_reassembles(text: str, chunks: list[Chunk]) -> None:
    covered = bytearray(len(text))
    for position, chunk in enumerate(chunks):
        assert chunk.text == text[chunk.start : chunk.end]
        assert chunk.text.strip()
        assert chunk.position == position
        covered[chunk.start : chunk.end] = b"\x01" * (chunk.end - chunk.start)
    lost = [place for place, character in enumerate(text) if not character.isspace() and not covered[place]]
    assert lost == []
    assert all(a.start < b.start and a.end < b.end for a, b in pairwise(chunks))


def test_a_short_document_is_one_chunk_that_carries_its_title_and_metadata() -> None:
    document = Document("d1", "Ada", " Ada wrote programs.\n", "ada.txt", {"year": 1843})
    (chunk,) = chunk_document(document, ChunkSettings())
    assert (chunk.text, chunk.start, chunk.end, chunk.position) == ("Ada wrote programs.", 1, 20, 0)
    assert (chunk.document_id, chunk.title, chunk.metadata) == ("d1", "Ada", {"year": 1843})
    assert chunk.n_tokens == count_tokens("Ada wrote programs.")


def test_a_chunk_that_begins_with_a_row_of_a_table_has_its_empty_cells() -> None:
    assert [chunk.text for chunk in chunks_of("\t2001\t2002\nTarnvik\t5\t9")] == ["\t2001\t2002\nTarnvik\t5\t9"]
    rows = "".join(f"\tship {number}\t{number}\n" for number in range(60))
    chunks = chunks_of(f"Ships\n{rows}", tokens=40, overlap=0)
    assert len(chunks) > 5
    assert all(line.startswith("\t") for chunk in chunks[1:] for line in chunk.text.split("\n"))


def test_where_the_overlap_leaves_no_room_for_an_empty_cell_the_row_goes_without() -> None:
    chunks = chunks_of("x one\n\ttwo\nthree", tokens=3, overlap=2)
    assert [chunk.text for chunk in chunks] == ["x one", "two\nthree"]


def test_a_chunk_of_a_document_with_page_breaks_knows_the_page_on_which_it_begins() -> None:
    pages = [SENTENCE * 3, "", SENTENCE * 3]
    chunks = chunk_document(Document("d", "", PAGE_BREAK.join(pages), "a.pdf", {"pages": 3}), ChunkSettings(40, 0))
    assert [chunk.metadata["page"] for chunk in chunks] == [1, 1, 3, 3]
    (chunk,) = chunk_document(Document("d", "", PAGE_BREAK.join(pages)), ChunkSettings())
    assert chunk.metadata == {"page": 1, "last_page": 3}
    assert {chunk.metadata["pages"] for chunk in chunks} == {3}


def test_nothing_but_white_space_gives_no_chunks() -> None:
    assert chunks_of("") == []
    assert chunks_of(" \n\t\u3000\x1c " * 20_000) == []


def test_chunks_end_at_sentences_and_overlap() -> None:
    chunks = chunks_of(SENTENCE * 100)
    assert all(chunk.text.endswith("Engine.") for chunk in chunks)
    assert all(after.start < before.end for before, after in pairwise(chunks))


def test_without_overlap_no_character_is_in_two_chunks() -> None:
    chunks = chunks_of(SENTENCE * 100, overlap=0)
    assert all(before.end <= after.start for before, after in pairwise(chunks))


def test_spans_count_characters_not_bytes() -> None:
    text = "Élodie mange des crêpes à l'œuf — c'est déjà ça. 漢字かな交じり文。👩‍👧 " * 60
    chunks = chunks_of(text)
    assert len(chunks) > 3
    assert_reassembles(text, chunks)


def test_a_text_longer_than_many_windows_is_chunked_without_a_gap() -> None:
    text = "\n\n".join(SENTENCE * n for n in range(1, 120))
    assert len(text) > 20 * WINDOW * 300
    chunks = chunks_of(text)
    assert_reassembles(text, chunks)
    assert max(chunk.n_tokens for chunk in chunks) <= 300


def test_one_endless_line_of_numbers_is_chunked() -> None:
    text = ",".join(map(str, range(20_000)))
    assert_reassembles(text, chunks_of(text))


def test_one_endless_word_is_chunked() -> None:
    text = "a" * 100_000
    chunks = chunks_of(text)
    assert_reassembles(text, chunks)
    assert max(chunk.n_tokens for chunk in chunks) <= 300


def test_a_single_character_over_the_limit_stays_whole() -> None:
    chunks = chunks_of("👩👩", tokens=1, overlap=0)
    assert [(chunk.text, chunk.n_tokens) for chunk in chunks] == [("👩", 3), ("👩", 3)]


def test_ids_are_uuids_that_depend_on_document_and_text() -> None:
    one, same, other = (chunk_document(Document(name, "", "text"), ChunkSettings())[0].id for name in ("a", "a", "b"))
    assert one == same
    assert one != other
    assert len(one) == 32


def test_equal_chunks_of_one_document_have_ids_of_their_own() -> None:
    chunks = chunks_of(("word " * 40 + "\n\n\n") * 5, tokens=41, overlap=0)
    assert len({chunk.text for chunk in chunks}) == 1
    assert len({chunk.id for chunk in chunks}) == len(chunks) == 5


def test_text_that_an_edit_elsewhere_leaves_alone_keeps_its_id() -> None:
    paragraphs = [f"Paragraph {n}. {SENTENCE * 3}" for n in range(10)]
    before = {chunk.id for chunk in chunks_of("\n\n".join(paragraphs), tokens=60, overlap=0)}
    after = {chunk.id for chunk in chunks_of("\n\n".join(["New. " + SENTENCE * 3, *paragraphs]), tokens=60, overlap=0)}
    assert before < after


def test_real_passages_reassemble(shared_data: Path) -> None:
    with gzip.open(shared_data / "cmrc2018" / "corpus.jsonl.gz", "rt", encoding="utf-8") as lines:
        text = "\n\n".join(json.loads(line)["text"] for line in lines)
    chunks = chunks_of(text)
    assert len(chunks) > 100
    assert_reassembles(text, chunks)


any_text = st.lists(
    st.one_of(
        st.text(max_size=40),
        st.sampled_from(
            [SENTENCE, "\r\n", "\n\n", " " * 50, "漢字", "👩‍👧", "\ud800", ",", "e\u0301", "\x1c", "\u2028"]
        ),
    ).flatmap(lambda part: st.integers(1, 60).map(lambda times: part * times)),
    max_size=12,
).map("".join)


@example(text=":0:0" + "\ud800" * 51, tokens=25, share=0.0)
@given(text=any_text, tokens=st.integers(4, 60), share=st.floats(0, 0.9))
def test_spans_reassemble_any_text_and_no_chunk_is_over_the_limit(text: str, tokens: int, share: float) -> None:
    chunks = chunks_of(text, tokens, int(tokens * share))
    assert_reassembles(text, chunks)
    assert all(chunk.n_tokens == count_tokens(chunk.text) <= tokens for chunk in chunks)
    assert len({chunk.id for chunk in chunks}) == len(chunks)
    assert chunks == chunks_of(text, tokens, int(tokens * share))
