"""Holds every retriever to the contract of `ports.Retriever`."""

import asyncio
import copy
from collections.abc import Callable
from typing import Any

import dspy
import numpy as np
import pytest

from kraq_dspy import make_lm
from kraq_dspy.asset.corpus.sentences import sentence_spans
from kraq_dspy.asset.store.sync import TextVectors
from kraq_dspy.extend import call
from kraq_dspy.ports import Retriever, Vectors
from kraq_dspy.records import Entity
from kraq_dspy.retrievers import (
    AdaptedRetriever,
    AdaptiveRetriever,
    BM25Retriever,
    CombinedRetriever,
    DenseRetriever,
    DMQRRetriever,
    FusionRetriever,
    HybridRetriever,
    KnownMetadata,
    MetadataFilterRetriever,
    NearestQuestions,
    PageRankRetriever,
    PassageGraph,
    QuestionSimilarityReranker,
    RAGFusionRetriever,
    RaptorRetriever,
    RerankingRetriever,
    RewrittenRetriever,
    SentenceWindowRetriever,
    SummaryTree,
    TreeNode,
    passage_graph,
    questions_by_chunk,
)
from kraq_dspy.retrievers.rewritten import FusedSearches
from kraq_dspy.retrievers.sentence_window import sentence_id
from kraq_dspy.settings import RoleSettings
from kraq_dspy.testing import check_retriever
from tests.programs.conftest import Library

QUESTION = "Which river has a bridge to a castle with music?"


def dense(library: Library) -> DenseRetriever:
    return DenseRetriever(library.records, library.chunk_vectors, library.embedder)


def nearest(library: Library) -> NearestQuestions:
    return NearestQuestions(library.records, library.question_vectors, library.embedder)


def communities(library: Library) -> dict[str, set[str]]:
    chunks_of = {
        "about bridges": ["elbe", "span", "gate"],
        "about castles": ["gate", "keep", "hall"],
        "castles again": ["keep", "rhine"],
        "about music": ["hall", "song", "tune", "blank"],
    }
    return questions_by_chunk(
        {community: [library.id(name) for name in names] for community, names in chunks_of.items()},
        library.records.questions.values(),
    )


def hybrid(library: Library) -> HybridRetriever:
    return HybridRetriever(library.records, library.chunk_vectors, library.embedder, weight=0.5)


def sentence_window(library: Library) -> SentenceWindowRetriever:
    texts = {
        sentence_id(chunk.id, (start, end)): chunk.text[start:end]
        for chunk in library.records.chunks.values()
        for start, end in sentence_spans(chunk.text)
    }
    payloads = {name: {"document_id": library.records.chunks[name.partition("/")[0]].document_id} for name in texts}
    vectors = TextVectors(library.question_vectors, library.embedder, texts, payloads)
    vectors.sync("embed")
    return SentenceWindowRetriever(library.records, vectors, library.embedder, window=0)


def metadata_filter(library: Library) -> MetadataFilterRetriever:
    """The question names an entity of two passages."""
    castle = Entity("castle", "with music", "", "", ("with music",), (library.id("hall"), library.id("keep")))
    return MetadataFilterRetriever(hybrid(library), KnownMetadata(library.records.chunks.values(), [castle]))


def passages_and_entities(library: Library) -> PassageGraph:
    mentions = [
        (library.id(name), entity)
        for name, entities in {
            "rhine": ["river"],
            "elbe": ["river", "bridge"],
            "span": ["bridge"],
            "gate": ["bridge", "castle"],
            "keep": ["castle"],
            "hall": ["castle", "music"],
            "song": ["music"],
            "tune": ["music", "river"],
        }.items()
        for entity in entities
    ]
    return passage_graph(library.records.chunks, mentions, [("castle", "music", 2.0)])


def pagerank(library: Library) -> PageRankRetriever:
    return PageRankRetriever(dense(library), passages_and_entities(library), library.records)


def raptor(library: Library) -> RaptorRetriever:
    clusters = {
        "rivers": (1, ["rhine", "elbe", "tune"]),
        "castles": (1, ["gate", "keep", "hall"]),
        "all": (2, ["rivers", "castles"]),
    }
    nodes = [
        TreeNode(library.id(name), level, tuple(map(library.id, children)), f"About {name}, and music.", 5)
        for name, (level, children) in clusters.items()
    ]
    vectors = TextVectors(library.question_vectors, library.embedder, {node.id: node.text for node in nodes})
    vectors.sync("embed")
    tree = SummaryTree(list(library.records.chunks), nodes)
    return RaptorRetriever(library.records, library.chunk_vectors, library.embedder, tree, vectors)


def embedded(retriever: FusedSearches) -> FusedSearches:
    retriever.set_lm(make_lm(RoleSettings(model="embedded")))
    return retriever


def rewritten(library: Library) -> FusedSearches:
    return embedded(RewrittenRetriever(dense(library)))


RETRIEVERS: dict[str, Callable[[Any], Retriever]] = {
    "dense": dense,
    "bm25": lambda library: BM25Retriever(library.records, library.chunk_vectors),
    "hybrid": lambda library: HybridRetriever(library.records, library.chunk_vectors, library.embedder),
    "hybrid, small pool": lambda library: HybridRetriever(
        library.records, library.chunk_vectors, library.embedder, pool=1
    ),
    "fusion": lambda library: FusionRetriever(
        [dense(library), BM25Retriever(library.records, library.chunk_vectors)], pool=3
    ),
    "combined": lambda library: CombinedRetriever(dense(library), nearest(library)),
    "combined, strict": lambda library: CombinedRetriever(dense(library), nearest(library), n=3, strict=True),
    "combined over hybrid": lambda library: CombinedRetriever(
        HybridRetriever(library.records, library.chunk_vectors, library.embedder), nearest(library), n=3, alpha=0.2
    ),
    "combined in combined": lambda library: CombinedRetriever(
        CombinedRetriever(dense(library), nearest(library)), nearest(library)
    ),
    "qr-fusion": rewritten,
    "rag-fusion": lambda library: embedded(RAGFusionRetriever(dense(library))),
    "dmqr": lambda library: embedded(DMQRRetriever(dense(library))),
    "dmqr, all four": lambda library: embedded(DMQRRetriever(dense(library), adaptive=False)),
    "combined over rag-fusion": lambda library: CombinedRetriever(
        embedded(RAGFusionRetriever(dense(library))), nearest(library)
    ),
    "combined over qr-fusion": lambda library: CombinedRetriever(rewritten(library), nearest(library)),
    "pagerank": pagerank,
    "adaptive": lambda library: AdaptiveRetriever(hybrid(library), passages_and_entities(library), library.records),
    "adaptive, small pool": lambda library: AdaptiveRetriever(
        hybrid(library), passages_and_entities(library), library.records, pool=1
    ),
    "sentence-window": sentence_window,
    "metadata-filter": metadata_filter,
    "reranked": lambda library: RerankingRetriever(
        hybrid(library),
        QuestionSimilarityReranker(communities(library), library.question_vectors, library.embedder, balance=0.5),
    ),
    "adapted": lambda library: AdaptedRetriever(lambda question, k: dense(library)(question, k)),
    "adapted, without k": lambda library: AdaptedRetriever(lambda question: dense(library)(question, 50)),
    "raptor": raptor,
}


@pytest.fixture(params=RETRIEVERS)
def retrieve(request: pytest.FixtureRequest, library: Library) -> Retriever:
    return RETRIEVERS[request.param](library)


def test_it_keeps_the_contract_that_others_can_run_on_theirs(retrieve: Retriever) -> None:
    check_retriever(retrieve, [QUESTION, "music and castle"])


@pytest.mark.parametrize("k", [2, 9, 50])
def test_at_most_k_passages_and_none_twice(retrieve: Retriever, k: int) -> None:
    ids = [hit.chunk.id for hit in retrieve(QUESTION, k)]
    assert min(k, 9) // 2 <= len(ids) <= k  # strict budgets lose what the paper's floors cut off
    assert len(ids) == len(set(ids))


def test_the_asynchronous_form_finds_the_same(retrieve: Retriever) -> None:
    assert asyncio.run(call(retrieve, QUESTION, 5)) == asyncio.run(retrieve.acall(QUESTION, 5)) == retrieve(QUESTION, 5)  # type: ignore[attr-defined]


def test_every_hit_says_what_found_it_and_why(retrieve: Retriever) -> None:
    for hit in retrieve(QUESTION, 9):
        assert hit.query
        assert hit.why
        assert isinstance(hit.score, float)
        assert (hit.query == QUESTION) or hit.why == "auxiliary"


def test_excluded_passages_do_not_come_back(retrieve: Retriever, library: Library) -> None:
    best = [hit.chunk.id for hit in retrieve(QUESTION, 3)]
    rest = [hit.chunk.id for hit in retrieve(QUESTION, 9, exclude=best)]
    assert rest
    assert not set(best) & set(rest)
    assert retrieve(QUESTION, 3, exclude=set(library.records.chunks)) == []


def test_hits_match_the_filters(retrieve: Retriever) -> None:
    hits = retrieve(QUESTION, 9, filters={"document_id": ["doc-g", "doc-s", "doc-h"]})
    assert {hit.chunk.document_id for hit in hits} <= {"doc-g", "doc-s", "doc-h"}
    assert hits
    assert {hit.chunk.document_id for hit in retrieve(QUESTION, 9, filters={"document_id": "doc-g"})} == {"doc-g"}
    assert retrieve(QUESTION, 9, filters={"document_id": "absent"}) == []


def test_filters_and_exclusion_hold_together(retrieve: Retriever, library: Library) -> None:
    hits = retrieve(QUESTION, 9, exclude=[library.id("song")], filters={"document_id": ["doc-g", "doc-s"]})
    assert set(library.names(hits)) == {"gate", "span"}


def test_the_question_vector_may_come_with_the_question(retrieve: Retriever, library: Library) -> None:
    vector: Vectors = library.embedder.encode_queries([QUESTION])[0]
    assert retrieve(QUESTION, 5, vector=vector) == retrieve(QUESTION, 5)
    assert np.array_equal(vector, library.embedder.encode_queries([QUESTION])[0])


def test_an_unknown_word_is_no_error(retrieve: Retriever) -> None:
    assert len(retrieve("Xylophones?", 4)) <= 4


def test_a_copy_shares_the_stores_it_reads(retrieve: Retriever) -> None:
    copied = copy.deepcopy(retrieve)
    if isinstance(copied, dspy.Module):  # its steps are copied, so that optimizers can change them apart
        held = "retrieve" if hasattr(retrieve, "retrieve") else "source"
        assert getattr(copied, held) is getattr(retrieve, held)
        assert copied(QUESTION, 5) == retrieve(QUESTION, 5)
    else:
        assert copied is retrieve
