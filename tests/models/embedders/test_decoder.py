"""A tiny language model with random weights: how it is read can be tested, what it knows cannot."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kraq_dspy.errors import ConfigError, ModelError
from kraq_dspy.models.embedders.instructed import DECODER_PROMPT, Decoder, load_instructed_embedder
from kraq_dspy.settings import InstructedSettings
from tests.conftest import TinyModels

PASSAGES = ["the cat sat on the mat", "a dog ran to the house", "Zürich and 東京 are cities"]
QUESTION = "which city is this?"


@pytest.fixture(scope="module")
def model(tiny_models: TinyModels, tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tiny_models.llama(tmp_path_factory.mktemp("decoder")))


def test_a_row_is_the_last_token_of_passage_and_question_in_the_layer_that_is_named(model: str) -> None:
    import torch
    import transformers

    vectors = Decoder(model, layers=1).encode(QUESTION, PASSAGES)
    tokenizer: Any = transformers.AutoTokenizer.from_pretrained(model)
    whole: Any = transformers.AutoModel.from_pretrained(model)
    for vector, passage in zip(vectors, PASSAGES, strict=True):
        inputs = tokenizer(DECODER_PROMPT.format(passage=passage, question=QUESTION), return_tensors="pt")
        with torch.inference_mode():
            state = whole.norm(whole(**inputs, output_hidden_states=True).hidden_states[1])[0, -1]
        assert vector == pytest.approx((state / state.norm()).numpy(), abs=1e-4)


def test_a_gguf_file_gives_what_its_weights_give(model: str, tiny_models: TinyModels, tmp_path: Path) -> None:
    pytest.importorskip("gguf")
    file = tiny_models.gguf(model, tmp_path / "tiny.gguf")
    settings = InstructedSettings(kind="decoder", name=str(file), layers=2)
    embedder = load_instructed_embedder(settings)
    assert re.fullmatch(r"decoder:tiny.gguf#[0-9a-f]{8}/2@512", embedder.name)
    expected = Decoder(model, layers=2).encode(QUESTION, PASSAGES)
    assert np.abs(embedder.encode(QUESTION, PASSAGES) - expected).max() < 1e-3


def test_a_third_of_the_layers_are_run_where_none_is_named_and_more_than_there_are_is_refused(model: str) -> None:
    assert Decoder(model).layers == 1
    with pytest.raises(ConfigError, match=r"instructed.layers is 9; .* has 2"):
        Decoder(model, layers=9)


def test_a_folder_without_a_model_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="cannot be loaded"):
        Decoder(str(tmp_path))
