from kraq_dspy.programs.retrievers import BM25Retriever
from tests.programs.conftest import Library


def test_only_passages_that_share_a_word_are_found(library: Library) -> None:
    retrieve = BM25Retriever(library.records, library.chunk_vectors)
    hits = retrieve("stone hill", 9)
    assert set(library.names(hits)) == {"span", "keep"}
    assert all(hit.score > 0 and hit.why == "bm25" for hit in hits)


def test_a_question_of_unknown_words_finds_nothing(library: Library) -> None:
    assert BM25Retriever(library.records, library.chunk_vectors)("xylophone", 5) == []
