"""An index that lost something says what, and is mended from what is left."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from kraq_dspy import Index, remove_documents
from kraq_dspy.asset.store.own_files import write_sums
from kraq_dspy.errors import IndexStateError
from kraq_dspy.indexing.index.check import check_index, repair_index
from kraq_dspy.records import Chunk, Claim, Community, Document, Entity, Extraction, Question, Relationship, Summary
from kraq_dspy.settings import CommunitySettings, Settings
from kraq_dspy.workspace import Workspace
from tests.asset.store.indexes import current_home
from tests.conftest import KeywordEmbedder
from tests.kept import kept_index

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
    settings = Settings(communities=CommunitySettings(max_size=4))
    return kept_index(DOCUMENTS, tmp_path / "i.kraq", settings=settings, embedder=embedder)


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


def spoil(name: str) -> Callable[[Path], None]:
    def act(home: Path) -> None:
        content = bytearray((home / name).read_bytes())
        content[len(content) // 2] ^= 4
        (home / name).write_bytes(content)

    return act


def lose(name: str) -> Callable[[Path], None]:
    return lambda home: (home / name).unlink()


def change_a_letter(table: str, *, unnoticed_in_the_file: bool = False) -> Callable[[Path], None]:
    """In a record, whose page stays a good one."""

    def act(home: Path) -> None:
        with closing(sqlite3.connect(home / "index.db")) as connection, connection:
            changed = connection.execute(
                f"UPDATE {table} SET data = replace(data, 'a', 'e') WHERE seq = (SELECT max(seq) FROM {table})"
            ).rowcount
        assert changed == 1
        if unnoticed_in_the_file:
            write_sums(home)

    return act


@pytest.mark.parametrize(
    ("damage", "problem_text"),
    [
        (spoil("vectors/chunks"), "The file vectors/chunks is damaged: its content has changed"),
        (spoil("vectors/questions"), "The file vectors/questions is damaged: its content has changed"),
        (spoil("passages.graph"), "The file passages.graph is damaged: its content has changed"),
        (spoil("mentions.arrays"), "The file mentions.arrays is damaged: its content has changed"),
        (lose("mentions.arrays"), "The file mentions.arrays is damaged: it is missing"),
        (lose("vectors/chunks"), "The file vectors/chunks is damaged: it is missing"),
        (lose("sums.json"), "The file sums.json is damaged: it cannot be read"),
        (
            change_a_letter("summaries"),
            "The file index.db is damaged: its content has changed",
        ),
        *(
            (change_a_letter(table, unnoticed_in_the_file=True), f"in part: {table} that are not what was written")
            for table in ("chunks", "entities", "relationships", "communities", "summaries", "questions")
        ),
    ],
)
def test_damage_is_named_and_mended_without_asking_a_model(
    whole: Path, embedder: KeywordEmbedder, damage: Callable[[Path], None], problem_text: str
) -> None:
    def kept(index: Index) -> tuple[dict[str, int], list[Community], list[Question]]:
        return index.counts(), list(index.all(Community)), list(index.all(Question))

    with Index.open(whole) as index:
        usage, before = index.results.usage(), kept(index)
    damage(current_home(whole))
    assert any(problem.what.endswith(problem_text) for problem in check_index(whole).problems)
    assert repair_index(whole, embedder=embedder).problems == ()
    with Index.open(whole) as index:
        assert (index.results.usage(), kept(index)) == (usage, before)


def test_a_damaged_document_is_beyond_repair_where_its_file_is_not_known(
    whole: Path, embedder: KeywordEmbedder
) -> None:
    change_a_letter("documents", unnoticed_in_the_file=True)(current_home(whole))
    with pytest.raises(IndexStateError, match=r"documents that are not what was written.*Restore"):
        repair_index(whole, embedder=embedder)
    with Index.open(whole) as index:
        assert index.count(Document) == len(DOCUMENTS)


@pytest.mark.parametrize("damage", [spoil("vectors/chunks"), lose("vectors/chunks")])
def test_damaged_vectors_are_told_by_whoever_asks(
    whole: Path, embedder: KeywordEmbedder, damage: Callable[[Path], None]
) -> None:
    damage(current_home(whole))
    with (
        Workspace.open(whole, embedder=embedder) as space,
        pytest.raises(IndexStateError, match=r"vectors/chunks' is damaged: .*kraq check DIR --repair"),
    ):
        space.retriever("dense")("Who?", 3)


def test_a_damaged_record_is_told_by_whoever_reads_it(whole: Path) -> None:
    change_a_letter("questions", unnoticed_in_the_file=True)(current_home(whole))
    with Index.open(whole) as index, pytest.raises(IndexStateError, match=r"The Question .* is damaged"):
        list(index.all(Question))


def test_a_change_does_not_take_damage_over(whole: Path, embedder: KeywordEmbedder) -> None:
    spoil("vectors/chunks")(current_home(whole))
    with pytest.raises(IndexStateError, match=r"vectors/chunks' is damaged"):
        remove_documents(whole, ["ada"], embedder=embedder)


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
