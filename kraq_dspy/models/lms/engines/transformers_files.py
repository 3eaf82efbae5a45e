"""Finds what a model of transformers needs: its weights, a prompt as tokens, tokens as text, which end and fill."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kraq_dspy.models.embedders.model_folder import local_folder, weights_place
from kraq_dspy.models.lms.engines.gguf_file import read_gguf


def end_tokens(tokenizer: Any, model: Any) -> list[int]:
    """Chat models have several: end of text, end of turn."""
    ends = model.generation_config.eos_token_id
    several = ends if isinstance(ends, list) else [] if ends is None else [ends]
    return sorted({*several, *([] if tokenizer.eos_token_id is None else [tokenizer.eos_token_id])})


def pad_token(tokenizer: Any) -> int:
    """Never the end token: padding behind an answer must not look like its end. It is masked, so any other does."""
    for token in (tokenizer.pad_token_id, tokenizer.unk_token_id, tokenizer.bos_token_id):
        if token is not None and token != tokenizer.eos_token_id:
            return int(token)
    return 0 if tokenizer.eos_token_id != 0 else 1


def checked_weights(name: str) -> tuple[str, dict[str, Any]]:
    """`weights_place`, after a look at what is there. Raises ModelError for a GGUF file that is none, and a path with
    no folder."""
    place = weights_place(name)
    if place[1]:
        read_gguf(Path(name).expanduser())
    else:
        local_folder(name, "model")
    return place


def prompt_ids(tokenizer: Any, messages: Sequence[Mapping[str, str]]) -> list[int]:
    """The tokens up to where the model begins its reply: the tokenizer's chat template, else the contents in order."""
    if tokenizer.chat_template is None:
        text = "\n\n".join(message["content"] for message in messages) + "\n\n"
        return list(tokenizer(text)["input_ids"])
    text = tokenizer.apply_chat_template(list(messages), tokenize=False, add_generation_prompt=True)
    # The template has written the special tokens already.
    return list(tokenizer(text, add_special_tokens=False)["input_ids"])


_REPLACEMENT = "\ufffd"


def pieces_of(tokenizer: Any, ids: Sequence[int]) -> list[str]:
    """One string for each id; joined, they are the decoded text without special tokens.

    As in vLLM, a token that ends within a character adds "", and the one that completes it adds the character; a
    character that is never completed is left out. Some tokenisers decode a token by its neighbours, so each is decoded
    behind the few before it.
    """
    pieces: list[str] = []
    begun = shown = 0  # tokens before `begun` are settled; those from there to `shown` have been shown, as context
    for end in range(1, len(ids) + 1):
        before = _decode(tokenizer, ids[begun:shown])
        text = _decode(tokenizer, ids[begun:end])
        if text.endswith(_REPLACEMENT):
            pieces.append("")
            continue
        pieces.append(text[len(before) :])
        begun, shown = shown, end
    return pieces


def _decode(tokenizer: Any, ids: Sequence[int]) -> str:
    text: str = tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)
    return text
