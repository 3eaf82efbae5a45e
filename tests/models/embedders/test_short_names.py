"""Tests that a short name of an encoder finds its folder, its prefixes and its pooling."""

from pathlib import Path
from typing import Any

import huggingface_hub
import numpy as np
import pytest

from kraq_dspy.errors import ModelError
from kraq_dspy.extend import load_embedder
from kraq_dspy.models.embedders import sentence
from kraq_dspy.models.embedders.sentence import SentenceEmbedder
from kraq_dspy.settings import EncoderSettings
from tests.models.embedders.test_model_folder import SENTENCES, add_modules, tiny_bert, write


@pytest.fixture(autouse=True)
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where `kraq lm get` puts models."""
    monkeypatch.setattr(sentence, "models_folder", lambda: tmp_path / "models")
    (tmp_path / "models").mkdir()
    return tmp_path / "models"


def of_the_hub(monkeypatch: pytest.MonkeyPatch, answer: Path | Exception) -> list[str]:
    asked: list[str] = []

    def snapshot_download(repository: str, **_: Any) -> str:
        asked.append(repository)
        if isinstance(answer, Exception):
            raise answer
        return str(answer)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)
    return asked


def test_a_short_name_finds_its_folder_and_puts_in_prefixes_and_pooling(models: Path) -> None:
    folder = tiny_bert(models / "bge-small")
    encoder = SentenceEmbedder("bge-small", precision="fp32")
    add_modules(folder, {"pooling_mode": "cls"})
    prefixed = SentenceEmbedder(str(folder), precision="fp32", query_prefix=encoder.query_prefix)

    assert encoder.query_prefix == "Represent this sentence for searching relevant passages: "
    assert encoder.passage_prefix == ""
    np.testing.assert_allclose(encoder.encode_queries(SENTENCES), prefixed.encode_queries(SENTENCES), atol=1e-6)
    assert encoder.name.startswith("BAAI/bge-small-en-v1.5 fp32 query='Represent")


def test_what_the_folder_or_the_settings_say_comes_first(models: Path) -> None:
    folder = tiny_bert(models / "e5-small")
    add_modules(folder, {"pooling_mode": "cls"})
    write(folder / "config_sentence_transformers.json", {"prompts": {"query": "loud "}})

    encoder = load_embedder(EncoderSettings("e5-small", passage_prefix="cat ", precision="fp32"))
    unprefixed = SentenceEmbedder(str(folder), precision="fp32")

    assert encoder.name == "intfloat/e5-small-v2 fp32 query='loud ' passage='cat '"
    np.testing.assert_allclose(encoder.encode_queries(["dog"]), unprefixed.encode_queries(["dog"]), atol=1e-6)


def test_without_a_folder_it_is_asked_of_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = of_the_hub(monkeypatch, tiny_bert(tmp_path / "snapshot"))

    encoder = SentenceEmbedder("e5-small", precision="fp32")

    assert asked == ["intfloat/e5-small-v2"]
    assert (encoder.query_prefix, encoder.passage_prefix) == ("query: ", "passage: ")


def test_one_that_is_nowhere_says_where_to_put_it(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    of_the_hub(monkeypatch, OSError("no route to the hub"))

    with pytest.raises(ModelError, match="no route to the hub") as caught:
        SentenceEmbedder("arctic-m")
    assert "'Snowflake/snowflake-arctic-embed-m-v1.5'" in str(caught.value)
    assert str(models / "arctic-m") in str(caught.value)
