"""Turns chats into tokens and labels, by the settings of a training: what the model reads, and where the loss is."""

import hashlib
import json
import logging
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kraq_dspy.errors import TrainingError, counted
from kraq_dspy.finetune.train_settings import TrainSettings
from kraq_dspy.models.lms.engines.generation import in_template, prompt_ids

logger = logging.getLogger(__name__)

LEAST_ROWS = 4
IGNORED = -100
"""The label of a token that has no part in the loss (torch's own)."""

Chat = Sequence[Mapping[str, str]]
"""Messages (role, content); the last one is the assistant's reply."""


@dataclass(frozen=True, slots=True)
class TokenRow:
    """`ids` are the prompt's tokens and then the reply's with its end; `labels` are those of the reply, none before."""

    ids: tuple[int, ...]
    labels: tuple[int, ...]


def token_row(tokenizer: Any, chat: Chat) -> TokenRow:
    """The prompt is tokenised apart from the reply, as it is when the model answers.

    Raises TrainingError when the chat ends with no reply, or the tokenizer's template has no place for one.
    """
    if len(chat) < 2 or chat[-1]["role"] != "assistant" or not chat[-1]["content"].strip():
        raise TrainingError("A row to train on must end with the assistant's reply, and the reply must not be empty.")
    prompt = prompt_ids(tokenizer, chat[:-1])
    reply = tokenizer(chat[-1]["content"].strip(), add_special_tokens=False)["input_ids"]
    ends = _ends(tokenizer, chat)
    return TokenRow((*prompt, *reply, *ends), (*[IGNORED] * len(prompt), *reply, *ends))


def _ends(tokenizer: Any, chat: Chat) -> list[int]:
    """The tokens that end a turn: what the template writes behind a reply, up to the first special token."""
    if tokenizer.chat_template is None:
        return [] if tokenizer.eos_token_id is None else [tokenizer.eos_token_id]

    text = chat[-1]["content"].strip()
    whole = in_template(tokenizer, [*chat[:-1], {**chat[-1], "content": text}])
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


def fitting_rows(rows: Sequence[TokenRow], settings: TrainSettings, config: Any) -> list[TokenRow]:
    """The rows to use. Longer ones are left out, and never cut: a cut row would lose its reply."""
    limit = min(settings.max_tokens, int(config.get_text_config().max_position_embeddings))
    fitting = [row for row in rows if len(row.ids) <= limit]
    if left_out := len(rows) - len(fitting):
        logger.warning("%d of %d rows have more than %d tokens and are left out", left_out, len(rows), limit)
    if len(fitting) < LEAST_ROWS:
        raise TrainingError(
            f"Found {counted(len(fitting), 'row')} to train on ({left_out} left out, of more than {limit} tokens); "
            f"{LEAST_ROWS} are the least, and hundreds what it takes to learn something. Make more: kraq finetune pairs"
        )
    return fitting


def hold_out(rows: Sequence[TokenRow], settings: TrainSettings) -> tuple[list[TokenRow], list[TokenRow]]:
    """Rows to train on, and rows to measure the loss on; those with equal prompts stay on one side."""
    by_prompt: dict[tuple[int, ...], list[TokenRow]] = {}
    for row in rows:
        n_prompt = sum(label == IGNORED for label in row.labels)
        by_prompt.setdefault(row.ids[:n_prompt], []).append(row)
    groups = list(by_prompt.values())
    if len(groups) < 2:
        raise TrainingError("All rows have the same prompt, so none can be held out. Give other rows.")
    random.Random(settings.seed).shuffle(groups)
    n_held = min(max(1, round(settings.held_out * len(groups))), len(groups) - 1)
    return [row for group in groups[n_held:] for row in group], [row for group in groups[:n_held] for row in group]


def digest_of(rows: Sequence[TokenRow]) -> str:
    body = json.dumps([row.ids for row in rows]).encode()
    return hashlib.blake2b(body, digest_size=16).hexdigest()
