"""The packaged encoder is real; the others load tiny random weights that the tests make, in the real file formats."""

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from kraq_dspy.errors import ConfigError, ModelError
from kraq_dspy.models.embedders.instructed import InBedder, load_instructed_embedder
from kraq_dspy.models.embedders.model_folder import packaged_folder
from kraq_dspy.models.embedders.packaged_pair import PackagedPairEmbedder
from kraq_dspy.ports import InstructedEmbedder
from kraq_dspy.settings import InstructedSettings
from tests.lazily import lazily

torch = lazily("torch", "transformers")
transformers = lazily("transformers", "transformers")
tokenizers = lazily("tokenizers", "transformers")

TEXT = "### Input Instruction Response : which fruit is in the pie apple pies have apples rockets fly high ? ."
PASSAGES = ["apple pies have apples .", "rockets fly high .", "the pie is high in fruit . apple pies have apples ."]
QUESTION = "which fruit is in the pie ?"


def save_tokenizer(folder: Path, *, bos: str | None = "<s>", eos: str | None = "</s>") -> int:
    """Whitespace words and single punctuation marks; returns the size of the vocabulary."""
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    vocabulary = {word: i for i, word in enumerate(dict.fromkeys([*special, *TEXT.split()]))}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    ends = [mark for mark in (bos, "$A", eos) if mark]
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
        single=" ".join(ends), special_tokens=[(mark, vocabulary[mark]) for mark in (bos, eos) if mark]
    )
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token="<s>",
        eos_token="</s>",
        pad_token="<pad>",
        unk_token="<unk>",
        mask_token="<mask>",
        model_input_names=["input_ids", "attention_mask"],
    ).save_pretrained(folder)
    return len(vocabulary)


@pytest.fixture(scope="module")
def roberta(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("roberta")
    size = save_tokenizer(folder)
    torch.manual_seed(0)
    config = transformers.RobertaConfig(
        vocab_size=size, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
        max_position_embeddings=80, pad_token_id=1, type_vocab_size=1,
    )  # fmt: skip
    transformers.RobertaForMaskedLM(config).save_pretrained(folder)
    return str(folder)


@pytest.fixture(scope="module")
def qwen3(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("qwen3")
    size = save_tokenizer(folder, bos=None, eos=None)
    torch.manual_seed(0)
    config = transformers.Qwen3Config(
        vocab_size=size, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=2,
        intermediate_size=64, head_dim=16,
    )  # fmt: skip
    transformers.Qwen3Model(config).save_pretrained(folder)
    return str(folder)


MAKERS: dict[str, Callable[..., InstructedEmbedder]] = {
    "pair": lambda get, batch_size=None: PackagedPairEmbedder(threads=batch_size),
    "inbedder": lambda get, **options: InBedder(get("roberta"), max_tokens=64, **options),
}


@pytest.fixture(params=MAKERS)
def make(request: pytest.FixtureRequest) -> Callable[..., InstructedEmbedder]:
    return lambda **options: MAKERS[request.param](request.getfixturevalue, **options)


def test_every_embedder_keeps_the_contract(make: Callable[..., InstructedEmbedder]) -> None:
    embedder = make()
    vectors = embedder.encode(QUESTION, PASSAGES)
    assert vectors.shape == (3, embedder.dimension)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-5)
    assert embedder.encode(QUESTION, []).shape == (0, embedder.dimension)
    # Neither the batch, nor the padding, nor the order matters.
    np.testing.assert_allclose(make(batch_size=1).encode(QUESTION, PASSAGES), vectors, atol=1e-5)
    np.testing.assert_allclose(embedder.encode(QUESTION, PASSAGES[::-1])[::-1], vectors, atol=1e-5)
    # The question and the passage both matter.
    assert np.abs(embedder.encode("rockets fly high ?", PASSAGES) - vectors).max() > 1e-3
    assert np.abs(vectors[0] - vectors[1]).max() > 1e-3


def test_a_long_passage_is_cut_and_the_question_still_counts(make: Callable[..., InstructedEmbedder]) -> None:
    embedder = make()
    endless = "apple pies have apples . " * 400
    first, second = (embedder.encode(question, [endless])[0] for question in (QUESTION, "rockets fly high ?"))
    assert np.linalg.norm(first) == pytest.approx(1, abs=1e-5)
    assert np.abs(first - second).max() > 1e-4


def test_the_pair_encoder_sees_a_passage_from_the_question() -> None:
    """The real encoder: an ambiguous passage moves towards the sense that the question asks about."""
    embedder = PackagedPairEmbedder()
    passages = ["Jaguar numbers rose this year.", "The big cat hunts at night.", "The car maker built more vehicles."]

    def nearer_to_cars(question: str) -> float:
        word, cat, car = embedder.encode(question, passages)
        return float(word @ car - word @ cat)

    assert nearer_to_cars("How many cars were sold?") > nearer_to_cars("How many wild animals are there?")


def test_the_packaged_encoder_reads_pairs_as_torch_does() -> None:
    """The weights are in eight bits; a question that fills its half, and passages that are cut, are read alike."""
    folder = str(packaged_folder())
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModel.from_pretrained(folder).eval()
    packaged = PackagedPairEmbedder(max_tokens=48)
    passages = ["Jaguar numbers rose this year.", "The big cat hunts at night. " * 20, ""]
    for question in ("How many wild animals are there?", "how many cars and cats were seen " * 12):
        ids = tokenizer(question, add_special_tokens=False, truncation=True, max_length=24)["input_ids"]
        shown = tokenizer.decode(ids) if len(ids) >= 24 else question
        for vector, passage in zip(packaged.encode(question, passages), passages, strict=True):
            row = tokenizer(shown, passage, truncation="only_second", max_length=48, return_tensors="pt")
            with torch.no_grad():
                expected = model(**row).last_hidden_state[0].mean(0).numpy()
            assert vector @ expected / np.linalg.norm(expected) > 0.99
    np.testing.assert_allclose(np.linalg.norm(packaged.encode("q", passages), axis=1), 1, atol=1e-5)


def test_the_packaged_pairs_load_nothing_before_the_first_passage_and_refuse_a_length_that_is_none() -> None:
    embedder = PackagedPairEmbedder()
    assert embedder.encode("q", []).shape == (0, 384)
    assert "_model" not in vars(embedder)
    with pytest.raises(ConfigError, match="takes 8 to 512"):
        PackagedPairEmbedder(max_tokens=600)


def test_inbedder_averages_the_last_layer_over_exactly_the_three_masks(roberta: str) -> None:
    [vector] = InBedder(roberta, max_tokens=64).encode(QUESTION, ["apple pies"])
    tokenizer = transformers.AutoTokenizer.from_pretrained(roberta)
    model = transformers.AutoModel.from_pretrained(roberta).eval()
    text = f"### Input:\napple pies\n\n### Instruction:\n{QUESTION}\n\n### Response:<mask><mask><mask>"
    with torch.no_grad():
        hidden = model(**tokenizer(text, return_tensors="pt")).last_hidden_state[0]
    expected = hidden[-4:-1].mean(0).numpy()  # the three before the end mark
    np.testing.assert_allclose(vector, expected / np.linalg.norm(expected), atol=1e-5)


def test_a_mask_in_a_passage_is_not_averaged(roberta: str) -> None:
    embedder = InBedder(roberta, max_tokens=64)
    with_mask, without = embedder.encode(QUESTION, ["apple <mask> pies", "apple pies"])
    np.testing.assert_allclose(with_mask, without, atol=1e-5)


def test_a_question_that_fills_inbedder_is_refused(roberta: str) -> None:
    with pytest.raises(ModelError, match="takes 64"):
        InBedder(roberta, max_tokens=64).encode("apple " * 80, ["rockets"])


def test_an_encoder_without_masks_is_no_inbedder(qwen3: str, tmp_path: Path) -> None:
    tokenizer = transformers.AutoTokenizer.from_pretrained(qwen3)
    tokenizer.mask_token = None
    tokenizer.save_pretrained(tmp_path)
    transformers.AutoModel.from_pretrained(qwen3).save_pretrained(tmp_path)
    with pytest.raises(ModelError, match="no mask token"):
        InBedder(str(tmp_path))


def test_names_tell_recipes_lengths_and_precisions_apart(roberta: str) -> None:
    names = [
        PackagedPairEmbedder().name,
        PackagedPairEmbedder(max_tokens=128).name,
        InBedder(roberta, max_tokens=64).name,
        InBedder(roberta, max_tokens=64, dtype="bfloat16").name,
    ]
    assert len(set(names)) == len(names)
    assert names[0] == "pair:minilm[int8]@256"


def test_a_folder_keeps_its_name_wherever_it_lies_and_other_weights_have_another(
    roberta: str, qwen3: str, tmp_path: Path
) -> None:
    moved = tmp_path / Path(roberta).name
    shutil.copytree(roberta, moved)
    assert InBedder(str(moved)).name == InBedder(roberta).name
    others = shutil.copytree(qwen3, tmp_path / "others" / Path(roberta).name)
    assert InBedder(str(others)).name != InBedder(roberta).name


def test_settings_choose_the_encoder(roberta: str) -> None:
    assert load_instructed_embedder(InstructedSettings()).name == "pair:minilm[int8]@256"
    with pytest.raises(ConfigError, match=r"which reads by .minilm.; instructed\.name is 'bge-small'"):
        InstructedSettings(name="bge-small")
    settings = InstructedSettings(kind="inbedder", name=roberta, max_tokens=64)
    assert load_instructed_embedder(settings).dimension == 32
    with pytest.raises(ConfigError, match=r"instructed\.kind is 'inbeder'"):
        InstructedSettings(kind="inbeder", name="x")


def test_weights_that_are_not_there_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(ModelError, match="'no/such-encoder' cannot be loaded"):
        InBedder("no/such-encoder")


def test_incomplete_weights_are_refused_instead_of_filled_at_random(qwen3: str, tmp_path: Path) -> None:
    save_tokenizer(tmp_path, bos=None, eos=None)
    model = transformers.AutoModel.from_pretrained(qwen3)
    weights = {name: weight for name, weight in model.state_dict().items() if "embed_tokens" not in name}
    model.save_pretrained(tmp_path, state_dict=weights)
    with pytest.raises(ModelError, match=r"is missing weights: .*embed_tokens"):
        InBedder(str(tmp_path))


def test_loading_prints_nothing(capfd: pytest.CaptureFixture[str], roberta: str) -> None:
    InBedder(roberta)
    assert tuple(capfd.readouterr()) == ("", "")
