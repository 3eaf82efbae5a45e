"""The server tells the requests of web chats about a conversation from questions, and replies in the form they need."""

import pytest

from kraq_dspy.apps.serve.chat_tasks import reply_to_task
from tests.growth import require_linear

QUESTION = "Who keeps the light?"
TALK = f"<chat_history>\nUSER: {QUESTION}\nASSISTANT: Ida keeps it.\n</chat_history>"
HEADED = f"### Chat History:\nUser: {QUESTION}\nAssistant: Ida."


@pytest.mark.parametrize(
    ("request_text", "reply"),
    [
        ('### Task:\nName it.\nJSON format: { "title": "the title" }\n', f'{{"title": "{QUESTION}"}}'),
        ('### Task:\nAre searches needed?\n{ "queries": ["a"] }\n', '{"queries": []}'),
        ('### Task:\nPick an emoji.\n{ "emoji": "🙂" }\n', '{"emoji": ""}'),
        ("Provide a concise title for the conversation. Only return the title itself.\n\n", QUESTION),
    ],
)
def test_what_is_wanted_of_a_conversation_has_its_form(request_text: str, reply: str) -> None:
    assert reply_to_task([("user", request_text + TALK)]) == reply
    assert reply_to_task([("system", "Be brief."), ("user", request_text + HEADED)]) == reply


@pytest.mark.parametrize(
    "messages",
    [
        [("user", "Name the talk that Ida gave in 1902.")],
        [("user", "Give me the title of the novel, only the title.")],
        [("user", "Which queries does <chat_history> hold?")],
        [("user", f"Who is meant here?\n{TALK}")],
        [("user", "### Task:\nAnswer by the context.\n<context>\nUser: Ida\n</context>\nWho keeps it?")],
        [("user", QUESTION), ("assistant", "Ida."), ("user", f"Give it a title.\n{TALK}")],
        [("system", "You are a helpful assistant."), ("user", QUESTION)],
        [("assistant", "Hello.")],
    ],
)
def test_a_question_stays_a_question(messages: list[tuple[str, str]]) -> None:
    assert reply_to_task(messages) is None


@pytest.mark.parametrize("unit", [" ", "\n", "user: a", "{", '"title":', "conversation:", "<chat_history>"])
def test_a_long_message_takes_time_by_its_length(unit: str) -> None:
    require_linear(lambda text: reply_to_task([("user", text)]), lambda n: unit * (n // len(unit)), 400_000)
