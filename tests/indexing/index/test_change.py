"""After any edit an index is what a rebuild would make, and only what changed was asked of models."""

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from stand_in import stand_in

from kraq_dspy import Index, Limits, add_documents, build_index, remove_documents, resume_index, update_index
from kraq_dspy.asset.graph.elements import community_elements
from kraq_dspy.asset.store.index import GRAPH
from kraq_dspy.asset.store.own_files import write_sums
from kraq_dspy.errors import BudgetExceededError, CorpusError, IndexStateError, UnknownRecordError
from kraq_dspy.indexing.index.change import removed_before
from kraq_dspy.indexing.index.check import check_index
from kraq_dspy.ports import SilentProgress
from kraq_dspy.records import Chunk, Claim, Community, Document, Entity, Extraction, Relationship
from kraq_dspy.settings import EncoderSettings, RoleSettings, RunSettings
from tests.conftest import KeywordEmbedder
from tests.indexing.small import contents, small
from tests.kept import kept_index

FROM_TEXT = (Document, Chunk, Extraction, Entity, Relationship, Claim)
PEOPLE = ("Ada", "Babbage", "Byron", "Shelley", "Turing", "Welchman", "Flowers", "Hopper")
PLACES = ("London", "Geneva", "Bletchley Park", "Dollis Hill", "Oxford")


def document(number: int, version: int = 0) -> Document:
    rng = random.Random(1000 * version + number)
    sentences = [
        f"{rng.choice(PEOPLE)} {verb} {rng.choice(PEOPLE)} in {rng.choice(PLACES)}."
        for verb in rng.sample(["met", "wrote to", "admired", "taught"], 3)
    ]
    return Document(f"d{number:02}", f"Note {number}", " ".join(sentences))


@pytest.fixture(scope="module")
def embedder(keyword_embedder: type[KeywordEmbedder]) -> KeywordEmbedder:
    return keyword_embedder(*(name.lower() for name in PEOPLE))


@pytest.mark.parametrize("seed", [1, 7])  # each adds, changes and removes
def test_after_random_edits_an_index_equals_a_rebuild_and_nothing_is_stale(
    tmp_path: Path, embedder: KeywordEmbedder, seed: int
) -> None:
    rng = random.Random(seed)
    have = {n: document(n) for n in range(6)}
    path = tmp_path / "edited.kraq"
    kept_index(list(have.values()), path, settings=small(), embedder=embedder)
    for _ in range(5):
        edit = rng.choice(["add", "change", "remove"])
        if edit == "remove" and len(have) > 2:
            gone = rng.sample(sorted(have), 2)
            remove_documents(path, [have.pop(n).id for n in gone], embedder=embedder)
        elif edit == "change":
            number = rng.choice(sorted(have))
            have[number] = document(number, version=rng.randrange(1, 9))
            add_documents(path, [have[number]], embedder=embedder)
        else:
            number = max(have) + 1
            have[number] = document(number)
            add_documents(path, [have[number]], embedder=embedder)
    kept_index(list(have.values()), tmp_path / "new.kraq", settings=small(), embedder=embedder)
    edited, rebuilt = contents(path), contents(tmp_path / "new.kraq")
    for kind in FROM_TEXT:
        assert edited[kind.__name__] == rebuilt[kind.__name__]
    assert check_index(path).problems == ()
    update_index(path, list(have.values()), recluster=True, embedder=embedder)
    assert contents(path) == rebuilt


class Interrupted(SilentProgress):
    """Ends a run like a person who presses Ctrl-C once the documents are read."""

    def start(self, stage: str, total: int | None) -> None:
        if stage != "load":
            raise KeyboardInterrupt


def test_a_document_was_removed_before_once_its_removal_is_complete(tmp_path: Path, embedder: KeywordEmbedder) -> None:
    path = tmp_path / "small.kraq"
    kept_index([document(number) for number in range(3)], path, settings=small(), embedder=embedder)
    asked = ("d00", "d01", "nowhere")
    assert removed_before(path, asked) == set()

    with pytest.raises(KeyboardInterrupt):
        remove_documents(path, ["d00"], embedder=embedder, progress=Interrupted())
    with Index.open(path, unfinished=True) as index:
        assert index.were_removed(asked) == {"d00"}
    assert removed_before(path, asked) == set()  # readers still see it, so the removal is gone on with

    remove_documents(path, ["d00"], embedder=embedder)
    assert removed_before(path, asked) == {"d00"}
    add_documents(path, [document(0)], embedder=embedder)
    assert removed_before(path, asked) == set()


def test_adding_a_document_asks_for_its_extraction_and_for_the_communities_it_touches(
    tmp_path: Path, embedder: KeywordEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_at: list[str] = []

    def elements(community: Community, *others: Any) -> list[str]:
        looked_at.append(community.id)
        return community_elements(community, *others)

    documents = [document(n) for n in range(8)]
    path = tmp_path / "i.kraq"
    kept_index(documents, path, settings=small(), embedder=embedder)
    monkeypatch.setattr("kraq_dspy.programs.kraq.pipeline.community_elements", elements)
    other = Document("far", "Far away", "Zaphod visited Magrathea. Zaphod stole Magrathea from Slartibartfast.")
    report = add_documents(path, [other], embedder=embedder)
    assert report.usage["extract"].calls == 2  # the chunk, and one gleaning round
    assert report.usage["summarize"].calls <= 2
    assert len(looked_at) <= 2 < report.counts["summaries"]
    looked_at.clear()
    assert report.counts["documents"] == 9
    again = add_documents(path, [other], embedder=embedder)
    assert again.usage == {}
    assert looked_at == []


def test_what_is_wrong_is_said_before_anything_changes(tmp_path: Path, embedder: KeywordEmbedder) -> None:
    path = tmp_path / "i.kraq"
    kept_index([document(0), document(1)], path, settings=small(), embedder=embedder)
    before = contents(path)
    with pytest.raises(UnknownRecordError, match="no document 'nowhere'"):
        remove_documents(path, ["d00", "nowhere"], embedder=embedder)
    with pytest.raises(CorpusError, match="This would remove every document"):
        remove_documents(path, ["d00", "d01"], embedder=embedder)
    with pytest.raises(CorpusError, match="no corpus"):
        add_documents(path, tmp_path / "absent.txt", embedder=embedder)
    resume_index(path, embedder=embedder)
    assert contents(path) == before


def test_update_takes_the_corpus_as_it_is_now(tmp_path: Path, embedder: KeywordEmbedder) -> None:
    corpus = tmp_path / "corpus.jsonl"

    def write(documents: Sequence[Document]) -> None:
        rows = [{"id": d.id, "title": d.title, "text": d.text} for d in documents]
        corpus.write_text("\n".join(map(json.dumps, rows)), "utf-8")

    write([document(0), document(1), document(2)])
    build_index(corpus, tmp_path / "i.kraq", settings=small(), embedder=embedder)
    write([document(1), document(2, version=1), document(3)])
    update_index(tmp_path / "i.kraq", corpus, recluster=True, embedder=embedder)
    build_index(corpus, tmp_path / "new.kraq", settings=small(), embedder=embedder)
    assert contents(tmp_path / "i.kraq") == contents(tmp_path / "new.kraq")


def rows_of(path: Path, numbers: Sequence[int]) -> Path:
    rows = [{"title": f"T{number}", "text": f"Ann met Bob in {1900 + number}."} for number in numbers]
    path.write_text("\n".join(map(json.dumps, rows)), "utf-8")
    return path


def test_the_same_texts_of_another_file_change_nothing(tmp_path: Path, embedder: KeywordEmbedder) -> None:
    build_index(rows_of(tmp_path / "a.jsonl", range(5)), tmp_path / "i.kraq", embedder=embedder)
    report = update_index(tmp_path / "i.kraq", rows_of(tmp_path / "b.jsonl", range(5)), embedder=embedder)
    assert (report.documents.added, report.documents.changed, report.documents.removed) == (0, 0, 0)


@pytest.mark.parametrize(("kept", "is_warned"), [(3, True), (4, False)])
def test_a_warning_goes_before_more_than_a_fifth_of_the_documents(
    kept: int, is_warned: bool, tmp_path: Path, embedder: KeywordEmbedder, caplog: pytest.LogCaptureFixture
) -> None:
    build_index(rows_of(tmp_path / "a.jsonl", range(5)), tmp_path / "i.kraq", embedder=embedder)
    report = update_index(tmp_path / "i.kraq", rows_of(tmp_path / "b.jsonl", range(kept)), embedder=embedder)
    assert report.documents.removed == 5 - kept
    assert ("2 of the 5 documents of the index are not in this corpus" in caplog.text) is is_warned


def test_an_equal_text_is_no_failure_and_is_counted(tmp_path: Path, embedder: KeywordEmbedder) -> None:
    report = build_index(rows_of(tmp_path / "a.jsonl", [1, 2, 1]), tmp_path / "i.kraq", embedder=embedder)
    assert (report.counts["documents"], report.failures) == (2, ())
    assert "1 document left out, with the text of an earlier one." in report.problems


def test_a_limit_stops_the_run_and_resume_pays_for_the_rest_alone(tmp_path: Path) -> None:
    documents = [document(n) for n in range(6)]
    with stand_in() as server:
        chosen = small(
            encoder=EncoderSettings(name="stand-in", api_base=server.url),
            run=RunSettings(concurrency=2),
            roles={
                "default": RoleSettings(
                    model="hosted_vllm/stand-in", api_base=server.url, structured="json_schema", prompt_price=2.0
                )
            },
        )
        build_index(documents, tmp_path / "whole.kraq", settings=chosen)
        whole = server.stats()["requests"]
        server.reset()
        for limits in (Limits(max_calls=5), Limits(max_tokens=2000), Limits(max_cost=0.002)):
            with pytest.raises(BudgetExceededError, match="keeps what you paid for"):
                build_index(documents, tmp_path / "i.kraq", settings=chosen, limits=limits)
            with Index.open(tmp_path / "i.kraq") as index:
                assert not index.manifest.complete
        assert 5 < server.stats()["requests"] < whole
        report = resume_index(tmp_path / "i.kraq", limits=Limits(max_calls=1000))
        assert server.stats()["requests"] == whole
        assert report.failures == ()
    assert contents(tmp_path / "i.kraq") == contents(tmp_path / "whole.kraq")


def test_resume_reads_the_corpus_again_or_goes_on_without_it(tmp_path: Path, embedder: KeywordEmbedder) -> None:
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    (corpus / "one.txt").write_text("Ada met Babbage in London. Ada wrote to Byron.")
    path = tmp_path / "i.kraq"
    build_index(corpus, path, settings=small(), embedder=embedder)
    (corpus / "two.txt").write_text("Turing met Welchman at Bletchley Park. Turing taught Flowers.")
    assert resume_index(path, embedder=embedder).counts["documents"] == 2
    before = contents(path)
    (corpus / "one.txt").unlink()
    (corpus / "two.txt").unlink()
    corpus.rmdir()
    assert resume_index(path, embedder=embedder).usage == {}
    assert contents(path) == before


def test_every_state_has_the_graph_of_its_own_passages(tmp_path: Path, embedder: KeywordEmbedder) -> None:
    path = tmp_path / "walked.kraq"
    kept_index([document(n) for n in range(4)], path, settings=small(), embedder=embedder)
    add_documents(path, [document(4)], embedder=embedder)

    with Index.open(path) as index:
        from_file = index.passage_graph()
        (index.home / GRAPH).unlink()
        write_sums(index.home)  # as in a state that never had one
        made_anew = index.passage_graph()
        chunk_ids = sorted(index.ids(Chunk))
        of_both = [graph.visits({chunk_ids[0]: 1.0}, 0.8).shares for graph in (from_file, made_anew)]
        np.testing.assert_allclose(of_both[0], of_both[1])

    assert from_file.knows(chunk_ids) == [True] * 5
    assert not from_file.weights.flags.owndata


def test_a_graph_of_passages_from_before_a_change_does_not_outlive_it(
    tmp_path: Path, embedder: KeywordEmbedder
) -> None:
    path = tmp_path / "changed.kraq"
    kept_index([document(n) for n in range(3)], path, settings=small(), embedder=embedder)

    with Index.open(path, write=True) as index:
        assert (index.home / GRAPH).exists()
        index.update_manifest(complete=False)
        index.replace(Relationship, [])
        index.update_manifest(complete=True)

    with Index.open(path) as index:
        mentions = sum(len(set(entity.chunk_ids)) for entity in index.all(Entity))
        assert len(index.passage_graph().weights) == 2 * mentions


def test_labels_of_a_function_are_not_lost_when_the_corpus_is_read_again(
    tmp_path: Path, embedder: KeywordEmbedder
) -> None:
    corpus, out = tmp_path / "corpus", tmp_path / "x.kraq"
    corpus.mkdir()
    (corpus / "ada.txt").write_text("Ada Lovelace wrote notes on the Analytical Engine.")

    def staff(document: Document) -> list[str]:
        return ["staff"]

    build_index(corpus, out, embedder=embedder, labels=staff)
    with pytest.raises(IndexStateError, match=r"kraq_dspy\.resume_index\(.*, labels=\.\.\.\)"):
        resume_index(out, embedder=embedder)
    with pytest.raises(IndexStateError, match=r"kraq_dspy\.update_index\(.*, corpus, labels=\.\.\.\)"):
        update_index(out, corpus, embedder=embedder)

    resume_index(out, embedder=embedder, labels=staff)
    with Index.open(out) as index:
        assert set(index.labels().values()) == {("staff",)}

    add_documents(out, [Document("bob", "", "Bob Gray met Ada Lovelace.")], embedder=embedder, labels=staff)
    with pytest.raises(IndexStateError, match="A function"):
        update_index(out, corpus, embedder=embedder)
