"""Tests that removed text leaves no trace in any byte of an index, but in the files that the guide names."""

import json
import re
import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from kraq_dspy import Index, add_documents, build_index, remove_documents
from kraq_dspy.asset.store.faq import FAQ, NewEntry
from kraq_dspy.asset.store.instructed import INSTRUCTED, InstructedRow, InstructedStore, any_instructed
from kraq_dspy.errors import UnknownRecordError
from kraq_dspy.extend import FaqCache, LanguageModels
from kraq_dspy.indexing.faq.synthesize import SyntheticPlan, make_synthetic_pairs
from kraq_dspy.indexing.index.check import check_index, repair_index
from kraq_dspy.indexing.prepare.k2rag import build_summarised
from kraq_dspy.indexing.prepare.qa_pairs import make_qa_pairs
from kraq_dspy.indexing.prepare.raptor import build_tree
from kraq_dspy.indexing.view.views import open_view
from kraq_dspy.records import Chunk, Document, Entity
from kraq_dspy.settings import Settings
from tests.conftest import KeywordEmbedder
from tests.kept import kept_index

STAYING = [
    Document("ada", "Ada", "Ada Lovelace worked with Charles Babbage. Charles Babbage designed the Engine in London."),
    Document("turing", "Turing", "Alan Turing worked at Bletchley Park. Alan Turing designed the Bombe."),
]
FACTS = [
    f"Quenby Zörblax{number:03} painted the “Vermilion” Lighthouse{number:03} in Marsport." for number in range(40)
]
NAMES = [f"Zörblax{number:03}" for number in range(40)]
PLANTED = [Document(f"planted{n}", f"Planted {n}", " ".join(FACTS[10 * n : 10 * n + 10])) for n in range(4)]
GONE = [document.id for document in PLANTED]


@pytest.fixture
def embedder(keyword_embedder: type[KeywordEmbedder]) -> KeywordEmbedder:
    return keyword_embedder("ada", "babbage", "turing", "zörblax", "lighthouse")


@pytest.fixture
def planted(tmp_path: Path, embedder: KeywordEmbedder) -> Path:
    return kept_index([*STAYING, *PLANTED], tmp_path / "x.kraq", embedder=embedder)


def contents(path: Path) -> Iterator[bytes]:
    """All that is in a file: its bytes, what lies compressed in them, and every value of its tables."""
    content = path.read_bytes()
    yield content
    for match in re.finditer(rb"\xff(?=\x78\x5e)", content):
        yield decompressed(content[match.end() : match.end() + (1 << 20)])
    if content.startswith(b"SQLite format 3\0"):
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            for (table,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
                for value in (value for row in connection.execute(f'SELECT * FROM "{table}"') for value in row):
                    if isinstance(value, str | bytes):
                        yield value.encode() if isinstance(value, str) else value


def decompressed(content: bytes) -> bytes:
    """As much as can be read: what is left of a row may break off anywhere."""
    reader, text = zlib.decompressobj(), b""
    try:
        for start in range(0, len(content), 64):
            text += reader.decompress(content[start : start + 64])
            if reader.eof:
                break
    except zlib.error:
        pass
    return text


def traces(index: Path, texts: list[str]) -> dict[str, int]:
    """How many of the texts are in each file, as they are or escaped as JSON; files with none are left out."""
    forms = [{text.encode(), json.dumps(text)[1:-1].encode()} for text in texts]
    found = {}
    for path in sorted(path for path in index.rglob("*") if path.is_file()):
        whole = b"\0".join(contents(path))
        found[path.relative_to(index).as_posix()] = sum(any(form in whole for form in some) for some in forms)
    return {name: count for name, count in found.items() if count}


def test_planted_facts_are_found(planted: Path) -> None:
    assert traces(planted, FACTS) == {"states/1/index.db": 40, "states/1/mentions.arrays": 40}


@pytest.mark.parametrize("at_once", [True, False])
def test_removed_documents_leave_nothing(planted: Path, embedder: KeywordEmbedder, at_once: bool) -> None:
    for ids in [GONE] if at_once else [[one] for one in GONE]:
        remove_documents(planted, ids, embedder=embedder)
    assert traces(planted, FACTS + NAMES) == {}


def test_a_document_that_changed_leaves_nothing_of_what_it_said(planted: Path, embedder: KeywordEmbedder) -> None:
    add_documents(planted, [Document(one, "Empty", f"Nothing to be told of {one}.") for one in GONE], embedder=embedder)
    assert traces(planted, FACTS + NAMES) == {}


def test_what_was_prepared_of_them_goes_or_is_said_to_stay(planted: Path, embedder: KeywordEmbedder) -> None:
    models = LanguageModels(Settings(), embedder=embedder)
    with Index.open(planted, write=True) as index:
        build_tree(index, embedder, models)
        make_qa_pairs(index, models)
        build_summarised(index, embedder, models)
        with FaqCache(planted / FAQ) as faq:
            make_synthetic_pairs(index, faq, models, SyntheticPlan(least=1), by="ann", approve=True)
    with FaqCache(planted / FAQ) as faq:
        number = faq.add(NewEntry("Who painted it?", FACTS[0]), by="ann").number
        made = {entry.number for entry in faq.entries() if {each.document_id for each in entry.sources} & {*GONE}}
    assert made

    report = remove_documents(planted, GONE, embedder=embedder)

    withdrawn, kept, lost = report.problems
    assert withdrawn.endswith(f"that models made of removed documents went with them: no. {numbers(made)}.")
    assert f"no. {number}. They stay because somebody wrote them" in kept
    assert lost.startswith("The summarised corpus of k2rag lost 4 documents; to use it again: kraq precompute")
    assert traces(planted, FACTS + NAMES) == {FAQ: 2}  # a fact and its name
    with FaqCache(planted / FAQ) as faq:
        faq.remove(number, by="ann")
    assert traces(planted, FACTS + NAMES) == {}
    assert check_index(planted).problems == ()


def numbers(of_entries: set[int]) -> str:
    return ", ".join(map(str, sorted(of_entries)))


@pytest.mark.parametrize("count", [200, pytest.param(1000, marks=pytest.mark.slow)])
def test_nothing_is_left_of_facts_about_what_others_tell_of_too(
    tmp_path: Path, embedder: KeywordEmbedder, count: int
) -> None:
    """All facts are about one lake, so they meet in its description, in summaries and in questions that stay."""
    facts = [
        f"Lake Orr was poisoned by the Zorquib{n:04} Society with {n} barrels of tar in {1000 + n}."
        for n in range(count)
    ]
    gone = [Document(f"gone{n}", f"Gone {n}", " ".join(facts[n : n + 10])) for n in range(0, count, 10)]
    staying = [
        Document("lake", "Lake Orr", "Lake Orr lies in Harrow. Harrow lies in Kent."),
        Document("painter", "Mara Voss", "Mara Voss painted Lake Orr. Mara Voss lived in Harrow."),
    ]
    index = tmp_path / "x.kraq"
    build_index([*staying, *gone], index, embedder=embedder, random_questions=True)
    models = LanguageModels(Settings(), embedder=embedder)
    with Index.open(index, write=True) as opened:
        build_tree(opened, embedder, models)
        make_qa_pairs(opened, models)
        build_summarised(opened, embedder, models)
        with FaqCache(index / FAQ) as faq:
            make_synthetic_pairs(opened, faq, models, SyntheticPlan(least=1), by="ann", approve=True)
    names = [f"Zorquib{n:04}" for n in range(count)]
    planted_in = {name.rpartition("/")[2] for name, found in traces(index, names).items() if found}
    assert planted_in >= {"index.db", FAQ}

    halves = [one.id for one in gone[::2]], [one.id for one in gone[1::2]]
    for ids in halves:
        remove_documents(index, ids, embedder=embedder)

    assert traces(index, facts + names + [one.id for one in gone]) == {}
    assert check_index(index).problems == ()


def test_a_check_finds_what_is_left_and_repair_takes_it_out(planted: Path, embedder: KeywordEmbedder) -> None:
    with Index.open(planted, write=True) as index:
        entity = next(index.all(Entity))
        index.results.save("describe", entity.id, "f", {"description": FACTS[0]}, model="m")
        index.results.save("qa pairs", "0" * 32, "f", {"pairs": [{"question": "Who?", "answer": FACTS[1]}]}, model="m")
        index.results.save("summarize", "1" * 32, "f", {"summary": FACTS[2]}, model="m")

    found = [problem.what for problem in check_index(planted).problems]
    assert found == [
        "Traces of removed text: stored answers of the stage 'summarize' about what is not there",
        "Traces of removed text: stored answers of the stage 'qa pairs' about what is not there",
        "Traces of removed text: stored descriptions of what is described otherwise by now",
    ]
    assert repair_index(planted, embedder=embedder).problems == ()


def test_a_former_state_goes_when_its_last_reader_has_closed_it(planted: Path, embedder: KeywordEmbedder) -> None:
    with Index.open(planted):
        remove_documents(planted, GONE, embedder=embedder)
        assert {name.split("/")[1] for name in traces(planted, FACTS)} == {"1"}
    assert traces(planted, FACTS) == {}


def test_views_of_a_former_state_go_with_it(planted: Path, embedder: KeywordEmbedder) -> None:
    with Index.open(planted) as whole:
        open_view(whole, [*GONE, "ada"], embedder).close()
    assert {name.split("/")[0] for name in traces(planted, FACTS)} == {"states", "views"}
    remove_documents(planted, GONE, embedder=embedder)
    assert traces(planted, FACTS + NAMES) == {}


def test_embeddings_seen_from_questions_go_with_their_passages(planted: Path, embedder: KeywordEmbedder) -> None:
    chance = np.random.default_rng(0)
    with Index.open(planted) as index:
        staying = [chunk.id for chunk in index.all(Chunk) if chunk.document_id == "ada"]
        gone = [chunk.id for chunk in index.all(Chunk) if chunk.document_id in GONE]
    vectors = chance.normal(size=(len(gone) + 1, 4)).astype(np.float32)
    path = planted / INSTRUCTED
    with_all = InstructedStore.create(path, encoder_name="e", dimension=4)
    with_all.add([InstructedRow("q", (gone[0], *staying, *gone[1:]), vectors)])
    with_all.close()

    remove_documents(planted, GONE, embedder=embedder)

    left = InstructedStore.create(path, encoder_name="e", dimension=4)
    assert left.holds("q", [*gone, *staying]).tolist() == [False] * len(gone) + [True]
    np.testing.assert_allclose(left.lookup("q", staying)[0][0], vectors[1] / np.linalg.norm(vectors[1]), atol=1e-3)
    left.close()
    with any_instructed(path) as store:
        assert store.damage() == []
    content = path.read_bytes()
    assert [row.astype(np.float16).tobytes() in content for row in vectors] == [False, True] + [False] * (len(gone) - 1)


class Killed(BaseException):
    pass


def test_a_removal_that_was_killed_is_finished_by_the_same_command(
    planted: Path, embedder: KeywordEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr("kraq_dspy.indexing.index.build.Builder.build", killed)
        with pytest.raises(Killed):
            remove_documents(planted, GONE, embedder=embedder)
    with Index.open(planted) as index:
        assert index.count(Document) == 6  # readers see what there was
    remove_documents(planted, GONE, embedder=embedder)
    with Index.open(planted) as index:
        assert sorted(index.ids(Document)) == ["ada", "turing"]
    assert traces(planted, FACTS + NAMES) == {}
    with pytest.raises(UnknownRecordError, match="has no document 'planted0'"):
        remove_documents(planted, GONE, embedder=embedder)
