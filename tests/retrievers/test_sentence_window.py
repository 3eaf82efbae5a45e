"""Tests that a single sentence is found and comes with those around it."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from kraq_dspy.asset.corpus.sentences import sentence_spans
from kraq_dspy.asset.store.sync import TextVectors
from kraq_dspy.asset.store.vectors import LocalVectorStore
from kraq_dspy.records import Chunk
from kraq_dspy.retrievers import SentenceWindowRetriever
from kraq_dspy.retrievers.sentence_window import sentence_id
from tests.conftest import KeywordEmbedder

LONG = "A castle stands here. Music is played. Nobody sleeps. A river passes. The end."
SHORT = "A river and music."


class Chunks:
    def __init__(self, *texts: str) -> None:
        self.chunks = {
            f"{number:032x}": Chunk(f"{number:032x}", "doc", number, 100, 100 + len(text), text, 5)
            for number, text in enumerate(texts)
        }

    def chunks_by_id(self, ids: Sequence[str]) -> list[Chunk]:
        return [self.chunks[chunk_id] for chunk_id in ids]


@pytest.fixture
def made(tmp_path: Path, keyword_embedder: type[KeywordEmbedder]) -> Iterator[Any]:
    embedder = keyword_embedder("river", "castle", "music")
    stores = []

    def make(*texts: str, window: int | None) -> SentenceWindowRetriever:
        chunks = Chunks(*texts)
        store = LocalVectorStore(tmp_path / "sentences", embedder.dimension)
        stores.append(store)
        named = {
            sentence_id(chunk.id, (start, end)): chunk.text[start:end]
            for chunk in chunks.chunks.values()
            for start, end in sentence_spans(chunk.text)
        }
        vectors = TextVectors(store, embedder, named)
        vectors.sync("embed")
        return SentenceWindowRetriever(chunks, vectors, embedder, window=window)

    yield make
    for store in stores:
        store.close()


def test_one_sentence_finds_a_passage_that_is_about_other_things(made: Callable[..., SentenceWindowRetriever]) -> None:
    hits = made(LONG, SHORT, window=0)("river", 2)
    assert [hit.chunk.text for hit in hits] == ["A river passes.", SHORT]
    assert [hit.score for hit in hits] == pytest.approx([1, 0.5**0.5])  # a word alone; one of two


@pytest.mark.parametrize(
    ("window", "expected"),
    [(0, "A river passes."), (1, "Nobody sleeps. A river passes. The end."), (9, LONG), (None, LONG)],
)
def test_the_sentences_around_come_with_it(
    made: Callable[..., SentenceWindowRetriever], window: int | None, expected: str
) -> None:
    [hit] = made(LONG, window=window)("river", 1)
    assert hit.chunk.text == expected
    assert LONG[hit.chunk.start - 100 : hit.chunk.end - 100] == expected


def test_a_passage_of_many_fitting_sentences_does_not_crowd_out_the_others(
    made: Callable[..., SentenceWindowRetriever],
) -> None:
    hits = made("A river. " * 40, SHORT, window=0)("river", 2)
    assert len({hit.chunk.id for hit in hits}) == 2


def test_a_window_below_zero_is_refused(made: Callable[..., SentenceWindowRetriever]) -> None:
    with pytest.raises(ValueError, match="window is -1"):
        made(SHORT, window=-1)


def test_a_sentence_that_ends_elsewhere_than_when_it_was_prepared_is_another_one() -> None:
    assert sentence_id("c1", (0, 9)) != sentence_id("c1", (0, 12))


def test_a_sentence_that_begins_where_none_does_now_is_handed_over_as_the_one_around_it() -> None:
    chunk = Chunk("c1", "d1", 0, 0, 41, "A castle stands. A river passes. It sings.", 9)

    class Stale:
        def __call__(self, *_: Any, **__: Any) -> list[tuple[str, float]]:
            return [("c1/20-31", 0.9)]

    class One:
        def chunks_by_id(self, ids: Sequence[str]) -> list[Chunk]:
            return [chunk]

    retrieve = SentenceWindowRetriever(One(), Stale(), KeywordEmbedder("river"), window=0)  # type: ignore[arg-type]
    assert [hit.chunk.text for hit in retrieve("river", 1)] == ["A river passes."]
