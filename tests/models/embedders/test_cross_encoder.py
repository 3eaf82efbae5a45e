"""Over tiny random weights that the tests make, in the real file formats."""

import copy
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer
from tokenizers.processors import TemplateProcessing

from kraq_dspy.errors import ModelError
from kraq_dspy.models.embedders.cross_encoder import CrossEncoderReranker
from kraq_dspy.records import Chunk, Hit

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "cat", "dog", "sleeps", "barks", "who", "?", "title"]


def tiny(folder: Path, labels: int = 1) -> Path:
    import torch
    import transformers

    torch.manual_seed(0)
    untyped: Any = transformers
    config = untyped.BertConfig(
        vocab_size=len(WORDS), hidden_size=16, num_hidden_layers=2, num_attention_heads=4, intermediate_size=32,
        max_position_embeddings=24, num_labels=labels,
    )  # fmt: skip
    model = transformers.BertForSequenceClassification(config)
    for name, weight in model.named_parameters():  # far from the tiny initial values, so that every part matters
        if not name.endswith("LayerNorm.weight"):
            torch.nn.init.normal_(weight, std=0.5)
    model.save_pretrained(str(folder))
    vocabulary = {word: number for number, word in enumerate(WORDS)}
    tokenizer = Tokenizer(WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = BertNormalizer()
    tokenizer.pre_tokenizer = BertPreTokenizer()
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", vocabulary["[CLS]"]), ("[SEP]", vocabulary["[SEP]"])],
    )
    special = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    inputs = ["input_ids", "token_type_ids", "attention_mask"]
    untyped.PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_input_names=inputs, **special).save_pretrained(
        str(folder)
    )
    return folder


def loaded(folder: Path) -> Any:
    import transformers

    model: Any = transformers.BertForSequenceClassification.from_pretrained(str(folder))
    return model.eval()


def hits(*texts: str) -> list[Hit]:
    return [
        Hit(Chunk(str(number), "doc", 0, 0, len(text), text, 5, title="title"), 0.5, "who?", "dense")
        for number, text in enumerate(texts)
    ]


FOUND = hits("the cat sleeps", "the dog barks", "cat cat cat dog", "sleeps")


def test_each_score_is_the_models_own_for_question_and_passage_read_together(tmp_path: Path) -> None:
    import torch

    folder = tiny(tmp_path / "tiny")
    model = loaded(folder)
    ids = {word: number for number, word in enumerate(WORDS)}

    def alone(question: str, passage: str) -> float:
        first = ["[CLS]", *question.split(), "[SEP]"]
        second = [*passage.split(), "[SEP]"]
        tokens = torch.tensor([[ids[word] for word in first + second]])
        kinds = torch.tensor([[0] * len(first) + [1] * len(second)])
        with torch.inference_mode():
            return float(model(input_ids=tokens, token_type_ids=kinds).logits[0, 0])

    expected = [alone("who sleeps ?", f"title {hit.chunk.text}") for hit in FOUND]
    scores = CrossEncoderReranker(str(folder), batch_size=3)("who sleeps?", FOUND)
    assert scores == pytest.approx(expected, abs=1e-5)
    assert len({round(score, 3) for score in scores}) == len(FOUND)


def test_of_two_classes_the_last_one_counts(tmp_path: Path) -> None:
    import torch

    folder = tiny(tmp_path / "tiny", labels=2)
    rerank = CrossEncoderReranker(str(folder))
    batch = rerank._tokenizer("who?", FOUND[0].chunk.passage, return_tensors="pt")
    with torch.inference_mode():
        logits = loaded(folder)(**batch).logits[0]
    assert rerank("who?", FOUND[:1]) == pytest.approx([float(logits[1])], abs=1e-5)


def test_texts_of_any_length_and_script_are_taken(tmp_path: Path) -> None:
    rerank = CrossEncoderReranker(str(tiny(tmp_path / "tiny")))
    assert len(rerank("who sleeps? " * 50, hits("the cat " * 500, "", "東京", "\ud800"))) == 4
    assert rerank("who?", []) == []


def test_threads_may_share_it_and_copies_do(tmp_path: Path) -> None:
    rerank = CrossEncoderReranker(str(tiny(tmp_path / "tiny")))
    assert copy.deepcopy(rerank) is rerank
    expected = rerank("who?", FOUND)
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda _: rerank("who?", FOUND), range(16))) == [expected] * 16


@pytest.mark.parametrize("model", ["./nowhere", "/nowhere/at/all", "a/b/c"])
def test_a_folder_that_is_not_there_is_an_error_that_names_it(model: str) -> None:
    with pytest.raises(ModelError, match="There is no folder"):
        CrossEncoderReranker(model)


def test_a_folder_that_holds_no_model_is_an_error_that_says_what_is_needed(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="sequence-classification"):
        CrossEncoderReranker(str(tmp_path))
