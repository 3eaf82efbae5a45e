"""A tiny LED with random weights: what it says has no meaning, what it reads and how much it says can be checked."""

import copy
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from kraq_dspy.asset.corpus.tokens import count_tokens
from kraq_dspy.errors import ModelError
from kraq_dspy.models.lms.engines.seq2seq import Seq2SeqSummariser
from kraq_dspy.programs import Shorten
from tests.lazily import lazily

torch = lazily("torch", "transformers")
transformers = lazily("transformers", "transformers")
tokenizers = lazily("tokenizers", "transformers")

TEXT = "The mill stands by the river and grinds corn for the town. "
CONTEXT = 64


@pytest.fixture(scope="module")
def led(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("tiny-led")
    bpe = tokenizers.ByteLevelBPETokenizer()
    marks = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    bpe.train_from_iterator([TEXT] * 20, vocab_size=400, min_frequency=1, special_tokens=marks)
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=bpe._tokenizer, bos_token="<s>", eos_token="</s>", pad_token="<pad>", unk_token="<unk>"
    )
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    config = transformers.LEDConfig(
        vocab_size=len(tokenizer), d_model=32, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=32, decoder_ffn_dim=32, attention_window=[16],
        max_encoder_position_embeddings=CONTEXT, max_decoder_position_embeddings=CONTEXT, init_std=0.3,
        bos_token_id=0, pad_token_id=1, eos_token_id=2, decoder_start_token_id=2,
    )  # fmt: skip
    transformers.LEDForConditionalGeneration(config).save_pretrained(folder)
    return str(folder)


def test_a_summary_keeps_to_its_length_and_the_same_text_gets_the_same(led: str) -> None:
    summarise = Seq2SeqSummariser(led, beams=2)
    short, long = summarise(TEXT, 5), summarise(TEXT, 20)
    assert short
    tokenizer = transformers.AutoTokenizer.from_pretrained(led)
    assert len(tokenizer(short)["input_ids"]) <= 2 + 5 * 1.6 + 2
    assert len(long) > len(short)
    assert summarise(TEXT, 5) == Seq2SeqSummariser(led, beams=2)(TEXT, 5) == short


def test_a_text_longer_than_the_context_is_read_to_its_end(led: str, monkeypatch: pytest.MonkeyPatch) -> None:
    summarise = Seq2SeqSummariser(led, beams=1)
    tokenizer, model, context = summarise._model()
    assert context == CONTEXT
    read: list[Any] = []
    generate = model.generate

    def watched(**inputs: Any) -> Any:
        read.append(inputs)
        return generate(**inputs)

    monkeypatch.setattr(model, "generate", watched)
    text = TEXT * 12
    assert summarise(text, 24)
    assert len(read) > 1
    assert all(inputs["input_ids"].shape[1] <= CONTEXT for inputs in read)
    assert " ".join(tokenizer.decode(inputs["input_ids"][0]).strip() for inputs in read).split() == text.split()
    assert all(inputs["global_attention_mask"][0].tolist()[:2] == [1, 0] for inputs in read)


def test_threads_share_one_model_and_copies_do_too(led: str) -> None:
    summarise = Seq2SeqSummariser(led, beams=1)
    texts = [TEXT, TEXT.replace("mill", "town")] * 4
    alone = [summarise(text, 8) for text in texts]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda text: summarise(text, 8), texts)) == alone
    assert copy.deepcopy(summarise) is summarise


def test_it_shortens_documents_in_the_place_of_a_language_model(led: str) -> None:
    text = TEXT * 12
    summarise = Seq2SeqSummariser(led, beams=1)
    shorten = Shorten(summarise, share=0.1, least_tokens=12)
    words = round(0.75 * round(0.1 * count_tokens(text)))
    assert shorten(text=text).shortened == summarise(text, words)


def test_weights_that_are_not_there_are_an_error_that_names_the_setting(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"\[k2rag\] summariser"):
        Seq2SeqSummariser(str(tmp_path / "none"))(TEXT, 5)


def test_fewer_than_one_word_is_refused() -> None:
    with pytest.raises(ValueError, match="words is 0"):
        Seq2SeqSummariser("none")(TEXT, 0)
