"""Tests the presets of speculative RAG, and what the efficient program says where something is missing."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kraq_dspy import Index
from kraq_dspy.asset.store.instructed import INSTRUCTED, InstructedRow, InstructedStore
from kraq_dspy.errors import ConfigError, EncoderMismatchError, IndexStateError
from kraq_dspy.models.lms.roles import as_models
from kraq_dspy.ports import Vectors
from kraq_dspy.programs import EfficientSpeculativeRAG
from kraq_dspy.programs.speculative.efficient_speculative_rag import EFFICIENT
from kraq_dspy.programs.speculative.speculative_rag import SPECULATIVE, EfficientOptions, SpeculativeOptions
from kraq_dspy.records import Hit, Question, QuestionHit, content_id
from kraq_dspy.settings import InstructedSettings, Settings
from kraq_dspy.workspace import Workspace
from kraq_dspy.workspace.choices import choose_program
from tests.conftest import KeywordEmbedder

QUESTION = Question(content_id("q"), "what?", "kraq", None, 0, (), ())


class Encoder:
    name, dimension = "lengths", 2

    def encode(self, question: str, passages: Sequence[str]) -> Vectors:
        return np.tile(np.array([1, 0], dtype=np.float32), (len(passages), 1))


class Finder:
    def __call__(self, text: str, n: int, *, vector: Vectors | None = None) -> list[QuestionHit]:
        return [QuestionHit(QUESTION, 0.5)]

    def encode(self, text: str) -> Vectors:
        return np.ones(2, dtype=np.float32)

    def vectors(self, question_ids: Sequence[str]) -> Vectors:
        return np.ones((len(question_ids), 2), dtype=np.float32)


def retrieve(question: str, k: int = 10, **_: Any) -> list[Hit]:
    return []


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    with Index.create(tmp_path / "a.kraq", Settings(), encoder_name="x", encoder_dimension=2) as index:
        index.add([QUESTION])
        yield index


def store(index: Index, encoder_name: str = "lengths") -> None:
    store = InstructedStore.create(index.path / INSTRUCTED, encoder_name=encoder_name, dimension=2)
    store.add([InstructedRow(QUESTION.id, (content_id("c"),), np.array([[1, 0]], dtype=np.float32))])
    store.close()


def test_sizes_come_from_the_preset_and_what_is_given_over_it() -> None:
    assert SpeculativeOptions(preset="bioasq").sizes == SpeculativeOptions(18, 5, 10).sizes
    assert SpeculativeOptions(20, None, 3, preset="bioasq").sizes == SpeculativeOptions(20, 5, 3).sizes
    with pytest.raises(ConfigError, match="'preset' is 'squad'; expected one of bioasq, hotpotqa"):
        choose_program("speculative", options={"preset": "squad"})
    with pytest.raises(ConfigError, match="'scorer' is 'best'; expected one of kraq, wang2024, vote"):
        choose_program("speculative", options={"scorer": "best"})


class Space(Workspace):
    """A workspace whose questions are those of `Finder`, seen from by `Encoder` unless its settings are to choose."""

    def __init__(self, index: Index, settings: Settings, embedder: Any = None) -> None:
        super().__init__(index, KeywordEmbedder("what"), as_models(None, settings, embedder=None))
        if embedder is not None:
            self.__dict__["instructed_embedder"] = embedder

    def questions(self, source: str = "kraq") -> Any:
        return Finder()


def make_efficient(index: Index, options: EfficientOptions | None = None) -> EfficientSpeculativeRAG:
    program = EFFICIENT.make(Space(index, Settings(), Encoder()), retrieve, options or EfficientOptions())
    assert isinstance(program, EfficientSpeculativeRAG)
    return program


def test_what_keeps_the_efficient_program_from_working_is_an_error_that_names_the_command(
    index: Index,
) -> None:
    def make() -> EfficientSpeculativeRAG:
        return make_efficient(index)

    with pytest.raises(IndexStateError, match=r"no pre-computed embeddings. Run: kraq precompute .*a\.kraq"):
        make()
    store(index, encoder_name="another")
    with pytest.raises(EncoderMismatchError, match=r"pre-computed with 'another'.*kraq precompute"):
        make()
    index.delete(Question, [QUESTION.id])
    with pytest.raises(IndexStateError, match=r"has no questions.*kraq index .* then run: kraq precompute"):
        make()


def test_the_settings_choose_the_instructed_encoder(index: Index) -> None:
    settings = Settings(instructed=InstructedSettings(kind="pair", max_tokens=64))
    program: Any = SPECULATIVE.make(Space(index, settings), retrieve, SpeculativeOptions())
    assert program.embedder.name == "pair:minilm[int8]@64"
