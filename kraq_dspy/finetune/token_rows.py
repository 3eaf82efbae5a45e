"""Chats as tokens and labels: what the model reads, and on which of it the loss is."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kraq_dspy.errors import TrainingError
from kraq_dspy.lms.engines.chat_text import prompt_ids

IGNORED = -100
"""The label of a token that has no part in the loss (torch's own)."""
_MARKER = re.compile(r"\n*\[\[ ## \w+ ## \]\]\n*")

Chat = Sequence[Mapping[str, str]]
"""Messages (role, content); the last one is the assistant's reply."""


@dataclass(frozen=True, slots=True)
class TokenRow:
    """`ids` are the prompt's tokens and then the reply's with its end; `reply` and `values` are labels of equal length.

    `reply` has a label for every token of the reply, `values` for those of field values alone: no prompt in either.
    """

    ids: tuple[int, ...]
    reply: tuple[int, ...]
    values: tuple[int, ...]


def token_row(tokenizer: Any, chat: Chat) -> TokenRow:
    """The prompt is tokenised apart from the reply, as it is when the model answers.

    Raises TrainingError when the chat ends with no reply, or the tokenizer's template has no place for one.
    """
    if len(chat) < 2 or chat[-1]["role"] != "assistant" or not chat[-1]["content"].strip():
        raise TrainingError("A row to train on must end with the assistant's reply, and the reply must not be empty.")
    prompt = prompt_ids(tokenizer, chat[:-1])
    text = chat[-1]["content"].strip()
    told = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
    reply, places = list(told["input_ids"]), told["offset_mapping"]
    ends = _ends(tokenizer, chat)
    values = [
        token if _within_values(text, start, stop) else IGNORED
        for token, (start, stop) in zip(reply, places, strict=True)
    ]
    ignored = (IGNORED,) * len(prompt)
    return TokenRow(
        ids=(*prompt, *reply, *ends),
        reply=(*ignored, *reply, *ends),
        values=(*ignored, *values, *((IGNORED,) * len(ends))),
    )


def _ends(tokenizer: Any, chat: Chat) -> list[int]:
    """The tokens that end a turn: what the template writes behind a reply, up to the first special token."""
    if tokenizer.chat_template is None:
        return [] if tokenizer.eos_token_id is None else [tokenizer.eos_token_id]
    text = chat[-1]["content"].strip()
    whole = tokenizer.apply_chat_template([*chat[:-1], {**chat[-1], "content": text}], tokenize=False)
    at = whole.rfind(text)
    if at < 0:
        raise TrainingError(
            "The tokenizer's chat template changes or leaves out the assistant's reply, so what the model would learn "
            "is not what it is asked for. Give a base model whose template shows replies as they are."
        )
    behind = tokenizer(whole[at + len(text) :], add_special_tokens=False)["input_ids"]
    special = set(tokenizer.all_special_ids)
    for position, token in enumerate(behind):
        if token in special:
            return list(behind[: position + 1])
    return [] if tokenizer.eos_token_id is None else [tokenizer.eos_token_id]


def _within_values(text: str, start: int, stop: int) -> bool:
    """Whether characters `start` to `stop` have something outside of all markers."""
    outside = stop - start
    for mark in _MARKER.finditer(text):
        outside -= max(0, min(stop, mark.end()) - max(start, mark.start()))
    return outside > 0


def too_long(rows: Sequence[TokenRow], limit: int) -> list[int]:
    """The positions of rows with more than `limit` tokens."""
    return [position for position, row in enumerate(rows) if len(row.ids) > limit]
