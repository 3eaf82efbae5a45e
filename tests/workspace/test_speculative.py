from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kraq_dspy.config import InstructedSettings, RoleSettings, Settings
from kraq_dspy.errors import ConfigError, EncoderMismatchError, IndexStateError, ModelError
from kraq_dspy.lms.roles import LanguageModels
from kraq_dspy.ports import Vectors
from kraq_dspy.records import Hit, Question, QuestionHit, content_id
from kraq_dspy.stores.index import Index
from kraq_dspy.stores.instructed import INSTRUCTED, InstructedRow, InstructedStore
from kraq_dspy.workspace.speculative import make_efficient, make_scorer, make_speculative, preset_of

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


def retrieve(question: str, k: int, **_: Any) -> list[Hit]:
    return []


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    with Index.create(tmp_path / "a.kraq", Settings(), encoder_name="x", encoder_dimension=2) as index:
        index.add([QUESTION])
        yield index


@pytest.fixture
def models() -> LanguageModels:
    return LanguageModels(Settings())


def store(index: Index, encoder_name: str = "lengths") -> None:
    made = InstructedStore.create(index.path / INSTRUCTED, encoder_name=encoder_name, dimension=2)
    made.add([InstructedRow(QUESTION.id, (content_id("c"),), np.array([[1, 0]], dtype=np.float32))])
    made.close()


def test_sizes_come_from_the_preset_and_what_is_given_over_it() -> None:
    assert preset_of("bioasq", None, None, None) == preset_of(None, 18, 5, 10)
    assert preset_of("bioasq", 20, None, 3) == preset_of(None, 20, 5, 3)
    with pytest.raises(ConfigError, match="no preset 'squad'; there are: bioasq"):
        preset_of("squad", None, None, None)


def test_drafter_and_verifier_get_the_models_of_their_roles() -> None:
    roles = {
        "default": RoleSettings(),
        "drafter": RoleSettings(model="hosted_vllm/small", api_base="http://localhost:1/v1"),
        "verifier": RoleSettings(model="hosted_vllm/large", api_base="http://localhost:2/v1"),
    }
    program = make_speculative(retrieve, LanguageModels(Settings(roles=roles)), embedder=Encoder())
    assert program.draft.lm.model == "hosted_vllm/small"
    assert program.scorer.verify.lm.model == "hosted_vllm/large"


def test_scorers_by_name_and_one_that_the_verifier_cannot_do() -> None:
    assert {name: make_scorer(name, Settings()).name for name in ("kraq", "drafter_only", "vote")} == {
        "kraq": "kraq",
        "drafter_only": "drafter_only",
        "vote": "vote",
    }
    with pytest.raises(ConfigError, match="no scorer 'best'"):
        make_scorer("best", Settings())
    with pytest.raises(ModelError, match="cannot score prompts"):
        make_scorer("wang2024", Settings())
    served = RoleSettings(model="hosted_vllm/large", api_base="http://localhost:2/v1")
    assert make_scorer("wang2024", Settings(roles={"default": served})).name == "wang2024"


def test_what_keeps_the_efficient_program_from_working_is_an_error_that_names_the_command(
    index: Index, models: LanguageModels
) -> None:
    def make() -> Any:
        return make_efficient(index, retrieve, Finder(), models, embedder=Encoder())

    with pytest.raises(IndexStateError, match=r"no pre-computed embeddings. Run: kraq precompute .*a\.kraq"):
        make()
    store(index, encoder_name="another")
    with pytest.raises(EncoderMismatchError, match=r"pre-computed with 'another'.*kraq precompute"):
        make()
    index.delete(Question, [QUESTION.id])
    with pytest.raises(IndexStateError, match=r"has no questions.*kraq index .* then run: kraq precompute"):
        make()


def test_the_threshold_is_the_calibrated_one_if_the_same_encoder_was_calibrated(
    index: Index, models: LanguageModels
) -> None:
    store(index)

    def threshold(**options: Any) -> float:
        program = make_efficient(index, retrieve, Finder(), models, embedder=Encoder(), **options)
        assert isinstance(program.precomputed, InstructedStore)
        program.precomputed.close()
        return program.min_similarity

    assert threshold() == -1.0
    index.update_manifest(proxy={"encoder_name": "lengths", "threshold": 0.7})
    assert threshold() == 0.7
    assert threshold(min_similarity=0.3) == 0.3
    index.update_manifest(proxy={"encoder_name": "another", "threshold": 0.7})
    assert threshold() == -1.0


def test_the_settings_choose_the_instructed_encoder() -> None:
    settings = Settings(instructed=InstructedSettings(max_tokens=64))
    program = make_speculative(retrieve, LanguageModels(settings))
    assert program.embedder.name == "pair:minilm@64"
