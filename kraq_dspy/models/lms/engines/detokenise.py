"""Finds the text that each token adds, for any tokeniser."""

from collections.abc import Sequence
from typing import Any

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
