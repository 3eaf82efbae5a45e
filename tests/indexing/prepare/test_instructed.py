"""Prepares passages of a real index for three questions; the encoder counts its passes."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kraq_dspy import Index
from kraq_dspy.apps.cli.precompute import parse_top_n
from kraq_dspy.asset.store.instructed import INSTRUCTED, InstructedStore
from kraq_dspy.errors import ConfigError, EncoderMismatchError, IndexStateError, ModelError
from kraq_dspy.indexing.prepare.instructed import (
    InstructedOptions,
    Price,
    StoredSentences,
    open_precomputed,
    precompute,
    precompute_pairs,
    price_of_pairs,
)
from kraq_dspy.models.embedders.instructed import WeightedSentences
from kraq_dspy.ports import Vectors
from kraq_dspy.records import Chunk, Question, content_id
from kraq_dspy.settings import Settings
from tests.conftest import KeywordEmbedder

TEXTS = ["apple", "apple apple rocket", "rocket", "rocket rocket tax", "tax", "tax tax apple"]


class CountingEncoder:
    """E(d|q): how long passage and question are. Refuses questions with a word of `refuses`."""

    name, dimension = "lengths", 2

    def __init__(self, refuses: str = "never") -> None:
        self.passes: list[tuple[str, str]] = []
        self.refuses = refuses

    def encode(self, question: str, passages: Sequence[str]) -> Vectors:
        if self.refuses in question:
            raise ModelError(f"{question!r} is too long")
        self.passes += [(question, passage) for passage in passages]
        rows = np.array([[len(passage), len(question)] for passage in passages], dtype=np.float32).reshape(-1, 2)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)  # type: ignore[no-any-return]


def chunk(text: str) -> Chunk:
    return Chunk(content_id("chunk", text), "doc", 0, 0, len(text), text, 1, title="T")


def question(text: str, source: str = "kraq") -> Question:
    return Question(content_id("question", text), text, source, None, 0, (), ())


QUESTIONS = [question("what is an apple?"), question("what is a rocket?"), question("what is a tax?")]


@pytest.fixture
def index(tmp_path: Path, keyword_embedder: type[KeywordEmbedder]) -> Iterator[Index]:
    embedder = keyword_embedder("apple", "rocket", "tax")
    with Index.create(
        tmp_path / "corpus.kraq", Settings(), encoder_name=embedder.name, encoder_dimension=embedder.dimension
    ) as index:
        put(index, embedder, [chunk(text) for text in TEXTS], QUESTIONS)
        yield index


def put(index: Index, embedder: KeywordEmbedder, chunks: Sequence[Chunk], questions: Sequence[Question]) -> None:
    index.add([*chunks, *questions])
    if chunks:
        texts = [one.text for one in chunks]
        index.chunk_vectors.upsert([one.id for one in chunks], embedder.encode_passages(texts), texts)
    if questions:
        index.question_vectors.upsert([q.id for q in questions], embedder.encode_queries([q.text for q in questions]))


def stored(index: Index) -> InstructedStore:
    return InstructedStore.open(index.path / INSTRUCTED, encoder_name="lengths")


class Progress:
    def __init__(self) -> None:
        self.events: list[Any] = []

    def start(self, stage: str, total: int | None) -> None:
        self.events.append(("start", stage, total))

    def advance(self, stage: str, done: int = 1, *, prompt_tokens: int = 0, completion_tokens: int = 0) -> None:
        self.events.append(done)

    def finish(self, stage: str) -> None:
        self.events.append(("finish", stage))


def test_each_question_gets_the_vectors_of_its_nearest_passages(index: Index) -> None:
    encoder, progress = CountingEncoder(), Progress()
    report = precompute_pairs(index, encoder, top_n=2, progress=progress)
    assert (report["questions"], report["embedded"], report["kept"], report["failures"]) == (3, 6, 0, ())
    assert sorted(encoder.passes) == [
        ("what is a rocket?", "T\nrocket"),
        ("what is a rocket?", "T\nrocket rocket tax"),
        ("what is a tax?", "T\ntax"),
        ("what is a tax?", "T\ntax tax apple"),
        ("what is an apple?", "T\napple"),
        ("what is an apple?", "T\napple apple rocket"),
    ]
    store = stored(index)
    chunk_ids = [chunk("apple").id, chunk("tax").id]
    vectors, is_stored = store.lookup(QUESTIONS[0].id, chunk_ids)
    assert is_stored.tolist() == [True, False]
    np.testing.assert_allclose(vectors[:1], encoder.encode("what is an apple?", ["T\napple"]), atol=1e-3)
    assert progress.events == [("start", "precompute", 6), 2, 2, 2, ("finish", "precompute")]


def test_all_means_every_passage(index: Index) -> None:
    report = precompute_pairs(index, CountingEncoder(), top_n=None)
    assert report["embedded"] == 3 * len(TEXTS)


def test_only_the_questions_that_are_named_are_done(index: Index) -> None:
    only = frozenset((QUESTIONS[1].id,))
    assert precompute(index, CountingEncoder(), InstructedOptions(top_n=2, only=only))["embedded"] == 2
    assert stored(index).owners() == only
    assert price_of_pairs(index, CountingEncoder(), InstructedOptions(top_n=2)).readings == 4
    assert precompute_pairs(index, CountingEncoder(), top_n=2)["kept"] == 2


def test_running_again_embeds_nothing_and_a_larger_top_n_only_what_is_new(index: Index) -> None:
    precompute_pairs(index, CountingEncoder(), top_n=2)
    second = CountingEncoder()
    report = precompute_pairs(index, second, top_n=2)
    assert (report["embedded"], report["kept"], second.passes) == (0, 6, [])
    assert precompute_pairs(index, CountingEncoder(), top_n=4)["embedded"] == 6


def test_new_passages_and_questions_are_added_and_questions_that_are_gone_are_removed(
    index: Index, keyword_embedder: type[KeywordEmbedder]
) -> None:
    precompute_pairs(index, CountingEncoder(), top_n=2)
    embedder = keyword_embedder("apple", "rocket", "tax")
    put(index, embedder, [chunk("apple pie")], [question("apple or tax?")])
    index.delete(Question, [QUESTIONS[2].id])
    encoder = CountingEncoder()
    report = precompute_pairs(index, encoder, top_n=2)
    # "apple pie" displaces "apple apple rocket"; the new question has two passages of its own.
    assert sorted(passage for question, passage in encoder.passes if question == "what is an apple?") == [
        "T\napple pie"
    ]
    assert len([1 for question, _ in encoder.passes if question == "apple or tax?"]) == 2
    assert report["removed"] == 1
    assert QUESTIONS[2].id not in stored(index).owners()
    assert stored(index).holds(QUESTIONS[0].id, [chunk("apple").id, chunk("apple apple rocket").id]).tolist() == [
        True,
        False,
    ]


def test_an_interrupted_run_keeps_what_it_did_and_goes_on_from_there(index: Index) -> None:
    class Interrupted(CountingEncoder):
        def encode(self, question: str, passages: Sequence[str]) -> Vectors:
            if "tax" in question:
                raise KeyboardInterrupt
            return super().encode(question, passages)

    with pytest.raises(KeyboardInterrupt):
        precompute_pairs(index, Interrupted(), top_n=2)
    encoder = CountingEncoder()
    report = precompute_pairs(index, encoder, top_n=2)
    assert (report["embedded"], report["kept"]) == (2, 4)
    assert {one for one, _ in encoder.passes} == {"what is a tax?"}


def test_a_question_that_the_encoder_refuses_is_counted_and_left_out(index: Index) -> None:
    report = precompute_pairs(index, CountingEncoder(refuses="rocket"), top_n=2)
    assert (report["questions"], report["embedded"]) == (2, 4)
    assert report["failures"] == ((QUESTIONS[1].id, "'what is a rocket?' is too long"),)
    assert QUESTIONS[1].id not in stored(index).owners()


def test_questions_of_one_source_alone_can_be_chosen(index: Index, keyword_embedder: type[KeywordEmbedder]) -> None:
    put(index, keyword_embedder("apple", "rocket", "tax"), [], [question("random tax?", source="random")])
    encoder = CountingEncoder()
    precompute_pairs(index, encoder, top_n=1, source="random")
    assert {one for one, _ in encoder.passes} == {"random tax?"}


def test_duplicates_are_left_out(index: Index) -> None:
    index.add([replace(QUESTIONS[1], duplicate_of=QUESTIONS[0].id)])
    assert precompute_pairs(index, CountingEncoder(), top_n=1)["questions"] == 2


def test_an_index_without_passages_is_refused_and_one_passage_is_enough(
    tmp_path: Path, keyword_embedder: type[KeywordEmbedder]
) -> None:
    embedder = keyword_embedder("apple", "rocket", "tax")
    with Index.create(
        tmp_path / "small.kraq", Settings(), encoder_name=embedder.name, encoder_dimension=embedder.dimension
    ) as index:
        put(index, embedder, [], QUESTIONS[:1])
        with pytest.raises(IndexStateError, match=r"no passages.*kraq index"):
            precompute(index, CountingEncoder(), InstructedOptions())

        put(index, embedder, [chunk("apple")], [])
        assert precompute(index, CountingEncoder(), InstructedOptions())["embedded"] == 1


def test_an_index_without_questions_names_the_command(index: Index) -> None:
    index.delete(Question, [one.id for one in QUESTIONS])
    with pytest.raises(IndexStateError, match=r"no questions to pre-compute for.*kraq index"):
        precompute_pairs(index, CountingEncoder())


def test_another_encoder_is_refused(index: Index) -> None:
    precompute_pairs(index, CountingEncoder(), top_n=1)
    other = CountingEncoder()
    other.name = "others"
    with pytest.raises(EncoderMismatchError):
        precompute_pairs(index, other)


def test_an_encoder_that_weighs_sentences_has_them_stored_and_sees_passages_from_any_question_exactly(
    index: Index, keyword_embedder: type[KeywordEmbedder]
) -> None:
    keywords = keyword_embedder("apple", "rocket", "tax")
    weighted = WeightedSentences(keywords)
    with pytest.raises(IndexStateError, match="kraq precompute"):
        open_precomputed(index, weighted)
    report: Any = precompute(index, weighted, InstructedOptions())
    assert (report["passages"], report["embedded"], report["removed"]) == (6, 6, 0)
    assert precompute(index, weighted, InstructedOptions())["embedded"] == 0

    seen = open_precomputed(index, WeightedSentences(keywords, sharpness=3.0))  # the same sentences, weighed otherwise
    assert isinstance(seen, StoredSentences)
    chunks = [chunk("apple apple rocket. tax."), *(chunk(text) for text in TEXTS)]
    vectors, is_stored = seen.seen_from("any tax question?", chunks)
    assert is_stored.tolist() == [False] + [True] * 6
    expected = WeightedSentences(keywords, sharpness=3.0).encode("any tax question?", [one.passage for one in chunks])
    np.testing.assert_allclose(vectors, expected, atol=1e-3)
    seen.store.close()

    index.delete(Chunk, [chunk("tax").id])
    put(index, keywords, [chunk("tax office")], [])
    report = precompute(index, weighted, InstructedOptions())
    assert (report["passages"], report["embedded"], report["removed"]) == (6, 1, 1)


def test_top_n_is_a_number_or_all() -> None:
    assert [parse_top_n(text) for text in ("100", "all")] == [100, None]
    for wrong in ("0", "-3", "many", ""):
        with pytest.raises(ConfigError, match="a number from 1, or all"):
            parse_top_n(wrong)


def test_what_was_read_for_one_source_of_questions_stays_when_another_is_prepared(
    index: Index, keyword_embedder: type[KeywordEmbedder]
) -> None:
    """So that both conditions of a comparison look something up."""
    drawn = question("apple or tax, which?", "random")
    put(index, keyword_embedder("apple", "rocket", "tax"), [], [drawn])
    precompute_pairs(index, CountingEncoder(), top_n=2, source="kraq")
    precompute_pairs(index, CountingEncoder(), top_n=2, source="random")
    store = stored(index)
    assert store.owners() == {one.id for one in (*QUESTIONS, drawn)}
    store.close()


def test_the_price_is_what_is_left_to_read(index: Index) -> None:
    options, encoder = InstructedOptions(top_n=2), CountingEncoder()
    price = price_of_pairs(index, encoder, options)
    assert (price.questions, price.readings, price.n_bytes) == (3, 6, 6 * 2 * 2)  # two numbers of two bytes each
    assert price.seconds > 0
    precompute(index, encoder, options)
    assert price_of_pairs(index, encoder, options) == Price(3, 0, 0.0, 0)
    assert price_of_pairs(index, encoder, InstructedOptions(top_n=4)).readings == 3 * 2


def test_the_papers_twenty_passages_of_each_question_are_read_by_default() -> None:
    assert InstructedOptions().top_n == 20
