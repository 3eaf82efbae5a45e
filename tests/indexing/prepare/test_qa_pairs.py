"""Makes pairs of all chunks of a real index, by a model that is asked once for each."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from dspy.utils import DummyLM

from kraq_dspy import Index
from kraq_dspy.errors import IndexStateError, ModelError
from kraq_dspy.indexing.prepare.qa_pairs import STAGE, StoredPairs, make_qa_pairs
from kraq_dspy.programs import WritePairs
from kraq_dspy.records import Chunk, QAPair, content_id
from kraq_dspy.settings import Settings
from tests.indexing.scripted import Models

TEXTS = ["Ada Lovelace wrote notes.", "Charles Babbage built engines.", "It rained."]


def chunk(text: str) -> Chunk:
    return Chunk(content_id("chunk", text), "doc", 0, 0, len(text), text, 1)


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    with Index.create(tmp_path / "corpus.kraq", Settings(), encoder_name="none", encoder_dimension=2) as index:
        index.add([chunk(text) for text in TEXTS])
        yield index


def scripted(**changes: Any) -> DummyLM:
    replies = {text: {"pairs": json.dumps([{"question": f"{text[:3]}?", "answer": text}])} for text in TEXTS}
    return DummyLM({**replies, **changes})


def test_every_chunk_gets_its_pairs_and_a_second_run_asks_nothing(index: Index) -> None:
    lm = scripted()
    report = make_qa_pairs(index, Models(lm))
    assert (report["chunks"], report["pairs"], report["failures"]) == (3, 3, 0)
    assert len(lm.history) == 0  # builds keep no history
    stored = StoredPairs(index.results)
    ids = [chunk(text).id for text in TEXTS]
    assert stored.pairs_of([*ids, "unknown"]) == {
        id: (QAPair(f"{text[:3]}?", text),) for id, text in zip(ids, TEXTS, strict=True)
    }
    again = make_qa_pairs(index, Models(DummyLM([])))
    assert (again["chunks"], again["pairs"], again["calls"]) == (3, 3, 0)


def test_a_chunk_that_fails_is_noted_and_tried_again(index: Index) -> None:
    report = make_qa_pairs(index, Models(scripted(**{TEXTS[2]: {"nothing": "of use"}})))
    assert (report["chunks"], report["failures"]) == (2, 1)
    assert [failure.item_id for failure in index.results.failures(STAGE)] == [chunk(TEXTS[2]).id]
    assert make_qa_pairs(index, Models(scripted()))["failures"] == 0
    assert index.results.failures(STAGE) == []


def test_pairs_of_chunks_that_left_the_index_go(index: Index) -> None:
    make_qa_pairs(index, Models(scripted()))
    index.delete(Chunk, [chunk(TEXTS[0]).id])
    assert make_qa_pairs(index, Models(scripted()))["chunks"] == 2
    assert StoredPairs(index.results).pairs_of([chunk(TEXTS[0]).id]) == {}


def test_other_instructions_ask_again(index: Index) -> None:
    make_qa_pairs(index, Models(scripted()))
    program = WritePairs()
    program.write.signature = program.write.signature.with_instructions("Ask about everything.")
    other = {text: {"pairs": '[{"question": "New?", "answer": "Yes."}]'} for text in TEXTS}
    make_qa_pairs(index, Models(DummyLM(other)), program=program)
    [pairs] = StoredPairs(index.results).pairs_of([chunk(TEXTS[0]).id]).values()
    assert pairs == (QAPair("New?", "Yes."),)


def test_a_model_that_only_fails_ends_the_run(index: Index) -> None:
    with pytest.raises(ModelError, match="All 3 items of the stage 'qa pairs' failed"):
        make_qa_pairs(index, Models(DummyLM({"a": {"b": "c"}})))


def test_an_index_without_passages_says_what_to_do(index: Index) -> None:
    index.replace(Chunk, [])
    with pytest.raises(IndexStateError, match="kraq index"):
        make_qa_pairs(index, Models(scripted()))
