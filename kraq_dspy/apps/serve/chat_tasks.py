"""Answers what a web chat asks of a conversation that it brings along: a title, tags, searches, next questions.

A web chat sends such a request to the model of the conversation, which here is an index: it would search the documents
for "a concise, 3-5 word title". Nobody asks documents that way, and no model is asked for the reply.
"""

import json
import re
from collections.abc import Sequence

LONGEST_TITLE = 60  # characters
LOOKED_AT = 20_000  # characters of a message
TITLES = frozenset(("title", "name", "topic"))
"""Names under which a title is wanted; under any other one, nothing is the answer."""

_CONVERSATION = re.compile(
    r"(?:<chat_history>|^(?:#{1,6} {0,3})?(?:chat history|conversation):)\s{0,9}(?:user|human):(?P<question>[^\n]*)",
    re.IGNORECASE | re.MULTILINE,
)
_TEMPLATE = re.compile(r"\{\s{0,40}\"(?P<key>\w{1,40})\"\s{0,9}:\s{0,9}(?P<value>[\[\"])")


def reply_to_task(messages: Sequence[tuple[str, str]]) -> str | None:
    """The reply to one message that quotes a conversation and wants a title or JSON of it; None for a question.

    `messages` are (role, text). A title is the person's first question. Lists of tags, searches and next questions are
    empty: an index has no tags, needs no search of the web, and gives the next questions with an answer.

    >>> reply_to_task([("user", 'Tag this: {"tags": ["a"]}\\n<chat_history>\\nUSER: Who was Ada?\\n</chat_history>')])
    '{"tags": []}'
    >>> reply_to_task([("user", "Who was Ada?")]) is None
    True
    """
    spoken = [text for role, text in messages if role in ("user", "assistant")]
    conversation = _CONVERSATION.search(spoken[0][:LOOKED_AT]) if len(spoken) == 1 else None
    if conversation is None:
        return None

    title = _clipped(" ".join(conversation["question"].split()))
    wanted = spoken[0][: conversation.start()]
    template = _TEMPLATE.search(wanted)
    if template is None:
        return title if "title" in wanted else None
    if template["key"] in TITLES:
        return json.dumps({template["key"]: title}, ensure_ascii=False)
    return json.dumps({template["key"]: [] if template["value"] == "[" else ""})


def _clipped(title: str) -> str:
    """At most `LONGEST_TITLE` characters, cut between words."""
    if len(title) <= LONGEST_TITLE:
        return title
    return title[:LONGEST_TITLE].rpartition(" ")[0].rstrip(",;:") + "…"
