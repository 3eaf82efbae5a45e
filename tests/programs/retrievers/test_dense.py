from kraq_dspy.programs.retrievers import DenseRetriever
from tests.programs.conftest import Library


def test_the_nearest_passages_come_first_with_their_cosine(library: Library) -> None:
    retrieve = DenseRetriever(library.records, library.chunk_vectors, library.embedder)
    hits = retrieve("bridge and castle", 2)
    assert library.names(hits)[0] == "gate"  # the only passage with both words: cosine 1
    assert hits[0].score == 1.0 or abs(hits[0].score - 1) < 1e-6
    assert abs(hits[1].score - 0.5**0.5) < 1e-6  # one of the two words
    assert {(hit.query, hit.why) for hit in hits} == {("bridge and castle", "dense")}


def test_a_vector_that_is_given_decides_instead_of_the_text(library: Library) -> None:
    retrieve = DenseRetriever(library.records, library.chunk_vectors, library.embedder)
    vector = library.embedder.encode_queries(["music"])[0]
    assert library.names(retrieve("bridge", 1, vector=vector)) == ["song"]


def test_passages_that_tie_come_in_the_order_of_their_ids(library: Library) -> None:
    retrieve = DenseRetriever(library.records, library.chunk_vectors, library.embedder)
    hits = retrieve("castle", 3)  # only "keep" has nothing but the castle; "gate" and "hall" have one word more
    tied = sorted([library.id("gate"), library.id("hall")])
    assert [hit.chunk.id for hit in hits] == [library.id("keep"), *tied]
