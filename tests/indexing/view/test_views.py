"""A view is what an index of its documents alone would be: its records, its numbers, its files."""

import dataclasses
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from dspy.utils import DummyLM

from kraq_dspy import Document, Workspace, build_index, update_index
from kraq_dspy.asset.store.vectors import LocalVectorStore
from kraq_dspy.extend import Chunk, Community, Entity, Question, Relationship, Summary
from kraq_dspy.records import Claim, Extraction, Merge, Record
from tests.kept import kept_index

SECRET = "Zanzibarkanarie"
OPEN = [
    Document("ada", "Ada Lovelace", "Ada Lovelace met Charles Babbage in London. Ada Lovelace wrote notes."),
    Document("babbage", "Charles Babbage", "Charles Babbage built an engine in London. He knew Ada Lovelace."),
    Document("london", "London", "London is a city in England. Charles Babbage lived in London."),
    Document("byron", "Lord Byron", "Lord Byron wrote Don Juan. Lord Byron was the father of Ada Lovelace."),
]
HIDDEN = [
    Document("affair", f"The affair {SECRET}", f"{SECRET} paid Charles Babbage for an engine in London."),
    Document("letter", "A letter", f"Ada Lovelace wrote to {SECRET}. Lord Byron met {SECRET} in London."),
]
KINDS: list[type[Record]] = [
    Document, Chunk, Extraction, Entity, Relationship, Claim, Merge, Community, Summary, Question,
]  # fmt: skip
QUESTIONS = ["Who met Charles Babbage in London?", f"What did {SECRET} pay for?", "Who wrote Don Juan?"]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("views")
    kept_index([OPEN[0], HIDDEN[0], *OPEN[1:], HIDDEN[1]], folder / "all.kraq")
    kept_index(OPEN, folder / "open.kraq")
    return folder


@pytest.fixture
def folder(built: Path, tmp_path: Path) -> Path:
    shutil.copytree(built, tmp_path / "copy")
    return tmp_path / "copy"


@pytest.fixture
def whole(folder: Path) -> Iterator[Workspace]:
    with Workspace.open(folder / "all.kraq") as space:
        yield space


@pytest.fixture
def rest(whole: Workspace) -> Iterator[Workspace]:
    with whole.without([document.id for document in HIDDEN]) as space:
        yield space


@pytest.fixture
def alone(folder: Path) -> Iterator[Workspace]:
    with Workspace.open(folder / "open.kraq") as space:
        yield space


@pytest.mark.parametrize("kind", KINDS)
def test_its_records_are_those_of_an_index_of_its_documents_alone(
    kind: type[Record], rest: Workspace, alone: Workspace
) -> None:
    assert sorted(map(repr, rest.index.all(kind))) == sorted(map(repr, alone.index.all(kind)))


@pytest.mark.parametrize("name", ["dense", "bm25", "hybrid", "fusion", "pagerank", "adaptive", "combined", "reranked"])
def test_retrievers_find_the_same_with_the_same_scores(name: str, rest: Workspace, alone: Workspace) -> None:
    for question in QUESTIONS:
        hits, expected = rest.retriever(name)(question, 4), alone.retriever(name)(question, 4)
        assert [hit.chunk.id for hit in hits] == [hit.chunk.id for hit in expected]
        assert [hit.score for hit in hits] == pytest.approx([hit.score for hit in expected], abs=1e-6)


def test_what_is_hidden_stands_in_none_of_its_files(rest: Workspace) -> None:
    files = [path for path in rest.index.path.rglob("*") if path.is_file()]
    assert len(files) > 4
    assert [path for path in files if SECRET.lower().encode() in path.read_bytes().lower()] == []


def test_neither_starters_nor_next_questions_name_what_is_hidden(rest: Workspace) -> None:
    prediction = rest.ask(f"What did {SECRET} pay for?")
    suggested = [*rest.starters(), *prediction.next_questions]
    assert suggested
    assert SECRET not in repr(suggested) + repr(prediction.hits)


def test_a_summary_stays_as_its_model_wrote_it_where_it_was_shown_nothing_hidden(tmp_path: Path) -> None:
    islands = [
        Document("skye", "Skye", "Flora MacDonald hid Charles Stuart on Skye."),
        Document("rum", "Rum", "George Bullough built Kinloch Castle on Rum. George Bullough married Monica Lilly."),
        Document("muck", "Muck", f"Kinloch Castle was sold to {SECRET}. Monica Lilly met {SECRET}."),
    ]
    said = {"title": "What the model said", "summary": "The model saw these people.", "findings": "[]"}
    build_index(islands, tmp_path / "islands.kraq", lm={"summarizer": DummyLM([said] * 20)})

    with Workspace.open(tmp_path / "islands.kraq") as space, space.without(["muck"]) as rest:
        assert {summary.title for summary in space.index.all(Summary)} == {"What the model said"}
        by_model = {summary.model: summary for summary in rest.index.all(Summary)}
        assert by_model["dummy"].title == "What the model said"  # of Skye
        assert by_model["embedded"].title != "What the model said"  # of Rum, which was summarised together with Muck


def test_the_same_view_is_made_once_and_another_one_where_the_index_has_changed(folder: Path) -> None:
    views = folder / "all.kraq" / "views"
    with Workspace.open(folder / "all.kraq") as space:
        with space.without(["affair"]) as first, space.without(["affair", "no such document"]) as second:
            assert first.index.path == second.index.path
        with space.without(["letter"]) as other:
            assert other.index.path != first.index.path
        assert len(list(views.iterdir())) == 2

    update_index(folder / "all.kraq", [*OPEN, *HIDDEN, Document("new", "New", "London is new.")])
    assert list(views.iterdir()) == []  # nothing of what was removed stays behind in one
    with Workspace.open(folder / "all.kraq") as space, space.without(["affair"]) as rest:
        assert "new" in rest.index.ids(Document)
        assert [path.name for path in views.iterdir()] == [rest.index.path.name]


def test_a_view_of_nothing_answers_from_nothing(whole: Workspace) -> None:
    with whole.without(whole.index.ids(Document)) as nothing:
        assert nothing.ask("Who met Ada Lovelace?").hits == []
        assert nothing.starters() == []


def test_where_the_folder_cannot_be_written_the_view_goes_with_its_workspace(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "all.kraq" / "views").write_text("a file stands where the folder would be made")
    with Workspace.open(folder / "all.kraq") as space:
        with space.without(["affair"]) as rest:
            apart = rest.index.path
            assert "affair" not in rest.index.ids(Document)
        assert not apart.exists()


def test_a_view_of_a_view_hides_both(whole: Workspace) -> None:
    with whole.without(["affair"]) as rest, rest.without(["letter"]) as less:
        assert less.index.ids(Document) == ["ada", "babbage", "london", "byron"]


def test_points_that_are_copied_keep_vectors_words_and_tags(tmp_path: Path, whole: Workspace) -> None:
    store = whole.index.chunk_vectors
    assert isinstance(store, LocalVectorStore)
    ids = sorted(store.ids())[::2]
    store.copy_part([*ids, ids[0]], tmp_path / "part")
    part = LocalVectorStore(tmp_path / "part", store.dimension)
    assert part.ids() == set(ids)
    assert (part.vectors(ids) == store.vectors(ids)).all()
    [chunk] = whole.index.get(Chunk, ids[:1])
    found = part.search_text(chunk.text, 1, filters={"document_id": chunk.document_id})
    assert [chunk_id for chunk_id, _ in found] == ids[:1]
    assert dataclasses.replace(chunk) == chunk
