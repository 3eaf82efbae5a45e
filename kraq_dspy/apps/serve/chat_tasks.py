"""Answers what web chats ask of a model besides questions: a title, tags and next questions for a conversation.

A web chat sends these to the model of the conversation, which here is an index: it would search the documents for "a
concise, 3-5 word title". Open WebUI begins such a request with "### Task:" and puts the conversation between tags;
LibreChat asks for a title in one sentence. Nobody asks documents that way, and no model is asked for the reply.
"""

import json
import re

TASK = "### Task:"
CONVERSATION = "<chat_history>"
LIBRECHAT_TITLE = "Provide a concise, 5-word-or-less title for the conversation"
LONGEST_TITLE = 60  # characters
UNTITLED = "Conversation"

_WANTED_KEY = re.compile(r'\{\s*"(title|tags|follow_ups)"\s*:')
_FIRST_QUESTION = re.compile(r"^user:\s*(.+?)\s*(?=^(?:assistant|ai|user):|</chat_history>|\Z)", re.I | re.M | re.S)


def reply_to_task(message: str) -> str | None:
    """The reply to a request about a conversation; None if the message is a question.

    The title is the person's first question. Of tags and next questions the lists are empty: an index has no tags, and
    the next questions of an answer come with the answer.

    >>> reply_to_task(f"{LIBRECHAT_TITLE}.\\nConversation:\\nUser: Who was Ada?")
    'Who was Ada?'
    """
    if message.startswith(LIBRECHAT_TITLE):
        return _title(message)
    if not message.startswith(TASK) or CONVERSATION not in message:
        return None

    named_key = _WANTED_KEY.search(message)
    if named_key is None:
        return None
    key = named_key[1]
    value = _title(message.partition(CONVERSATION)[2]) if key == "title" else []
    return json.dumps({key: value}, ensure_ascii=False)


def _title(conversation: str) -> str:
    """The first thing that the person said, on one line, cut between words."""
    first = _FIRST_QUESTION.search(conversation)
    question = " ".join(first[1].split()) if first else ""
    if len(question) <= LONGEST_TITLE:
        return question or UNTITLED
    return question[:LONGEST_TITLE].rpartition(" ")[0].rstrip(",;:") + "…"
