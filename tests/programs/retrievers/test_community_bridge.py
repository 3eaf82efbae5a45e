from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from kraq_dspy.programs.retrievers import CommunityBridgeRetriever, DenseRetriever, QuestionCommunities
from kraq_dspy.records import Chunk, content_id
from tests.programs.conftest import Library


def bridge(library: Library, chunks_of: dict[str, list[str]], **settings: Any) -> CommunityBridgeRetriever:
    return CommunityBridgeRetriever(
        DenseRetriever(library.records, library.chunk_vectors, library.embedder),
        QuestionCommunities(
            {community: [library.id(name) for name in names] for community, names in chunks_of.items()},
            library.records.questions.values(),
        ),
        library.question_vectors,
        library.chunk_vectors,
        library.records,
        library.embedder,
        **settings,
    )


def test_a_passage_that_does_not_resemble_the_question_comes_in_by_its_community(library: Library) -> None:
    retrieve = bridge(library, {"about bridges": ["span", "blank"]}, share=0.5)
    hits = retrieve("stone bridge", 2)
    assert [(hit.chunk.title, hit.why) for hit in hits] == [("span", "dense"), ("blank", "bridge")]
    assert hits[1].score == pytest.approx(0)


def test_the_community_whose_question_is_nearest_is_opened(library: Library) -> None:
    # To the first question, the stored one about castles has cosine .894, the one about bridges .447.
    communities = {"about bridges": ["gate", "elbe"], "about castles": ["gate", "blank"]}
    retrieve = bridge(library, communities, share=0.5, n_communities=1)
    assert library.names(retrieve("castle castle bridge", 2)) == ["gate", "blank"]
    assert library.names(retrieve("bridge bridge castle", 2)) == ["gate", "elbe"]


def test_passages_of_opened_communities_are_ranked_by_their_own_similarity(library: Library) -> None:
    retrieve = bridge(library, {"about bridges": ["span", "blank", "gate", "elbe"]}, share=0.25)
    hits = retrieve("bridge and castle", 4)
    assert library.names(hits) == ["gate", "span", "elbe", "blank"]  # cosines 1, .707, .5, 0
    assert [hit.why for hit in hits] == ["dense", "bridge", "bridge", "bridge"]


def test_of_a_broad_community_no_more_is_read_than_is_handed_over(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ["span", "blank", "gate", "elbe", "song"]
    retrieve = bridge(library, {"about bridges": names}, share=0.5)
    read: list[str] = []
    chunks_by_id = library.records.chunks_by_id

    def counted(ids: Sequence[str]) -> list[Chunk]:
        read.extend(ids)
        return chunks_by_id(ids)

    retrieve.chunks = SimpleNamespace(chunks_by_id=counted)
    assert library.names(retrieve("bridge and castle", 2)) == ["gate", "span"]
    assert len(read) == 2


def test_hits_of_the_retriever_fill_up_where_communities_hold_too_little(library: Library) -> None:
    retrieve = bridge(library, {"about bridges": ["span", "blank"]}, share=0.5)
    hits = retrieve("bridge", 4)
    assert [hit.why for hit in hits] == ["dense", "dense", "bridge", "dense"]
    assert len(retrieve("bridge", 9)) == 9


def test_passages_without_a_community_leave_dense_retrieval_as_it_is(library: Library) -> None:
    dense = DenseRetriever(library.records, library.chunk_vectors, library.embedder)
    assert bridge(library, {})("bridge to music", 6) == dense("bridge to music", 6)


def test_a_community_whose_question_is_a_duplicate_is_judged_by_the_original(library: Library) -> None:
    communities = QuestionCommunities({"castles again": []}, library.records.questions.values())
    assert communities.question_id("castles again") == content_id("question", "about castles")


def test_a_community_without_a_question_stays_closed(library: Library) -> None:
    retrieve = bridge(library, {"nobody asks about": ["span", "blank"]}, share=0.5)
    assert [hit.why for hit in retrieve("stone bridge", 2)] == ["dense", "dense"]


@pytest.mark.parametrize(("settings", "message"), [({"share": 0}, "share is 0"), ({"n_communities": 0}, "is 0")])
def test_settings_out_of_range_are_refused(library: Library, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        bridge(library, {}, **settings)
