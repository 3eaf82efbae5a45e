"""Tests which sources, dates and names a question states, and what is found by them."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from kraq_dspy.asset.store.vectors import LocalVectorStore
from kraq_dspy.records import Chunk, Entity, content_id
from kraq_dspy.retrievers import BM25Retriever, DenseRetriever, KnownMetadata, MetadataFilterRetriever
from tests.conftest import KeywordEmbedder

NEWS: list[tuple[str, str, dict[str, str | int]]] = [  # title, text, metadata
    ("Storm", "A river rose.", {"source": "The Verge", "published_at": "2023-09-28T12:00:00+00:00", "year": 2023}),
    ("Calm", "The river fell.", {"source": "TechCrunch", "published_at": "2023-10-02", "year": 2023}),
    ("Harbour Song", "Music and a river.", {"source": "The Verge", "published_at": "2021-10-02", "year": 2021}),
    ("Fort", "A castle burnt.", {"source": "Polygon", "published_at": "2022-01", "year": 2022}),
]


class Chunks:
    def __init__(self, chunks: Sequence[Chunk]) -> None:
        self.chunks = {chunk.id: chunk for chunk in chunks}

    def chunks_by_id(self, ids: Sequence[str]) -> list[Chunk]:
        return [self.chunks[chunk_id] for chunk_id in ids]


CHUNKS = [
    Chunk(content_id("chunk", title), f"doc-{title}", 0, 0, len(text), text, 5, title=title, metadata=metadata)
    for title, text, metadata in NEWS
]
KNOWN = KnownMetadata(
    CHUNKS, [Entity("e", "Maria Lopez", "", "", ("Maria Lopez", "Lopez"), (CHUNKS[0].id, CHUNKS[3].id))]
)


@pytest.fixture
def news(tmp_path: Path, keyword_embedder: type[KeywordEmbedder]) -> Iterator[MetadataFilterRetriever]:
    embedder = keyword_embedder("river", "castle", "music")
    store = LocalVectorStore(tmp_path / "chunks", embedder.dimension)
    passages = [chunk.passage for chunk in CHUNKS]
    store.upsert(
        [chunk.id for chunk in CHUNKS],
        embedder.encode_passages(passages),
        passages,
        [{**chunk.metadata, "document_id": chunk.document_id} for chunk in CHUNKS],
    )
    yield MetadataFilterRetriever(DenseRetriever(Chunks(CHUNKS), store, embedder), KNOWN)
    store.close()


def read(question: str) -> set[tuple[str, str, frozenset[Any]]]:
    return {(one.key, one.phrase, one.values) for one in KNOWN.conditions(question)}


@pytest.mark.parametrize(
    ("phrase", "sources"),
    [("the Verge", {"The Verge"}), ("TechCrunch", {"TechCrunch"}), ("The Verges", set())],
)
def test_sources_are_read_by_their_words(phrase: str, sources: set[str]) -> None:
    assert {
        value for key, _, values in read(f"What did {phrase} write?") if key == "source" for value in values
    } == sources


@pytest.mark.parametrize(
    ("question", "titles"),
    [
        ("What happened in 2023?", {"Storm", "Calm"}),
        ("What happened in October 2023?", {"Calm"}),
        ("What happened on 2 October 2023?", {"Calm"}),
        ("What happened on September 28, 2023?", {"Storm"}),
        ("What happened on 2023-10-02?", {"Calm"}),
        ("What happened in January 2022?", {"Fort"}),
        ("What happened in 1066?", set()),
    ],
)
def test_dates_are_read_as_far_as_they_are_said(question: str, titles: set[str]) -> None:
    values = [values for key, _, values in read(question) if key == "published_at"]
    in_range = {chunk.title for chunk in CHUNKS for some in values if chunk.metadata["published_at"] in some}
    assert in_range == titles


def test_titles_and_entities_stand_for_documents() -> None:
    assert read("Who wrote harbour song?") == {("document_id", "harbour song", frozenset({"doc-Harbour Song"}))}
    assert read("Where did Maria Lopez live?") == {("document_id", "Maria Lopez", frozenset({"doc-Storm", "doc-Fort"}))}
    assert read("Is there calm on a fort?") == set()  # single words without a capital name nothing


def test_hits_say_what_they_were_filtered_by(news: MetadataFilterRetriever) -> None:
    [hit] = news("What did The Verge write about a river in 2023?", 1)
    assert hit.chunk.title == "Storm"
    assert hit.why == "dense, filtered by source: The Verge, published_at: 2023"


def test_values_of_one_key_are_alternatives(news: MetadataFilterRetriever) -> None:
    hits = news("What did both The Verge and TechCrunch write about a castle?", 3)
    assert {hit.chunk.metadata["source"] for hit in hits} == {"The Verge", "TechCrunch"}


def test_conditions_that_leave_nothing_are_given_up_documents_first(news: MetadataFilterRetriever) -> None:
    [hit] = news("What did TechCrunch write about Maria Lopez and a river?", 1)
    assert (hit.chunk.title, hit.why) == ("Calm", "dense, filtered by source: TechCrunch")


def test_a_filter_that_leaves_too_few_is_filled_up_without_it(news: MetadataFilterRetriever) -> None:
    hits = news("What did Polygon write about a river?", 3)
    assert [hit.why.partition(",")[0] for hit in hits] == ["dense"] * 3
    assert ["filtered" in hit.why for hit in hits] == [True, False, False]


def test_without_anything_to_filter_by_it_is_the_retriever_itself(news: MetadataFilterRetriever) -> None:
    assert news("Which river?", 2) == news.retrieve("Which river?", 2)


def test_filters_of_the_caller_hold_throughout(news: MetadataFilterRetriever) -> None:
    hits = news("What did The Verge write about a river?", 4, filters={"source": ["TechCrunch"]})
    assert [hit.chunk.title for hit in hits] == ["Calm"]


def test_a_retriever_that_finds_no_words_leaves_nothing(news: MetadataFilterRetriever) -> None:
    words = MetadataFilterRetriever(BM25Retriever(news.retrieve.chunks, news.retrieve.vectors), KNOWN)  # type: ignore[attr-defined]
    assert words("Xylophones in 2023?", 3) == []


def test_names_of_many_documents_are_left_out() -> None:
    everywhere = Entity("e", "Some Town", "", "", ("Some Town",), tuple(chunk.id for chunk in CHUNKS))
    assert KnownMetadata(CHUNKS, [everywhere], most_documents=3).conditions("Where is Some Town?") == []
    assert len(KnownMetadata(CHUNKS, [everywhere]).conditions("Where is Some Town?")) == 1
