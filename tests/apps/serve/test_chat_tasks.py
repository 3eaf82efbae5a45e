"""What web chats ask about a conversation is told from questions, and gets a reply in the form that was asked for."""

import json

import pytest

from kraq_dspy.apps.serve.chat_tasks import EMOJI, reply_to_task
from tests.growth import require_linear

QUESTION = "Who keeps the light?"
TALK = f"<chat_history>\nUSER: {QUESTION}\nASSISTANT: Ida keeps it.\n</chat_history>"


@pytest.mark.parametrize(
    ("request_text", "reply"),
    [
        (
            '### Task:\nDecide whether search queries are needed. Reply with JSON.\n{ "queries": ["a"] }\n',
            {"queries": []},
        ),
        ('### Task:\nAnalyze the chat history.\n### Output:\n{\n  "queries": ["q1", "q2"]\n}\n', {"queries": []}),
        ('### Task:\nGenerate a prompt for an image.\n{\n "prompt": "Your description."\n}\n', {"prompt": QUESTION}),
        (
            '### Task:\nName it.\nJSON format: { "title": "the title" }\n### Examples:\n- { "title": "A" }\n',
            {"title": QUESTION},
        ),
        (
            '## Task\n\n### Task:\nPropose what comes next.\n{"follow_up_questions": ["a?"]}\n',
            {"follow_up_questions": []},
        ),
        ('You are a tagger. Reply as {"categories": ["one"]} for the conversation.\n', {"categories": []}),
    ],
)
def test_json_that_a_chat_wants_of_a_conversation_has_its_key(request_text: str, reply: dict[str, object]) -> None:
    for message in (request_text + TALK, f"{request_text}### Chat History:\nUser: {QUESTION}\nAssistant: Ida."):
        answer = reply_to_task([("user", message)])
        assert answer is not None
        assert json.loads(answer) == reply


def test_a_completion_and_an_emoji_are_not_looked_for_in_the_documents() -> None:
    completion = (
        "### Task:\nYou are an autocompletion system. Continue the text in `<text>`.\n### Output:\n"
        '{ "text": "<your_completion>" }\n<type>search query</type>\n<text>Who keeps the</text>\n#### Output:\n'
    )
    assert reply_to_task([("user", completion)]) == '{"text": ""}'
    plain = "Complete the sentence that the person is typing. Reply with the rest alone.\n<text>Who keeps</text>"
    assert reply_to_task([("user", plain)]) == ""

    emoji = (
        "Your task is to reflect the speaker's likely facial expression through a fitting emoji.\n\nMessage: ```Hi```"
    )
    assert reply_to_task([("user", emoji)]) == EMOJI
    assert reply_to_task([("user", f"### Task:\nPick one emoji for the mood of the talk.\n{TALK}")]) == EMOJI
    system = ("system", "Reply with a single emoji that fits the user's message.")
    assert reply_to_task([system, ("user", "We won the cup!")]) == EMOJI


@pytest.mark.parametrize(
    "system",
    [
        "Name the talk in at most ten words. Reply with the title alone.",
        "You are a professional conversation summarizer. Generate a concise title that captures the essence of the "
        "conversation.\n\nRules:\n- Output ONLY the title text.",
        "You are an assistant skilled in conversation. You need to summarize the user's conversation into a title "
        "within 10 words. Do not use punctuation marks.",
        "Analyze the given short conversation and extract a concise chat title. Only respond with the short title.",
        "you will generate a short title based on the first message a user begins a conversation with; ensure it is "
        "not more than 80 characters; do not use quotes; reply with it only",
        "You are a chat thread titling assistant. Produce a very short title, 2-4 words, and nothing else.",
        "Gib der Unterhaltung einen Titel mit höchstens fünf Wörtern. NUR den Titel, without quotes.",
        "Summarize the user's request into a single short sentence of four words or less. Do not try to answer it, "
        "only summarize the user's query.",
    ],
)
def test_a_title_in_a_system_message_is_the_first_question(system: str) -> None:
    assert reply_to_task([("system", system), ("user", QUESTION)]) == QUESTION
    talk = f"user: {QUESTION}\nassistant: Ida keeps it."
    written = json.dumps([{"role": "user", "content": QUESTION}, {"role": "assistant", "content": "Ida."}])
    if "request into" not in system:
        assert reply_to_task([("system", system), ("user", talk)]) == QUESTION
        assert reply_to_task([("system", system), ("user", written)]) == QUESTION


def test_a_block_at_the_very_beginning_of_a_message_is_the_conversation() -> None:
    block = f"<conversation>\n{QUESTION}\n</conversation>"
    assert reply_to_task([("system", "Summarize the conversation."), ("user", block)]) == QUESTION
    assert reply_to_task([("system", "Summarize the conversation."), ("user", QUESTION)]) is None


def test_a_title_or_a_summary_at_the_end_of_a_conversation_is_of_what_was_said() -> None:
    said = [("user", QUESTION), ("assistant", "Ida keeps it.")]
    title = "Please generate a four to five word title summarizing our conversation without any lead-in or punctuation."
    assert reply_to_task([*said, ("user", title)]) == QUESTION
    summary = "Summarize the discussion briefly in 200 words or less to use as a prompt for future context."
    assert reply_to_task([*said, ("system", summary)]) == f"{QUESTION}\nIda keeps it."
    json_title = 'Give this chat a title. Reply with JSON only: {"title": "..."}'
    assert reply_to_task([*said, ("user", json_title)]) == json.dumps({"title": QUESTION})


def test_tools_are_none_and_a_follow_up_stands_as_it_was_typed() -> None:
    tools = 'Available Tools: [{"name": "search"}]\nReturn only the JSON object {"tool_calls": []}.'
    assert reply_to_task([("system", tools), ("user", "Query: Who?")]) == '{"tool_calls": []}'
    condense = (
        "Given the following conversation and a follow up question, rephrase the follow up question to be a standalone "
        "question.\n\nChat History:\nHuman: Who was Ada?\nAssistant: A mathematician.\nFollow Up Input: Where did she "
        "live?\nStandalone question:"
    )
    assert reply_to_task([("user", condense)]) == "Where did she live?"


def test_a_client_that_takes_json_alone_gets_it() -> None:
    messages = [("system", "Name the chat. Reply with the title alone."), ("user", QUESTION)]
    assert reply_to_task(messages, as_json=True) == json.dumps({"title": QUESTION})


@pytest.mark.parametrize(
    "messages",
    [
        [("user", "Name the talk that Ida gave in 1902.")],
        [("user", "Give me the title of the novel, only the title.")],
        [("user", "Summarize the discussion between Ada and Charles.")],
        [("user", "List the tags of the herd.\nMessage from the keeper: none are lost.")],
        [("user", "What does the emoji in ```🙂``` mean?")],
        [
            (
                "user",
                "### Task:\nRespond to the user query by the context.\n<context>\nUser: Ida\n</context>\nWho keeps it?",
            )
        ],
        [("user", "Which queries does <chat_history> hold?")],
        [("user", "Complete the sentence: the light at Lurr is kept by")],
        [("system", "You are a helpful assistant. Answer only from the documents."), ("user", QUESTION)],
        [("system", "Give each answer a title. Answer questions about the conversation only."), ("user", QUESTION)],
        [
            ("system", "You help users. Summarize the user's question first, only then answer."),
            ("user", QUESTION),
        ],
        [("user", QUESTION), ("assistant", "Ida."), ("user", "Give me the title of the talk.")],
        [("user", QUESTION), ("assistant", "Ida."), ("user", "Summarize the discussion at Lurr in two words.")],
        [("user", QUESTION), ("assistant", "Ida."), ("user", "Which tags does this thread have?")],
        [("assistant", "Hello.")],
    ],
)
def test_a_question_stays_a_question(messages: list[tuple[str, str]]) -> None:
    assert reply_to_task(messages) is None


@pytest.mark.parametrize(
    "unit", [" ", "\n", "a", "user: a", "user:\n", "{", '"title":', "<text>", "```", "the chat a "]
)
@pytest.mark.parametrize("lead", ["", f"### Task:\nGive it a title.\n<chat_history>\nuser: {QUESTION}"])
def test_a_long_message_is_read_in_a_time_that_grows_with_its_length(lead: str, unit: str) -> None:
    def read(text: str) -> None:
        reply_to_task([("user", text)])
        reply_to_task([("system", text), ("user", text)])
        reply_to_task([("user", text), ("assistant", text), ("user", text)])

    require_linear(read, lambda n: lead + unit * (n // len(unit)), 400_000)
