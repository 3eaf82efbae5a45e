"""Saved states come back as they were, and excluded passages stay away, whatever they are."""

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import dspy
import pytest
from hypothesis import given, strategies as st

from kraq_dspy.asset.store.vectors import LocalVectorStore
from kraq_dspy.optimize import state_of
from kraq_dspy.programs import ExtractGraph
from kraq_dspy.records import Chunk, content_id
from kraq_dspy.retrievers import BM25Retriever, DenseRetriever, FusionRetriever, HybridRetriever
from tests.conftest import KeywordEmbedder

WORDS = ("river", "bridge", "castle", "music")
TEXTS = [" ".join(word for place, word in enumerate(WORDS) if number >> place & 1) or "nothing" for number in range(16)]
CHUNKS = {content_id(text): Chunk(content_id(text), "d", n, 0, len(text), text, 4) for n, text in enumerate(TEXTS)}
ANY_TEXT = st.text(alphabet=st.characters(codec="utf-8"), max_size=40)


class Records:
    def chunks_by_id(self, ids: Sequence[str]) -> list[Chunk]:
        return [CHUNKS[chunk_id] for chunk_id in ids]


@pytest.fixture(scope="module")
def retrievers(keyword_embedder: type[KeywordEmbedder]) -> Iterator[list[Any]]:
    embedder = keyword_embedder(*WORDS)
    with tempfile.TemporaryDirectory() as folder:
        store = LocalVectorStore(Path(folder) / "chunks", embedder.dimension)
        texts = [chunk.text for chunk in CHUNKS.values()]
        store.upsert(list(CHUNKS), embedder.encode_passages(texts), texts)
        dense = DenseRetriever(Records(), store, embedder)
        words = BM25Retriever(Records(), store)
        yield [dense, words, HybridRetriever(Records(), store, embedder), FusionRetriever([dense, words])]
        store.close()


@given(
    excluded=st.sets(st.sampled_from(sorted(CHUNKS))),
    k=st.integers(1, 20),
    question=st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join),
)
def test_what_is_excluded_is_never_found_and_the_next_best_take_its_place(
    retrievers: list[Any], excluded: set[str], k: int, question: str
) -> None:
    for retriever in retrievers:
        everything = [hit.chunk.id for hit in retriever(question, len(CHUNKS))]
        chunk_ids = [hit.chunk.id for hit in retriever(question, k, exclude=excluded)]
        assert not excluded & set(chunk_ids)
        assert len(chunk_ids) == len(set(chunk_ids)) <= k
        if isinstance(retriever, DenseRetriever | BM25Retriever):  # scores that do not depend on the other hits
            assert chunk_ids == [chunk_id for chunk_id in everything if chunk_id not in excluded][:k]


@given(instructions=ANY_TEXT.filter(str.strip), passage=ANY_TEXT, names=st.lists(ANY_TEXT, max_size=3))
def test_a_programs_state_comes_back_from_json_as_it_was(instructions: str, passage: str, names: list[str]) -> None:
    program = ExtractGraph()
    program.extract.signature = program.extract.signature.with_instructions(instructions)
    entities = [{"name": name, "type": "t", "description": passage} for name in names]
    program.extract.demos = [dspy.Example(passage=passage, entities=entities, relationships=[], claims=[])]
    with tempfile.TemporaryDirectory() as folder:
        program.save(Path(folder) / "state.json")
        loaded = ExtractGraph()
        loaded.load(Path(folder) / "state.json")
    assert state_of(loaded, {}) == state_of(program, {})
    assert loaded.extract.signature.instructions == program.extract.signature.instructions
