"""A corpus has a threshold: what it answers scores above it, what is foreign to it below."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from kraq_dspy import Document, Index, Workspace, add_documents, build_index, remove_documents
from kraq_dspy.asset.store.index import THRESHOLD
from kraq_dspy.asset.store.vectors.points import words_of
from kraq_dspy.errors import IndexStateError
from kraq_dspy.indexing.refusals.foreign_questions import ABOUT_THE_WHOLE, FOREIGN
from kraq_dspy.indexing.refusals.scoring import CountsWords, PassageScorer
from kraq_dspy.indexing.refusals.threshold import Threshold, keep_threshold, read_threshold
from kraq_dspy.ports import Vectors
from kraq_dspy.records import Chunk
from tests.conftest import KeywordEmbedder
from tests.orchids import ANSWERED, FOREIGN as FOREIGN_HERE, index_of_orchids


@pytest.fixture(scope="module")
def orchids(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return index_of_orchids(tmp_path_factory.mktemp("threshold") / "orchids.kraq")


def test_indexing_stores_a_threshold_between_what_is_foreign_and_what_is_answered(orchids: Path) -> None:
    with Workspace.open(orchids) as space:
        threshold = read_threshold(space.index)
        scorer = PassageScorer(space.index, space.embedder)
        answered, foreign = ([each.value for each in scorer(texts)] for texts in (ANSWERED, FOREIGN_HERE))
        packaged = [each.value for each in scorer(FOREIGN)]
    assert threshold is not None
    assert max(foreign) < threshold.score < min(answered)
    assert np.mean(np.array(packaged) < threshold.score) > 0.6
    assert 0.2 < threshold.whole < 0.8


def test_the_questions_that_set_the_threshold_are_many_and_no_two_the_same() -> None:
    assert len(set(FOREIGN)) == len(FOREIGN) >= 100
    assert set(FOREIGN).isdisjoint(ABOUT_THE_WHOLE)


def test_a_score_has_the_cosine_and_a_quarter_of_the_rare_words(tmp_path: Path) -> None:
    """Two passages name London and one names Ada, so Ada weighs more; both words are in the first passage."""
    embedder = KeywordEmbedder("ada", "london")
    texts = {"ada": "Ada lived in London.", "byron": "Byron lived in London.", "juan": "Don Juan is a poem."}
    build_index([Document(name, "", text) for name, text in texts.items()], tmp_path / "x.kraq", embedder=embedder)
    with Workspace.open(tmp_path / "x.kraq", embedder=embedder) as space:
        both, half, none, no_words = PassageScorer(space.index, embedder)(
            ["Ada, London?", "Ada and the engine?", "Who drives the car?", "Who are they?"]
        )
        [nearest] = space.index.get(Chunk, [both.nearest[0][0]])
    assert nearest.document_id == "ada"
    assert both.value == pytest.approx(1.0, abs=1e-6)
    cosine, share = np.sqrt(0.5), np.log(1 + 3 / 2) / (np.log(1 + 3 / 2) + np.log(1 + 3 / 1))
    assert half.value == pytest.approx((cosine + 0.25 * share) / 1.25, abs=1e-6)
    assert none.value == pytest.approx(1 / 1.25, abs=1e-6)  # the axis of texts without a keyword
    assert no_words.value == none.value


def test_a_store_says_in_how_many_texts_a_word_stands(orchids: Path) -> None:
    with Index.open(orchids) as index:
        store = index.chunk_vectors
        assert isinstance(store, CountsWords)
        words = words_of("orchids Phalaenopsis Peru")
        texts = [set(words_of(chunk.passage)) for chunk in index.all(Chunk)]
        expected = [sum(word in each for each in texts) for word in words]
        assert store.texts_with(words) == expected
    assert expected[0] > expected[1] > expected[2] == 0


def test_a_corpus_that_answers_what_is_foreign_elsewhere_has_no_threshold(tmp_path: Path) -> None:
    """Each foreign question stands here with its answer, so nothing is foreign."""
    documents = [Document(str(n), "", f"{text} This is told here: {text}") for n, text in enumerate(FOREIGN[:90])]
    build_index(documents, tmp_path / "all.kraq")
    with Index.open(tmp_path / "all.kraq") as index:
        assert read_threshold(index) is None


def test_a_threshold_follows_the_documents(tmp_path: Path) -> None:
    path = index_of_orchids(tmp_path / "orchids.kraq")
    with Index.open(path) as index:
        before = read_threshold(index)
    remove_documents(path, ["vanilla", "cattleya"])
    with Index.open(path) as index:
        after = read_threshold(index)
    assert before is not None
    assert after is not None
    assert before.score != after.score


class EncodedQueries(KeywordEmbedder):
    """Notes the texts that it encodes as queries."""

    def __init__(self, *keywords: str) -> None:
        super().__init__(*keywords)
        self.encoded: list[str] = []

    def encode_queries(self, texts: Sequence[str]) -> Vectors:
        self.encoded += texts
        return super().encode_queries(texts)


def test_the_packaged_questions_are_embedded_once_for_an_index_and_its_views(tmp_path: Path) -> None:
    embedder = EncodedQueries("ada", "london", "engine")
    path = tmp_path / "ada.kraq"
    build_index(["Ada lived in London.", "Babbage built an engine."], path, embedder=embedder)
    assert embedder.encoded.count(FOREIGN[0]) == embedder.encoded.count(ABOUT_THE_WHOLE[0]) == 1

    add_documents(path, ["Ada Lovelace met Charles Babbage at a party."], embedder=embedder)
    with Workspace.open(path, embedder=embedder) as space:
        [first, *_] = space.index.ids(Document)
        with space.without([first]) as view:
            assert view.index.count(Document) == 2

    assert embedder.encoded.count(FOREIGN[0]) == embedder.encoded.count(ABOUT_THE_WHOLE[0]) == 1


def test_a_threshold_that_was_lost_is_measured_again_the_same(orchids: Path, tmp_path: Path) -> None:
    path = index_of_orchids(tmp_path / "orchids.kraq")
    with Workspace.open(path, write=True) as space:
        measured = read_threshold(space.index)
        (space.index.home / THRESHOLD).unlink()
        assert keep_threshold(space.index, space.embedder) == measured
    with Index.open(path) as index:
        assert read_threshold(index) == measured


@pytest.mark.parametrize("content", ["{", json.dumps({"score": 0.3}), json.dumps([1])])
def test_a_damaged_threshold_says_so(content: str, tmp_path: Path) -> None:
    path = index_of_orchids(tmp_path / "orchids.kraq")
    with Index.open(path, write=True) as index:
        (index.home / THRESHOLD).write_text(content)
        with pytest.raises(IndexStateError, match="is damaged"):
            read_threshold(index)
        (index.home / THRESHOLD).write_text(json.dumps({"score": 0.3, "whole": 0.5}))
        assert read_threshold(index) == Threshold(0.3, 0.5)
