"""Writes a chat as the text that a model of this process reads: the same in training and in answering."""

from collections.abc import Mapping, Sequence
from typing import Any


def prompt_ids(tokenizer: Any, messages: Sequence[Mapping[str, str]]) -> list[int]:
    """The tokens up to where the model begins its reply: the tokenizer's chat template, else the contents in order."""
    if tokenizer.chat_template is None:
        text = "\n\n".join(message["content"] for message in messages) + "\n\n"
        return list(tokenizer(text)["input_ids"])
    text = tokenizer.apply_chat_template(list(messages), tokenize=False, add_generation_prompt=True)
    # The template has written the special tokens already.
    return list(tokenizer(text, add_special_tokens=False)["input_ids"])
