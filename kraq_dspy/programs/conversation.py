"""Makes a question of a conversation complete, so that retrieval and answer see what it asks about."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import dspy

from kraq_dspy._internal.both_ways import call
from kraq_dspy._internal.step import CALL_ERRORS, SignatureLike, Step, log_failure, signature_for
from kraq_dspy.errors import ConfigError
from kraq_dspy.language.follow_ups import complete_question
from kraq_dspy.records import Turn
from kraq_dspy.signatures import CompleteQuestion
from kraq_dspy.state import SavableModule

logger = logging.getLogger(__name__)

MOST_TURNS = 6
"""The latest turns that are shown to the model."""
LONGEST_ANSWER = 600
"""Characters of an earlier question or answer that are shown to the model."""

TEXT_PARTS = frozenset({"text", "input_text", "output_text"})
"""What OpenAI's two protocols call a part of a message that is text."""

HistoryLike: TypeAlias = dspy.History | Iterable[Turn | tuple[str, str] | Mapping[str, Any]] | None
"""What was said before a question: turns, (question, answer) pairs, dictionaries with those keys, a `dspy.History`, or
OpenAI's messages ({"role": "user", "content": ...})."""


class StandaloneQuestion(SavableModule):
    """Rewrites a question of a conversation, so that it can be understood without the conversation.

    `turns` is anything that `turns_of` reads. Without turns, the module returns the question unchanged and calls no
    model. It also returns the question unchanged if the model fails or replies with nothing. If a budget is spent or
    a server is down, the module raises the error. The prediction has `question`, the rewritten question, and `asked`,
    the original one.

    >>> from kraq_dspy import Workspace
    >>> space = Workspace.open("ada.kraq")
    >>> with space:  # whose model is asked
    ...     StandaloneQuestion()("When did she die?", [("Who wrote the first program?", "Ada Lovelace.")]).question
    'Who wrote the first program? When did she die?'
    """

    def __init__(self, signature: SignatureLike = None) -> None:
        super().__init__()
        self.complete = Step(signature_for(CompleteQuestion, signature))

    async def aforward(self, question: str, turns: HistoryLike = None) -> dspy.Prediction:
        earlier_turns = turns_of(turns)
        if not earlier_turns:
            return dspy.Prediction(question=question, asked=question)

        conversation = [_as_text(turn) for turn in earlier_turns[-MOST_TURNS:]]
        complete = ""
        try:
            reply = await call(self.complete, conversation=conversation, last_question=question)
            complete = " ".join(str(reply.complete_question or "").split())
            if _is_one_of(complete, [turn.question for turn in earlier_turns]):
                complete = ""  # a model of half a billion parameters says an earlier question again
        except CALL_ERRORS as error:
            log_failure(logger, "The question is completed by rules", error)
        return dspy.Prediction(question=complete or complete_question(question, conversation), asked=question)


def _is_one_of(question: str, earlier: Sequence[str]) -> bool:
    return question.casefold() in {" ".join(each.split()).casefold() for each in earlier}


def turns_of(history: HistoryLike) -> list[Turn]:
    """The turns of a conversation, the oldest first, from any of the forms of `HistoryLike`.

    Messages of a "system" or "tool" are left out; several of the assistant after one question are joined. Raises
    ConfigError for anything else.

    >>> turns_of([{"role": "user", "content": "Who was Ada?"}, {"role": "assistant", "content": "A mathematician."}])
    [Turn('Who was Ada?', 'A mathematician.')]
    """
    if history is None:
        return []
    entries = history.messages if isinstance(history, dspy.History) else history
    if isinstance(entries, str | Mapping | Turn) or not isinstance(entries, Iterable):
        raise ConfigError(
            f"history is {history!r:.80}; expected a list of turns: (question, answer) pairs, dictionaries "
            '{"question": ..., "answer": ...}, or messages {"role": "user", "content": ...}.'
        )

    turns: list[Turn] = []
    for entry in entries:
        if isinstance(entry, Mapping) and "role" in entry:
            _take_message(turns, entry)
        else:
            turns.append(_turn(entry))
    return [turn for turn in turns if turn.question.strip() or turn.answer.strip()]


def _take_message(turns: list[Turn], message: Mapping[str, Any]) -> None:
    """Add a message of a chat: the user's begins a turn, the assistant's ends it."""
    role, text = message["role"], text_of(message.get("content"))
    if role == "user":
        turns.append(Turn(text))
    elif role == "assistant":
        before = turns.pop() if turns else Turn("")
        answer = f"{before.answer}\n{text}" if before.answer else text
        turns.append(Turn(before.question, answer))


def text_of(content: Any) -> str:
    """The text of a message's content: a string, or OpenAI's list of parts, of which text alone is read.

    >>> text_of([{"type": "input_text", "text": "Who was Ada?"}, {"type": "image_url", "image_url": {}}])
    'Who was Ada?'
    """
    if isinstance(content, str):
        return content
    if isinstance(content, Sequence):
        parts = [part.get("text") for part in content if isinstance(part, Mapping) and part.get("type") in TEXT_PARTS]
        return "\n".join(part for part in parts if isinstance(part, str))
    return ""


def _turn(entry: Any) -> Turn:
    """Raises ConfigError for what is no turn."""
    if isinstance(entry, Turn):
        return entry
    if isinstance(entry, Mapping) and isinstance(entry.get("question"), str):
        return Turn(entry["question"], str(entry.get("answer") or ""))

    is_pair = isinstance(entry, Sequence) and not isinstance(entry, str) and len(entry) == 2
    if is_pair and all(isinstance(part, str) for part in entry):
        return Turn(entry[0], entry[1])

    raise ConfigError(
        f"history holds {entry!r:.80}; expected a turn: a (question, answer) pair, a dictionary "
        '{"question": ..., "answer": ...}, or a message {"role": "user", "content": ...}.'
    )


def _as_text(turn: Turn) -> str:
    """The turn as the model reads it; a long question or answer loses its middle."""
    return f"Question: {_without_middle(turn.question)}\nAnswer: {_without_middle(turn.answer)}"


def _without_middle(text: str) -> str:
    if len(text) <= LONGEST_ANSWER:
        return text
    half = LONGEST_ANSWER // 2
    return f"{text[:half]} ... {text[-half:]}"
