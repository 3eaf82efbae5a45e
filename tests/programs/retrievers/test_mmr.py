from typing import Any

import pytest

from kraq_dspy.programs.retrievers import DenseRetriever, MMRRetriever
from tests.programs.conftest import Library


def mmr(library: Library, **settings: Any) -> MMRRetriever:
    dense = DenseRetriever(library.records, library.chunk_vectors, library.embedder)
    return MMRRetriever(dense, library.chunk_vectors, library.embedder, **settings)


def test_balance_one_keeps_the_order_of_the_retriever(library: Library) -> None:
    dense = DenseRetriever(library.records, library.chunk_vectors, library.embedder)
    question = "a bridge to the castle"
    assert library.names(mmr(library, balance=1)(question, 5)) == library.names(dense(question, 5))


def test_a_passage_like_the_first_gives_way_to_a_different_one(library: Library) -> None:
    # The question points along (river 2, music 1)/sqrt 5: rhine (river) has cosine .894, tune (river, music, music) .8,
    # elbe (river, bridge) .632, song (music) .447. To rhine, tune has cosine .447 and song 0.
    question = "river river music"
    assert library.names(mmr(library, balance=1)(question, 3)) == ["rhine", "tune", "elbe"]
    first, second = mmr(library, balance=0.5)(question, 2)
    assert library.names([first, second]) == ["rhine", "song"]
    assert first.score == pytest.approx(0.5 * 0.8944, abs=1e-3)
    assert second.score == pytest.approx(0.5 * 0.4472, abs=1e-3)  # above tune's .5 * .8 - .5 * .4472


def test_settings_out_of_range_are_refused(library: Library) -> None:
    with pytest.raises(ValueError, match="balance is 2"):
        mmr(library, balance=2)
    with pytest.raises(ValueError, match="pool is 0"):
        mmr(library, pool=0)
