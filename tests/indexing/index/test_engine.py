"""Tests that an index keeps the engine of Leiden that made it, and that no partition is of two engines unsaid."""

import importlib.util
import sys
from pathlib import Path

import pytest

from kraq_dspy import add_documents, build_index, update_index
from kraq_dspy.asset.store.index import Index
from kraq_dspy.asset.store.manifest import read_fields, write_fields
from kraq_dspy.errors import MissingExtraError
from kraq_dspy.records import Community, Document
from kraq_dspy.settings import CommunitySettings, Settings
from tests.conftest import KeywordEmbedder
from tests.indexing.index.test_following import document

DOCUMENTS = [document(number) for number in range(30)]
NEW = Document("new", "New", "Zaphod met Trillian in Camelot. Zaphod taught Marvin. Trillian admired Marvin.")


@pytest.fixture(scope="module")
def embedder(keyword_embedder: type[KeywordEmbedder]) -> KeywordEmbedder:
    return keyword_embedder("byron", "hopper", "turing", "welchman", "lee")


@pytest.fixture
def former(tmp_path: Path, embedder: KeywordEmbedder) -> Path:
    """An index as it was made before it recorded the engine, which was igraph's."""
    path = tmp_path / "former.kraq"
    build_index(DOCUMENTS, path, settings=by("igraph"), embedder=embedder)
    for folder in (path, *(path / "states").iterdir()):
        if (folder / "manifest.json").is_file():
            fields = read_fields(folder)
            del fields["settings"]["communities"]["engine"]
            write_fields(folder, fields)
    return path


@pytest.fixture
def without_igraph(former: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "igraph" else find_spec(name))
    monkeypatch.setitem(sys.modules, "igraph", None)


def by(engine: str) -> Settings:
    return Settings(communities=CommunitySettings(max_size=4, engine=engine))


def engine_of(path: Path) -> str:
    with Index.open(path) as index:
        return index.manifest.settings.communities.engine


def communities_of(path: Path) -> set[tuple[int, tuple[str, ...]]]:
    with Index.open(path) as index:
        return {(each.level, each.entity_ids) for each in index.all(Community)}


def test_a_new_index_records_the_engine_that_made_it(tmp_path: Path, embedder: KeywordEmbedder) -> None:
    build_index(DOCUMENTS, tmp_path / "i.kraq", embedder=embedder)
    assert engine_of(tmp_path / "i.kraq") == "graspologic"


def test_a_former_index_keeps_its_communities_and_its_engine(former: Path, embedder: KeywordEmbedder) -> None:
    assert engine_of(former) == "igraph"
    before = communities_of(former)
    report = build_index(DOCUMENTS, former, settings=by("auto"), embedder=embedder)
    assert (report.usage, report.problems) == ({}, ())
    assert communities_of(former) == before
    assert engine_of(former) == "igraph"


def test_what_is_added_to_a_former_index_is_found_by_its_engine(
    former: Path, embedder: KeywordEmbedder, tmp_path: Path
) -> None:
    before = communities_of(former)
    report = add_documents(former, [NEW], embedder=embedder)
    assert report.problems == ()
    assert engine_of(former) == "igraph"
    assert before < communities_of(former)


def test_another_engine_that_the_settings_name_finds_all_communities_anew_and_says_so(
    former: Path, embedder: KeywordEmbedder, tmp_path: Path
) -> None:
    before = communities_of(former)
    report = add_documents(former, [NEW], settings=by("graspologic"), embedder=embedder)
    [problem] = report.problems
    assert "graspologic found communities anew" in problem
    assert engine_of(former) == "graspologic"
    assert not before <= communities_of(former)

    build_index([*DOCUMENTS, NEW], tmp_path / "new.kraq", settings=by("graspologic"), embedder=embedder)
    assert communities_of(former) == communities_of(tmp_path / "new.kraq")


@pytest.mark.usefixtures("without_igraph")
@pytest.mark.parametrize("change", ["add", "index again"])
def test_without_igraph_the_communities_of_a_former_index_stay_and_the_report_says_who_finds_new_ones(
    change: str, former: Path, embedder: KeywordEmbedder
) -> None:
    before = communities_of(former)
    if change == "add":
        report = add_documents(former, [NEW], embedder=embedder)
    else:
        report = build_index([*DOCUMENTS, NEW], former, settings=by("auto"), embedder=embedder)
    [problem] = report.problems
    assert "igraph found the communities of this index, and it is not installed" in problem
    assert before < communities_of(former)
    assert engine_of(former) == "graspologic"

    again = add_documents(former, [Document("more", "More", "Arthur met Ford in Avalon.")], embedder=embedder)
    assert again.problems == (), "said once"


@pytest.mark.usefixtures("without_igraph")
def test_without_igraph_recluster_finds_all_communities_of_a_former_index_anew(
    former: Path, embedder: KeywordEmbedder, tmp_path: Path
) -> None:
    report = update_index(former, DOCUMENTS, recluster=True, embedder=embedder)
    [problem] = report.problems
    assert "graspologic found communities anew" in problem
    build_index(DOCUMENTS, tmp_path / "new.kraq", settings=by("graspologic"), embedder=embedder)
    assert communities_of(former) == communities_of(tmp_path / "new.kraq")


def test_recluster_with_igraph_stays_with_igraph(former: Path, embedder: KeywordEmbedder) -> None:
    before = communities_of(former)
    report = update_index(former, DOCUMENTS, recluster=True, embedder=embedder)
    assert report.problems == ()
    assert (engine_of(former), communities_of(former)) == ("igraph", before)


@pytest.mark.usefixtures("without_igraph")
def test_a_new_index_by_igraph_is_refused_before_anything_is_made(tmp_path: Path, embedder: KeywordEmbedder) -> None:
    with pytest.raises(MissingExtraError, match=r"kraq-dspy\[communities\]"):
        build_index(DOCUMENTS, tmp_path / "i.kraq", settings=by("igraph"), embedder=embedder)
    assert not (tmp_path / "i.kraq").exists()
