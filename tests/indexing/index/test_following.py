"""A change that is followed leaves the index that the full way leaves, record for record and in the same order."""

import dataclasses
import random
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from kraq_dspy import Index, add_documents, build_index, remove_documents
from kraq_dspy.asset.graph.build import ResolvedMentions
from kraq_dspy.asset.graph.mentions import Mentions
from kraq_dspy.asset.graph.mentions_file import read_mentions
from kraq_dspy.asset.store.index import GRAPH, MENTIONS
from kraq_dspy.errors import IndexStateError
from kraq_dspy.indexing.index import following
from kraq_dspy.indexing.index.check import check_index
from kraq_dspy.indexing.index.following import Following
from kraq_dspy.programs import KRAQ
from kraq_dspy.records import Chunk, Community, Document, Entity, Extraction, Relationship, Summary
from kraq_dspy.settings import ChunkSettings, CommunitySettings, QuestionSettings, Settings, SummarySettings
from kraq_dspy.steps.direct import Done, Item
from kraq_dspy.steps.kept import StageResults
from tests.conftest import KeywordEmbedder
from tests.indexing.small import KINDS
from tests.kept import kept_index

PEOPLE = [f"{first} {last}" for first in ("Ada", "Alan", "Grace") for last in ("Byron", "Hopper", "Turing", "Welchman")]
PEOPLE += ["Ada van Deursen Lee", "Ada van Deusen Lee", "Dollis-Hill", "Dollis Hill"]
SETTINGS = Settings(communities=CommunitySettings(max_size=4))


def document(number: int, version: int = 0) -> Document:
    rng = random.Random(1000 * version + number)
    some = rng.sample(PEOPLE, 5)
    sentences = [
        f"{rng.choice(some)} {verb} {rng.choice(some)} in {rng.choice(['London', 'Oxford'])}."
        for verb in rng.sample(["met", "wrote to", "admired", "taught"], 3)
    ]
    return Document(f"d{number:02}", f"Note {number}", " ".join(sentences))


@pytest.fixture(scope="module")
def embedder(keyword_embedder: type[KeywordEmbedder]) -> KeywordEmbedder:
    return keyword_embedder("byron", "hopper", "turing", "welchman", "lee")


@pytest.fixture
def followed(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each change since was followed."""
    outcomes: list[bool] = []
    follow = Following.follow

    async def noting(self: Following, resolved: ResolvedMentions) -> bool:
        outcomes.append(await follow(self, resolved))
        return outcomes[-1]

    monkeypatch.setattr(Following, "follow", noting)
    return outcomes


def contents(path: Path) -> dict[str, Any]:
    with Index.open(path) as index:
        records = {kind.__name__: sorted(map(repr, index.all(kind))) for kind in KINDS}
        vectors = {"question vectors": index.question_vectors.ids(), "chunk vectors": index.chunk_vectors.ids()}
        summaries = index.results.outputs("summarize", index.ids(Summary))  # what else would be paid for again
        return {**records, **vectors, "walks": (index.home / GRAPH).read_bytes(), "kept": summaries}


@pytest.mark.parametrize("seed", [1])  # a change, a removal, an addition
def test_a_followed_change_leaves_what_the_full_way_leaves(
    tmp_path: Path, embedder: KeywordEmbedder, followed: list[bool], monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    rng = random.Random(seed)
    kept_mentions = Index._kept_mentions
    paths = tmp_path / "followed.kraq", tmp_path / "full.kraq"
    have = set(range(0, 40, 2))
    kept_index([document(number) for number in sorted(have)], paths[0], settings=SETTINGS, embedder=embedder)
    shutil.copytree(*paths)
    for _ in range(4):
        number, is_removal = rng.randrange(41), rng.random() < 0.4
        for path, small in zip(paths, (0.25, -1.0), strict=True):
            monkeypatch.setattr(following, "_SMALL", small)
            if path == paths[1]:  # reads all extractions
                monkeypatch.setattr(Index, "_kept_mentions", lambda index: (Mentions(), {}))
            else:
                monkeypatch.setattr(Index, "_kept_mentions", kept_mentions)
            if is_removal and number in have:
                remove_documents(path, [document(number).id], embedder=embedder)
            else:  # new, or another text in the place of one
                add_documents(path, [document(number, version=1)], embedder=embedder)
        have = have - {number} if is_removal and number in have else have | {number}
        assert contents(paths[0]) == contents(paths[1])
    assert followed == [True, False] * 4
    assert check_index(paths[0]).problems == ()


def test_names_that_a_new_document_makes_one_and_its_removal_parts_again_change_their_neighbours_too(
    tmp_path: Path, embedder: KeywordEmbedder, followed: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    short = Document("short", "Short", "Ada Byron wrote to QRT in Oxford. Alan Turing met QRT in London.")
    long = Document("long", "Long", "Ada Byron admired Quarterly Review Trust. Grace Hopper taught Alan Welchman.")
    both = Document("both", "Both", "Quarterly Review Trust (QRT) met Grace Turing in Oxford.")
    paths = tmp_path / "followed.kraq", tmp_path / "full.kraq"
    kept_index([document(n) for n in range(20)] + [short, long], paths[0], settings=SETTINGS, embedder=embedder)
    shutil.copytree(*paths)

    names = []
    changes: tuple[Callable[[Path], object], ...] = (
        lambda path: add_documents(path, [both], embedder=embedder),
        lambda path: remove_documents(path, ["both"], embedder=embedder),
    )
    for change in changes:
        for path, small in zip(paths, (9.0, -1.0), strict=True):
            monkeypatch.setattr(following, "_SMALL", small)
            change(path)
        assert contents(paths[0]) == contents(paths[1])
        with Index.open(paths[0]) as index:
            names.append(sorted(entity.names for entity in index.all(Entity) if "QRT" in entity.names))
    assert names == [[("Quarterly Review Trust", "QRT")], [("QRT",)]]
    assert followed == [True, False] * 2


def test_a_relationship_that_was_lost_sends_the_change_the_full_way_which_makes_it_again(
    tmp_path: Path, embedder: KeywordEmbedder, followed: list[bool]
) -> None:
    path = tmp_path / "i.kraq"
    kept_index([document(n) for n in range(8)], path, settings=SETTINGS, embedder=embedder)
    far = Document("far", "Far away", "Zaphod visited Magrathea. Zaphod stole Magrathea from Slartibartfast.")
    with Index.open(path, write=True) as index:
        lost = next(index.all(Relationship)).id
        index.delete(Relationship, [lost])
    add_documents(path, [far], embedder=embedder)
    assert followed == [False]
    with Index.open(path) as index:
        assert index.get(Relationship, [lost])


def test_a_change_also_takes_in_what_failed_before_wherever_it_stands(
    tmp_path: Path, embedder: KeywordEmbedder, followed: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, whole = tmp_path / "i.kraq", tmp_path / "whole.kraq"
    extract = type(KRAQ(SETTINGS, embedder).extract)
    aforward = extract.aforward

    async def failing(self: Any, passage: str) -> Any:
        if passage.startswith(("Note 3", "Note 5")):
            raise ValueError("nothing can be said of this")
        return await aforward(self, passage=passage)

    with monkeypatch.context() as patch:
        patch.setattr(extract, "aforward", failing)
        report = build_index([document(n) for n in range(24)], path, settings=SETTINGS, embedder=embedder)
    assert len(report.failures) == 2
    report = add_documents(path, [document(36), document(4, version=1)], embedder=embedder)
    assert (followed, report.failures) == ([True], ())
    assert (report.documents.added, report.documents.changed, report.documents.removed) == (1, 1, 0)
    texts = [document(n, version=n == 4) for n in [*range(24), 36]]
    kept_index(texts, whole, settings=SETTINGS, embedder=embedder)
    changed, made_anew = contents(path), contents(whole)
    for kind in (
        "Document",
        "Chunk",
        "Extraction",
        "Entity",
        "Relationship",
        "Claim",
        "Merge",
        "walks",
        "chunk vectors",
    ):
        assert changed[kind] == made_anew[kind]


def test_only_new_chunks_and_communities_with_something_new_are_looked_up(
    tmp_path: Path, embedder: KeywordEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "i.kraq"
    asking = dataclasses.replace(SETTINGS, questions=QuestionSettings(asked_by="model"))
    kept_index([document(n) for n in range(8)], path, settings=asking, embedder=embedder)
    looked_up: list[tuple[str, str]] = []
    find = StageResults.find

    def noting(self: StageResults, item: Item) -> Done | None:
        looked_up.append((self._stage, item.id))
        return find(self, item)

    monkeypatch.setattr(StageResults, "find", noting)
    far = Document("far", "Far away", "Zaphod visited Magrathea. Zaphod stole Magrathea from Slartibartfast.")
    report = add_documents(path, [far], embedder=embedder)
    with Index.open(path) as index:
        [chunk] = index.all(Chunk, document_id="far")
        new = [c.id for c in index.all(Community) if chunk.id in c.chunk_ids and len(c.entity_ids) > 1]
    assert [id for stage, id in looked_up if stage == "extract"] == [chunk.id]
    assert sorted(id for stage, id in looked_up if stage == "ask") == sorted(new)
    assert len(new) < report.counts["summaries"]


def test_only_new_extractions_are_read_where_what_the_others_say_was_kept(
    tmp_path: Path, embedder: KeywordEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "i.kraq"
    kept_index([document(n) for n in range(0, 16, 2)], path, settings=SETTINGS, embedder=embedder)
    read: list[list[str]] = []
    get = Index.get

    def noting(self: Index, kind: type[Any], ids: Sequence[str]) -> list[Any]:
        if kind is Extraction:
            read.append(list(ids))
        return get(self, kind, ids)

    monkeypatch.setattr(Index, "get", noting)
    add_documents(path, [document(5)], embedder=embedder)
    remove_documents(path, [document(8).id], embedder=embedder)
    with Index.open(path) as index:
        assert read == [[chunk.id for chunk in index.all(Chunk, document_id=document(5).id)]]
        assert index.mentions().chunk_ids == list(index.reading_order())

        kept, _ = read_mentions(index.home / MENTIONS) or (Mentions(), {})
        anew = Mentions.of(index.extractions())
        assert sorted(kept.names(), key=repr) == sorted(anew.names(), key=repr)
        assert set(kept.texts) == set(anew.texts)


def test_a_change_behind_one_that_was_broken_off_goes_the_full_way(
    tmp_path: Path, embedder: KeywordEmbedder, monkeypatch: pytest.MonkeyPatch, followed: list[bool]
) -> None:
    path, new = tmp_path / "i.kraq", tmp_path / "new.kraq"
    kept_index([document(n) for n in range(8)], path, settings=SETTINGS, embedder=embedder)

    def broken(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Following, "_keep_communities", broken)  # entities and relationships are written by then
        with pytest.raises(KeyboardInterrupt):
            add_documents(path, [document(8)], embedder=embedder)
    remove_documents(path, [document(8).id], embedder=embedder)
    add_documents(path, [document(9)], embedder=embedder)
    assert followed == [True]
    kept_index([document(n) for n in [*range(8), 9]], new, settings=SETTINGS, embedder=embedder)
    changed, made_anew = contents(path), contents(new)
    for kind in ("Entity", "Relationship", "Claim", "Merge", "walks"):
        assert changed[kind] == made_anew[kind]


def test_a_graph_of_passages_that_cannot_be_written_ends_the_change_and_the_next_one_makes_it(
    tmp_path: Path, embedder: KeywordEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, new = tmp_path / "i.kraq", tmp_path / "new.kraq"
    kept_index([document(n) for n in range(8)], path, settings=SETTINGS, embedder=embedder)
    before = contents(path)

    def full(*_: Any) -> None:
        raise IndexStateError("The disk is full.")

    with monkeypatch.context() as patch:
        patch.setattr(Index, "save_passage_graph", full)
        with pytest.raises(IndexStateError, match="disk is full"):
            add_documents(path, [document(8)], embedder=embedder)
    assert contents(path) == before
    add_documents(path, [document(9)], embedder=embedder)
    kept_index([document(n) for n in range(10)], new, settings=SETTINGS, embedder=embedder)
    assert contents(path)["walks"] == contents(new)["walks"]


def test_a_lost_entity_is_made_again(tmp_path: Path, embedder: KeywordEmbedder, followed: list[bool]) -> None:
    path = tmp_path / "i.kraq"
    kept_index([document(n) for n in range(8)], path, settings=SETTINGS, embedder=embedder)
    with Index.open(path, write=True) as index:
        lost = next(index.all(Relationship)).source_id
        index.delete(Entity, [lost])
    add_documents(path, [document(8)], embedder=embedder)
    assert followed == [True]
    assert check_index(path).problems == ()
    with Index.open(path) as index:
        assert index.get(Entity, [lost])


def test_with_other_settings_or_questions_by_chance_everything_is_looked_at(
    tmp_path: Path, embedder: KeywordEmbedder, followed: list[bool]
) -> None:
    path = tmp_path / "i.kraq"
    kept_index([document(n) for n in range(4)], path, settings=SETTINGS, embedder=embedder)
    other = dataclasses.replace(SETTINGS, summaries=SummarySettings(min_entities=3))
    add_documents(path, [document(4)], settings=other, embedder=embedder)
    assert followed == []
    add_documents(path, [document(5)], embedder=embedder)  # the index's own by now
    assert followed == [True]
    add_documents(path, [document(6)], random_questions=True, embedder=embedder)
    add_documents(path, [document(7)], embedder=embedder)
    assert followed == [True]
    with Index.open(path) as index:
        assert index.questions(source="random")


def test_passages_of_a_document_that_nothing_links_are_one_broad_community_when_built_and_when_added(
    tmp_path: Path, embedder: KeywordEmbedder, followed: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "_SMALL", 9.0)
    path, settings = tmp_path / "i.kraq", Settings(chunks=ChunkSettings(tokens=12, overlap=0))
    first = Document(
        "first", "First", "Ada Byron met Alan Turing in London. Grace Hopper taught Kay Welchman in Oxford."
    )
    second = Document("second", "Second", "Bede Carr met Cora Dane in Perth. Elin Frost taught Gus Hale in Madrid.")
    kept_index([first], path, settings=settings, embedder=embedder)
    add_documents(path, [second], embedder=embedder)
    with Index.open(path) as index:
        documents, several = index.reading_order(), [each for each in index.all(Community) if len(each.entity_ids) > 1]
        broadest = [[documents[chunk_id] for chunk_id in each.chunk_ids] for each in several if each.level == 0]
    assert sorted(broadest) == [["first", "first"], ["second", "second"]]
    assert followed == [True]


def test_what_a_change_takes_over_is_linked_and_the_state_before_stays_as_it_was(
    tmp_path: Path, embedder: KeywordEmbedder
) -> None:
    path = tmp_path / "x.kraq"
    kept_index([document(number) for number in range(12)], path, settings=SETTINGS, embedder=embedder)
    with Index.open(path) as before:
        files = [file for file in before.home.rglob("*") if file.is_file()]
        contents = {file: file.read_bytes() for file in files}
        assert {"index.db", GRAPH} <= {file.name for file in files}
        with Index.open(path, write=True) as draft:
            names = ("index.db", GRAPH)
            assert [(draft.home / name).samefile(before.home / name) for name in names] == [False, True]
        add_documents(path, [document(20)], embedder=embedder)
        assert {file: file.read_bytes() for file in files} == contents


@dataclasses.dataclass
class LinksOnly:
    """A change of links alone, by id: their weights now and before."""

    now: dict[str, float]
    before: dict[str, float]

    def new(self, kind: type) -> list[Relationship]:
        return [Relationship(id, "a", "b", "met", "", weight, ()) for id, weight in self.now.items()]

    def former(self, kind: type) -> list[Relationship]:
        return [Relationship(id, "a", "b", "met", "", weight, ()) for id, weight in self.before.items()]


@pytest.mark.parametrize(
    ("now", "before", "total", "small"),
    [
        ({"came": 1.0}, {}, 5.0, True),  # a quarter of the four that there were
        ({"came": 1.1}, {}, 5.1, False),
        ({}, {"went": 1.0}, 4.0, True),  # a quarter of the four that are left
        ({}, {"went": 1.1}, 4.0, False),
        ({"grew": 3.0}, {"grew": 2.0}, 5.0, True),  # what stayed of a link does not count
        ({"came": 0.6}, {"went": 0.6}, 4.0, False),  # what came does not make up for what went
    ],
)
def test_a_change_is_small_up_to_a_quarter_of_the_links_before_or_after_it_whichever_are_fewer(
    now: dict[str, float], before: dict[str, float], total: float, small: bool
) -> None:
    change: Any = LinksOnly(now, before)
    assert following._is_small(change, total) is small
