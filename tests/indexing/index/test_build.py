"""Runs whole builds: real store, real graph, the embedded model or the stand-in server, killed processes."""

import asyncio
import dataclasses
import json
import signal
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from stand_in import stand_in

from kraq_dspy import Index, add_documents, build_index, update_index
from kraq_dspy.errors import CorpusError, EncoderMismatchError, ModelError, RemovedDocumentsError
from kraq_dspy.indexing import BuildReport, DocumentChanges, abuild_index
from kraq_dspy.indexing.index.check import check_index
from kraq_dspy.indexing.index.report import located
from kraq_dspy.ports import SilentProgress, Vectors
from kraq_dspy.records import Chunk, Community, Document, Failure, Question, Summary
from kraq_dspy.settings import EncoderSettings, RoleSettings, RunSettings, Settings
from tests.conftest import KeywordEmbedder, WarmShell
from tests.indexing.small import contents, small
from tests.kept import kept_index

PASSAGES = {
    "Ada Lovelace": "Ada Lovelace wrote notes on the Analytical Engine. "
    "Charles Babbage designed the Analytical Engine. Ada Lovelace was the daughter of Lord Byron.",
    "Charles Babbage": "Charles Babbage invented the Difference Engine in London. Babbage met Ada Lovelace in 1833.",
    "Lord Byron": "Lord Byron wrote Don Juan. Lord Byron was a friend of Percy Shelley. "
    "Lord Byron died in Missolonghi.",
    "Percy Shelley": "Percy Shelley married Mary Shelley. Mary Shelley wrote Frankenstein. "
    "Percy Shelley wrote Ozymandias.",
    "Alan Turing": "Alan Turing worked at Bletchley Park. Alan Turing designed the Bombe with Gordon Welchman.",
    "Bletchley Park": "Bletchley Park housed the Colossus computer. "
    "Tommy Flowers built the Colossus computer at Dollis Hill.",
}
DOCUMENTS = [Document(title, title, text) for title, text in PASSAGES.items()]


@pytest.fixture(scope="module")
def embedder(keyword_embedder: type[KeywordEmbedder]) -> KeywordEmbedder:
    return keyword_embedder("ada", "babbage", "byron", "shelley", "turing", "bletchley", "engine", "wrote")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, embedder: KeywordEmbedder) -> Path:
    out = tmp_path_factory.mktemp("built") / "poets.kraq"
    return kept_index(DOCUMENTS, out, settings=small(), embedder=embedder, random_questions=True)


def test_a_question_leads_back_to_its_documents(built: Path) -> None:
    with Index.open(built) as index:
        chunks = {chunk.id: chunk for chunk in index.all(Chunk)}
        communities = {community.id: community for community in index.all(Community)}
        questions = list(index.questions(source="kraq", duplicates=True))
        assert questions
        for question in questions:
            assert question.community_id is not None
            community = communities[question.community_id]
            assert question.level == community.level
            assert question.chunk_ids == community.chunk_ids
            assert set(question.document_ids) == {chunks[chunk_id].document_id for chunk_id in question.chunk_ids}
            assert question.text.endswith("?") or question.is_topic


def test_each_community_of_two_or_more_has_one_question_and_one_summary(built: Path) -> None:
    with Index.open(built) as index:
        expected = sorted(community.id for community in index.all(Community) if len(community.entity_ids) >= 2)
        assert sorted(summary.community_id for summary in index.all(Summary)) == expected
        questions = index.questions(source="kraq", duplicates=True)
        assert sorted(str(question.community_id) for question in questions) == expected


def test_the_baseline_has_as_many_questions_each_on_two_to_seven_chunks(built: Path) -> None:
    with Index.open(built) as index:
        kraq = list(index.questions(source="kraq", duplicates=True))
        drawn = list(index.questions(source="random", duplicates=True))
    assert len(drawn) == len(kraq)
    assert all(2 <= len(question.chunk_ids) <= 7 for question in drawn)


def test_two_builds_with_one_seed_are_identical(built: Path, tmp_path: Path, embedder: KeywordEmbedder) -> None:
    build_index(DOCUMENTS, tmp_path / "again.kraq", settings=small(), embedder=embedder, random_questions=True)
    assert contents(tmp_path / "again.kraq") == contents(built)


def test_a_second_run_asks_nothing(tmp_path: Path, embedder: KeywordEmbedder) -> None:
    first = build_index(DOCUMENTS, tmp_path / "i.kraq", settings=small(), embedder=embedder)
    before = contents(tmp_path / "i.kraq")
    second = build_index(DOCUMENTS, tmp_path / "i.kraq", settings=small(), embedder=embedder)
    assert first.usage
    assert second.usage == {}
    assert contents(tmp_path / "i.kraq") == before


class StagesBegun(SilentProgress):
    def __init__(self) -> None:
        self.stages: list[str] = []

    def start(self, stage: str, total: int | None) -> None:
        self.stages.append(stage)


@pytest.mark.parametrize("again", [build_index, update_index])
def test_an_index_that_is_as_its_corpus_is_left_as_it_is(
    again: Callable[..., BuildReport], tmp_path: Path, embedder: KeywordEmbedder
) -> None:
    path = tmp_path / "i.kraq"
    first = build_index(DOCUMENTS, path, settings=small(), embedder=embedder)
    before = contents(path)

    begun = StagesBegun()
    index_and_corpus = (DOCUMENTS, path) if again is build_index else (path, DOCUMENTS)
    report = again(*index_and_corpus, settings=small(), embedder=embedder, progress=begun)

    assert "load" in begun.stages
    assert not {"graph", "summarize", "ask"} & set(begun.stages)
    assert report.counts == first.counts
    assert contents(path) == before
    assert check_index(path).whole


def test_communities_that_were_followed_are_found_anew_by_the_next_build(
    tmp_path: Path, embedder: KeywordEmbedder
) -> None:
    path = tmp_path / "i.kraq"
    kept_index(DOCUMENTS[:-1], path, settings=small(), embedder=embedder)
    add_documents(path, DOCUMENTS[-1:], embedder=embedder)

    begun = StagesBegun()
    build_index(DOCUMENTS, path, settings=small(), embedder=embedder, progress=begun)
    assert "graph" in begun.stages
    kept_index(DOCUMENTS, tmp_path / "new.kraq", settings=small(), embedder=embedder)
    assert contents(path) == contents(tmp_path / "new.kraq")


def test_what_an_unchanged_index_lost_is_made_again(tmp_path: Path, embedder: KeywordEmbedder) -> None:
    path = tmp_path / "i.kraq"
    kept_index(DOCUMENTS, path, settings=small(), embedder=embedder)
    with Index.open(path, write=True) as index:
        lost = sorted(index.question_vectors.ids())[0]
        index.question_vectors.delete([lost])

    build_index(DOCUMENTS, path, settings=small(), embedder=embedder)
    with Index.open(path) as index:
        assert lost in index.question_vectors.ids()


def test_a_changed_corpus_leaves_nothing_stale_and_equals_a_new_build(
    tmp_path: Path, embedder: KeywordEmbedder
) -> None:
    changed = [dataclasses.replace(DOCUMENTS[0], text="Ada Lovelace was a countess."), *DOCUMENTS[2:]]
    kept_index(DOCUMENTS, tmp_path / "old.kraq", settings=small(), embedder=embedder)
    report = build_index(changed, tmp_path / "old.kraq", settings=small(), embedder=embedder, replace=True)
    assert report.documents == DocumentChanges(added=0, changed=1, removed=1)
    build_index(changed, tmp_path / "new.kraq", settings=small(), embedder=embedder)
    assert contents(tmp_path / "old.kraq") == contents(tmp_path / "new.kraq")
    with Index.open(tmp_path / "old.kraq") as index:
        assert index.chunk_vectors.ids() == set(index.ids(Chunk))
        assert index.question_vectors.ids() == set(index.ids(Question))


def test_another_corpus_does_not_take_the_place_of_documents_without_a_word(
    tmp_path: Path, embedder: KeywordEmbedder
) -> None:
    path = tmp_path / "i.kraq"
    kept_index(DOCUMENTS, path, settings=small(), embedder=embedder)
    before = contents(path)
    other = Document("new", "New", "Zaphod visited Magrathea.")
    with pytest.raises(RemovedDocumentsError, match=r"does not have \d+ of them .*kraq update --add .*--replace"):
        build_index([other], path, settings=small(), embedder=embedder)
    assert contents(path) == before
    with Index.open(path) as index:
        assert index.manifest.complete


def test_a_folder_that_lost_a_file_is_followed_and_an_index_in_it_is_no_part_of_it(
    tmp_path: Path, embedder: KeywordEmbedder
) -> None:
    for document in DOCUMENTS[:3]:
        (tmp_path / f"{document.id}.txt").write_text(document.text, "utf-8")
    out = tmp_path / "docs.kraq"
    first = build_index(tmp_path, out, settings=small(), embedder=embedder)
    assert (first.counts["documents"], first.failures) == (3, ())
    (tmp_path / f"{DOCUMENTS[0].id}.txt").unlink()
    second = build_index(tmp_path, out, settings=small(), embedder=embedder)
    assert (second.counts["documents"], second.documents.removed, second.failures) == (2, 1, ())


def test_an_option_that_there_is_not_is_named(built: Path) -> None:
    options: Any = {"colour": "red"}
    with pytest.raises(TypeError, match=r"'colour' is no option of a build; known: .*optimized"):
        add_documents(built, DOCUMENTS, **options)


def test_another_encoder_is_refused_with_what_to_do_before_the_index_is_copied(
    built: Path, keyword_embedder: type[KeywordEmbedder]
) -> None:
    before = sorted(str(path) for path in built.rglob("*"))
    with pytest.raises(EncoderMismatchError, match="index the corpus again"):
        build_index(DOCUMENTS, built, settings=small(), embedder=keyword_embedder("other"))
    assert sorted(str(path) for path in built.rglob("*")) == before


def test_a_corpus_without_text_is_an_error(tmp_path: Path, embedder: KeywordEmbedder) -> None:
    with pytest.raises(CorpusError, match="no text"):
        build_index([], tmp_path / "empty.kraq", settings=small(), embedder=embedder)
    with pytest.raises(CorpusError, match="no corpus"):
        build_index(tmp_path / "nowhere", tmp_path / "empty.kraq", settings=small(), embedder=embedder)
    assert not (tmp_path / "empty.kraq").exists()


def served(url: str, concurrency: int = 4) -> Settings:
    return small(
        encoder=EncoderSettings(name="stand-in", api_base=url),
        run=RunSettings(concurrency=concurrency),
        roles={
            "default": RoleSettings(
                model="hosted_vllm/stand-in", api_base=url, structured="json_schema", retries=0, timeout_s=20
            )
        },
    )


def test_items_that_fail_are_listed_and_done_in_the_next_run(tmp_path: Path) -> None:
    with stand_in(rate_500=0.3, seed=2) as server:
        first = build_index(DOCUMENTS, tmp_path / "i.kraq", settings=served(server.url))
        assert first.failures
        assert all(failure.reason for failure in first.failures)
        server.configure(rate_500=0)
        second = build_index(DOCUMENTS, tmp_path / "i.kraq", settings=served(server.url))
        assert second.failures == ()
        whole = build_index(DOCUMENTS, tmp_path / "whole.kraq", settings=served(server.url))
        assert whole.failures == ()
    assert contents(tmp_path / "i.kraq") == contents(tmp_path / "whole.kraq")


def test_what_a_reply_told_of_a_server_is_kept_with_its_reason(tmp_path: Path) -> None:
    with stand_in() as server:
        at = served(server.url)
        auto = dataclasses.replace(at, roles={"default": dataclasses.replace(at.roles["default"], structured="auto")})
        build_index(DOCUMENTS, tmp_path / "i.kraq", settings=auto)
    with Index.open(tmp_path / "i.kraq") as index:
        assert index.manifest.schemas == {"hosted_vllm/stand-in": "under JSON schemas: it kept to one"}


def test_a_failure_in_a_file_of_many_rows_names_the_row(tmp_path: Path) -> None:
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    (corpus / "a.csv").write_text("id,text\nq7,Ada wrote notes.\n")
    (corpus / "b.jsonl").write_text('{"text": "Babbage built an engine."}\n')
    (corpus / "c.txt").write_text("Byron wrote Don Juan.")
    build_index(corpus, tmp_path / "i.kraq", settings=small())
    with Index.open(tmp_path / "i.kraq") as index:
        failures = located(index, [Failure("extract", chunk.id, "torn") for chunk in index.all(Chunk)])
    assert {failure.where for failure in failures} == {
        "a.csv, row 'q7', passage 1",
        "b.jsonl, row 'Babbage built an engine.', passage 1",
        "c.txt, passage 1",
    }


def test_all_stages_together_have_no_more_calls_in_flight_than_allowed(tmp_path: Path) -> None:
    with stand_in(latency_ms=10) as server:
        build_index(DOCUMENTS, tmp_path / "i.kraq", settings=served(server.url, concurrency=3))
        assert server.stats()["max_concurrency"] == 3


def test_a_server_that_is_down_ends_the_run_with_one_message(tmp_path: Path) -> None:
    nowhere = dataclasses.replace(served("http://127.0.0.1:9/v1"), encoder=EncoderSettings())
    with pytest.raises(ModelError, match=r"127\.0\.0\.1:9"):
        build_index(DOCUMENTS * 5, tmp_path / "i.kraq", settings=nowhere)


BUILD = """
import json, sys
from pathlib import Path
from kraq_dspy.indexing.index.build import build_index
from kraq_dspy.settings import settings_from_dict
from kraq_dspy.records import Document
build_index(
    [Document(**fields) for fields in json.loads(Path(sys.argv[1]).read_text())],
    sys.argv[2],
    settings=settings_from_dict(json.loads(Path(sys.argv[3]).read_text())),
)
"""


KILLED_CONCURRENCY = 2


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    """An index that nobody interrupted, and how many prompts of it are equal to an earlier one."""
    out = tmp_path_factory.mktemp("undisturbed") / "whole.kraq"
    with stand_in() as server:
        build_index(DOCUMENTS, out, settings=served(server.url, KILLED_CONCURRENCY))
        return out, server.stats()["repeated_requests"]


@pytest.mark.parametrize("after_calls", [3, 16])
def test_a_killed_build_goes_on_and_pays_no_stored_answer_twice(
    tmp_path: Path, undisturbed: tuple[Path, int], after_calls: int, kraq: WarmShell
) -> None:
    whole, equal_prompts = undisturbed
    documents = tmp_path / "documents.json"
    documents.write_text(json.dumps([dataclasses.asdict(document) for document in DOCUMENTS]))
    with stand_in(latency_ms=40) as server:
        chosen = served(server.url, KILLED_CONCURRENCY)
        (tmp_path / "settings.json").write_text(json.dumps(chosen.to_dict()))
        words = [str(documents), str(tmp_path / "i.kraq"), str(tmp_path / "settings.json")]
        process = kraq.python(BUILD, *words)
        deadline = time.monotonic() + 60
        while server.stats()["requests"] < after_calls and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.005)
        process.kill()
        assert process.wait() == -signal.SIGKILL
        build_index(DOCUMENTS, tmp_path / "i.kraq", settings=chosen)
        repeated = server.stats()["repeated_requests"] - equal_prompts
        assert repeated <= KILLED_CONCURRENCY  # those that were in flight, so that no answer was stored
    assert contents(tmp_path / "i.kraq") == contents(whole)


class WaitingEmbedder(KeywordEmbedder):
    """Its first batch ends when `go_on` is set."""

    def __init__(self) -> None:
        super().__init__("ada")
        self.begun, self.go_on = threading.Event(), threading.Event()
        self.n_batches = 0

    def encode_passages(self, texts: Sequence[str]) -> Vectors:
        self.n_batches += 1
        self.begun.set()
        assert self.go_on.wait(30)
        return super().encode_passages(texts)


def test_a_build_that_is_cancelled_embeds_no_further_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kraq_dspy.asset.store.sync.BATCH", 2)
    embedder, path = WaitingEmbedder(), tmp_path / "i.kraq"

    async def cancelled() -> None:
        building = asyncio.create_task(abuild_index(DOCUMENTS, path, settings=small(), embedder=embedder))
        await asyncio.to_thread(embedder.begun.wait, 30)
        building.cancel()
        await asyncio.sleep(0.1)
        embedder.go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await building

    asyncio.run(cancelled())  # which waits for its threads
    assert embedder.n_batches == 1
    build_index(DOCUMENTS, path, settings=small(), embedder=embedder)
    assert embedder.n_batches == 3
