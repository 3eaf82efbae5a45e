"""An index that lost something says what, and is mended from what is left."""

from collections.abc import Callable
from pathlib import Path

import pytest

from kraq_dspy.asset.store.index import Index
from kraq_dspy.asset.store.states import current_home
from kraq_dspy.build.index.build import build_index
from kraq_dspy.build.index.check import check_index, repair_index
from kraq_dspy.errors import IndexStateError
from kraq_dspy.records import Chunk, Claim, Document, Entity, Extraction, Question, Relationship, Summary
from kraq_dspy.settings import CommunitySettings, ResolveSettings, Settings
from tests.conftest import KeywordEmbedder

DOCUMENTS = [
    Document("ada", "Ada", "Ada Lovelace worked with Charles Babbage. Charles Babbage designed the Engine in London."),
    Document("byron", "Byron", "Lord Byron was the father of Ada Lovelace. Lord Byron met Mary Shelley in Geneva."),
    Document("turing", "Turing", "Alan Turing worked at Bletchley Park. Alan Turing designed the Bombe."),
]


@pytest.fixture
def embedder(keyword_embedder: type[KeywordEmbedder]) -> KeywordEmbedder:
    return keyword_embedder("ada", "babbage", "byron", "shelley", "turing")


@pytest.fixture
def whole(tmp_path: Path, embedder: KeywordEmbedder) -> Path:
    settings = Settings(communities=CommunitySettings(max_size=4), resolve=ResolveSettings(semantic=False))
    build_index(DOCUMENTS, tmp_path / "i.kraq", settings=settings, embedder=embedder)
    return tmp_path / "i.kraq"


def lose_a_summary(index: Index) -> None:
    index.delete(Summary, index.ids(Summary)[:1])


def lose_a_question_and_its_vector(index: Index) -> None:
    index.question_vectors.delete(index.ids(Question)[:1])
    index.delete(Question, index.ids(Question)[:1])


def lose_a_document(index: Index) -> None:
    index.delete(Document, ["turing"])


def lose_an_extraction(index: Index) -> None:
    index.delete(Extraction, index.ids(Extraction)[:1])


def lose_an_entity(index: Index) -> None:
    index.delete(Entity, [next(index.all(Relationship)).source_id])


def leave_a_stale_vector(index: Index) -> None:
    store = index.chunk_vectors
    store.upsert(["0" * 32], store.vectors(index.ids(Chunk)[:1]), ["stale"])


def leave_a_stale_claim(index: Index) -> None:
    index.add([Claim("c" * 32, "e" * 32, "Nobody said this.", next(index.all(Chunk)).id)])


def leave_it_unfinished(index: Index) -> None:
    index.update_manifest(complete=False)


@pytest.mark.parametrize(
    ("damage", "problem_text"),
    [
        (lose_a_summary, "communities without a summary"),
        (lose_a_question_and_its_vector, "summaries without a question"),
        (lose_a_document, "chunks of documents that are not there"),
        (lose_an_extraction, "chunks that nothing was extracted from"),
        (lose_an_entity, "relationships with an end that is not there"),
        (leave_a_stale_vector, "vectors of passages that are not there"),
        (leave_a_stale_claim, "claims about entities that are not there"),
        (leave_it_unfinished, "A change was begun and is not finished; until it is, readers do not see it"),
    ],
)
def test_what_is_wrong_is_named_and_mended(
    whole: Path, embedder: KeywordEmbedder, damage: Callable[[Index], None], problem_text: str
) -> None:
    assert check_index(whole).problems == ()
    with Index.open(whole, write=True) as index:
        damage(index)
    report = check_index(whole)
    assert problem_text in [problem.what for problem in report.problems]
    assert repair_index(whole, embedder=embedder).problems == ()


def test_a_mended_index_asks_no_model_for_what_was_answered(whole: Path, embedder: KeywordEmbedder) -> None:
    with Index.open(whole, write=True) as index:
        before = index.results.usage()
        lose_a_summary(index)
        lose_an_extraction(index)
    repair_index(whole, embedder=embedder)
    with Index.open(whole) as index:
        assert index.results.usage() == before


def test_a_damaged_database_is_said_to_be_beyond_repair(whole: Path, embedder: KeywordEmbedder) -> None:
    database = current_home(whole) / "index.db"
    damaged = bytearray(database.read_bytes())
    damaged[4096 * 3 : 4096 * 6] = b"\xff" * (4096 * 3)
    database.write_bytes(damaged)
    with pytest.raises(IndexStateError, match=r"damaged|malformed|Restore"):
        repair_index(whole, embedder=embedder)
