"""Makes a tiny model that has learned nothing yet, and chats that it can learn by heart."""

from typing import Any

import pytest

from kraq_dspy.finetune import Pair, chats_of

PEOPLE = ("Ada", "Ben", "Cleo", "Dora", "Emil", "Fay", "Gus", "Hal")


@pytest.fixture(scope="session")
def pairs() -> list[Pair]:
    return [
        Pair.generator(
            f"{person} is a {trade}.", f"What did {person} do?", source="test", example_id=f"{person}-{trade}"
        )
        for person in PEOPLE
        for trade in ("cook", "king", "poet")
    ]


@pytest.fixture(scope="session")
def chats(pairs: list[Pair]) -> list[Any]:
    return chats_of(pairs, "generator")


@pytest.fixture(scope="session")
def base(tmp_path_factory: pytest.TempPathFactory, chats: list[Any]) -> str:
    """Two layers, random weights; its tokenizer was trained on the chats, so that a chat is short."""
    for package in ("torch", "transformers", "tokenizers", "peft", "accelerate"):
        pytest.importorskip(package, reason=f"needs {package}: pip install 'kraq-dspy[train]'")
    import tokenizers
    import torch
    import transformers

    folder = tmp_path_factory.mktemp("untaught")
    marks = ["<pad>", "<|end|>", "<|user|>", "<|assistant|>", "<|system|>"]
    bpe = tokenizers.ByteLevelBPETokenizer()
    texts = [message["content"] for chat in chats for message in chat]
    bpe.train_from_iterator(texts, vocab_size=600, min_frequency=1, special_tokens=marks)
    fast: Any = transformers.PreTrainedTokenizerFast
    tokenizer = fast(tokenizer_object=bpe._tokenizer, eos_token="<|end|>", pad_token="<pad>")
    tokenizer.add_special_tokens({"additional_special_tokens": marks[2:]})
    tokenizer.chat_template = (
        "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|end|>{% endfor %}"
        "{% if add_generation_prompt %}<|assistant|>{% endif %}"
    )
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=2, head_dim=32, max_position_embeddings=256, bos_token_id=1, eos_token_id=1,
        pad_token_id=0, initializer_range=0.2,
    )  # fmt: skip
    transformers.LlamaForCausalLM(config).save_pretrained(folder)
    return str(folder)
