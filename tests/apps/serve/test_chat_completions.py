"""Asks for chat completions by OpenAI's client, by LangChain's, and by the calls that a web chat makes."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from dspy.utils import DummyLM
from starlette.testclient import TestClient

from kraq_dspy.apps.serve.app import make_app
from kraq_dspy.apps.serve.chat_tasks import reply_to_task
from kraq_dspy.apps.serve.serve_settings import ServeSettings
from tests.apps.serve.conftest import open_all

if TYPE_CHECKING:
    import openai

LIBRECHAT_TITLE = "Provide a concise, 5-word-or-less title for the conversation"
FOLLOW_UP = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Who wrote Don Juan?"},
    {"role": "assistant", "content": "Lord Byron."},
    {"role": "user", "content": "Where did he live?"},
]


def openai_client(client: TestClient, key: str = "none") -> "openai.OpenAI":
    import openai

    return openai.OpenAI(base_url="http://localhost/v1", api_key=key, http_client=client, max_retries=0)


def test_each_index_and_each_program_over_it_is_a_model(client: TestClient) -> None:
    models = openai_client(client).models.list().data
    names = [model.id for model in models]
    assert names[0] == "poets"
    assert {"poets/traditional", "poets/combined", "poets/speculative"} <= set(names)
    assert openai_client(client).models.retrieve("poets/combined").owned_by == "kraq"


def test_a_question_gets_an_answer_with_its_evidence(client: TestClient) -> None:
    completion = openai_client(client).chat.completions.create(
        model="poets/traditional", messages=[{"role": "user", "content": "Who wrote Don Juan?"}], temperature=0.3
    )
    assert completion.choices[0].finish_reason == "stop"
    assert "Byron" in str(completion.choices[0].message.content)
    assert completion.usage is not None
    assert completion.usage.total_tokens == completion.usage.prompt_tokens + completion.usage.completion_tokens > 0
    evidence = completion.model_extra["kraq"]["hits"]  # type: ignore[index]
    assert "byron" in {hit["document_id"] for hit in evidence}


def test_a_follow_up_is_asked_in_full(client: TestClient) -> None:
    completion = openai_client(client).chat.completions.create(model="poets", messages=FOLLOW_UP)  # type: ignore[arg-type]
    assert completion.model_extra["kraq"]["standalone_question"] == "Who wrote Don Juan? Where did he live?"  # type: ignore[index]


def test_a_stream_has_the_role_the_text_the_end_and_the_usage(poets: Path) -> None:
    lm = DummyLM([{"answer": "Lord Byron wrote it."}])
    with open_all(poets, models={"answerer": lm}) as served, TestClient(make_app(served, ServeSettings())) as client:
        client.base_url = "http://localhost"  # type: ignore[assignment]
        chunks = list(
            openai_client(client).chat.completions.create(
                model="poets/traditional",
                messages=[{"role": "user", "content": "Who wrote Don Juan?"}],
                stream=True,
                stream_options={"include_usage": True},
            )
        )
    assert chunks[0].choices[0].delta.role == "assistant"
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text == "Lord Byron wrote it."
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "stop"
    assert chunks[-1].usage is not None
    assert len({chunk.id for chunk in chunks}) == 1


def test_langchains_client_asks_and_streams(client: TestClient) -> None:

    langchain = pytest.importorskip("langchain_openai", reason="langchain-openai is not installed")
    chat = langchain.ChatOpenAI(model="poets", base_url="http://localhost/v1", api_key="none", http_client=client)
    assert "Byron" in chat.invoke("Who wrote Don Juan?").content
    assert "Byron" in "".join(chunk.content for chunk in chat.stream("Who wrote Don Juan?"))


def test_the_calls_of_a_web_chat_are_answered(client_of: Callable[..., TestClient]) -> None:
    """A web chat lists models, and streams an answer with options of its own."""
    client = client_of(token="a-long-token")
    bearer = {"Authorization": "Bearer a-long-token"}
    assert client.get("/v1/models").status_code == 401
    listed = client.get("/v1/models", headers=bearer).json()
    model = listed["data"][0]["id"]

    body: dict[str, Any] = {
        "model": model,
        "stream": True,
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Who wrote Don Juan?"}]}],
        "temperature": 0.7,
        "top_p": 1,
        "max_tokens": 500,
        "user": "someone",
        "chat_id": "an unknown field",
    }
    lines = client.post("/v1/chat/completions", json=body, headers=bearer).text.split("\n\n")
    data = [line.removeprefix("data: ") for line in lines if line.startswith("data: ")]
    assert data[-1] == "[DONE]"
    assert json.loads(data[0])["object"] == "chat.completion.chunk"


HISTORY = """
### Chat History:
<chat_history>
USER: Who wrote Don Juan?
ASSISTANT: Lord Byron wrote it.
</chat_history>"""


@pytest.mark.parametrize(
    ("request_text", "reply"),
    [
        (
            '### Task:\nGenerate a concise, 3-5 word title.\n### Output:\nJSON format: { "title": "your title" }'
            + HISTORY,
            '{"title": "Who wrote Don Juan?"}',
        ),
        ('### Task:\nGenerate 1-3 broad tags.\nJSON format: { "tags": ["tag1"] }' + HISTORY, '{"tags": []}'),
        ('### Task:\nSuggest questions.\n{ "follow_ups": ["Question 1?"] }' + HISTORY, '{"follow_ups": []}'),
        (
            "Provide a concise, 5-word-or-less title for the conversation, using title case conventions. Only return "
            "the title itself.\n\nConversation:\nUser: Who wrote Don Juan?\nAI: Lord Byron wrote it.",
            "Who wrote Don Juan?",
        ),
    ],
)
def test_a_web_chats_request_about_a_conversation_is_answered_without_the_documents(
    client: TestClient, request_text: str, reply: str
) -> None:
    messages: Any = [{"role": "user", "content": request_text}]
    completion = openai_client(client).chat.completions.create(model="poets", messages=messages)
    assert completion.choices[0].message.content == reply
    assert completion.usage is not None
    assert completion.usage.total_tokens == 0
    assert "kraq" not in (completion.model_extra or {})

    options: Any = {"stream": True, "stream_options": {"include_usage": True}}
    chunks = list(openai_client(client).chat.completions.create(model="poets", messages=messages, **options))
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks[:-1]) == reply
    assert chunks[-1].usage.total_tokens == 0


@pytest.mark.parametrize(
    "question",
    [
        "Give this chat a title of 3 words.",
        "### Task:\nRespond to the query by the context.\n<context>\nNotes.\n</context>\nWho wrote Don Juan?",
        "Which novel has <chat_history> in its title?",
        '### Task:\nGenerate JSON like { "title": "Don Juan" } about its author.',
        'Who answers "### Task: <chat_history>" by { "title": "Don Juan" }?',
    ],
)
def test_a_question_that_only_looks_like_one_about_a_conversation_asks_the_documents(
    client: TestClient, question: str
) -> None:
    completion = openai_client(client).chat.completions.create(
        model="poets", messages=[{"role": "user", "content": question}]
    )
    assert completion.model_extra["kraq"]["question"] == question  # type: ignore[index]


ASKED = {"role": "user", "content": "Who wrote Don Juan?"}


@pytest.mark.parametrize(
    "change",
    [
        {"stream": None},
        dict.fromkeys(
            ("stream", "stream_options", "n", "stop", "max_tokens", "max_completion_tokens", "temperature", "tools",
             "tool_choice", "response_format", "user", "no_refuse", "seed", "logprobs"), None
        ),
        {"n": 1, "stop": ["\n"], "max_completion_tokens": 50, "response_format": {"type": "text"}},
        {"stream_options": {"include_usage": None}},
        {"messages": [ASKED, {"role": "system", "content": "Answer briefly."}]},
        {"messages": [{"role": "developer", "content": "Answer briefly."}, ASKED]},
        {"messages": [ASKED, {"role": "assistant", "content": "It was"}]},
        {"messages": [{"role": "user", "content": [{"type": "input_text", "text": "Who wrote Don Juan?"}]}]},
        {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,"}},
                                                   {"type": "text", "text": "Who wrote Don Juan?"}]}]},
        {"messages": [ASKED, {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "type": "function"}]},
                      {"role": "tool", "tool_call_id": "1", "content": "nothing"}]},
        {"messages": [{"role": "system", "content": None}, {**ASKED, "name": None}]},
    ],
)  # fmt: skip
def test_whatever_openai_allows_in_a_request_is_answered(client: TestClient, change: dict[str, Any]) -> None:
    response = client.post("/v1/chat/completions", json={"model": "poets/traditional", "messages": [ASKED], **change})
    assert response.status_code == 200, response.text
    assert response.json()["kraq"]["question"] == "Who wrote Don Juan?"
    assert "Byron" in response.json()["choices"][0]["message"]["content"]


@pytest.mark.parametrize("kind", ["json_object", "json_schema"])
def test_json_is_given_for_a_web_chats_task_and_refused_for_an_answer(client: TestClient, kind: str) -> None:
    body: dict[str, Any] = {"model": "poets", "messages": [ASKED], "response_format": {"type": kind}}
    refused = client.post("/v1/chat/completions", json=body)
    assert refused.status_code == 422
    assert f"response_format is '{kind}', but an answer is text" in refused.json()["error"]["message"]

    body["messages"] = [{"role": "user", "content": '{ "title": "your title" }' + HISTORY}]
    named = client.post("/v1/chat/completions", json=body).json()["choices"][0]["message"]["content"]
    assert json.loads(named) == {"title": "Who wrote Don Juan?"}


def test_a_long_first_question_is_cut_between_words_for_a_title() -> None:
    question = "Which of the poets of the second generation wrote most of his letters from Ravenna?"
    title = reply_to_task([("user", f"{LIBRECHAT_TITLE}.\nConversation:\nUser: {question}\nAI: Byron.")])
    assert title == "Which of the poets of the second generation wrote most of…"


@pytest.mark.parametrize(
    ("change", "status", "code"),
    [
        ({"model": "poet"}, 404, "model_not_found"),
        ({"model": "poets/combine"}, 404, "model_not_found"),
        ({"messages": []}, 422, "invalid_request"),
        ({"messages": [{"role": "assistant", "content": "Hello."}]}, 422, "invalid_request"),
        ({"messages": [{"role": "user", "content": "  "}]}, 422, "invalid_request"),
        ({"messages": [{"role": "user", "content": "x" * 5000}]}, 422, "invalid_request"),
        ({"n": 2}, 422, "invalid_request"),
    ],
)
def test_what_cannot_be_answered_is_refused_in_openais_shape(
    client: TestClient, change: dict[str, Any], status: int, code: str
) -> None:
    body = {"model": "poets", "messages": [{"role": "user", "content": "Who wrote Don Juan?"}], **change}
    response = client.post("/v1/chat/completions", json=body)
    error = response.json()["error"]
    assert (response.status_code, error["code"], error["type"]) == (status, code, "invalid_request_error")


def test_a_mistyped_model_is_told_the_nearest_name(client: TestClient) -> None:
    import openai

    with pytest.raises(openai.NotFoundError, match="did you mean 'poets/combined'"):
        openai_client(client).chat.completions.create(
            model="poets/combine", messages=[{"role": "user", "content": "Who?"}]
        )


@pytest.mark.parametrize(
    ("text", "reply"),
    [
        ("ok great, thank you very much", "You are welcome."),
        ("Where was he born?", 'Nobody was named whom "he" stands for: ask with the name.'),
    ],
)
def test_thanks_and_a_question_about_nobody_are_not_searched_for(client: TestClient, text: str, reply: str) -> None:
    message: dict[str, Any] = {"role": "user", "content": text}
    for body in ({"messages": [message]}, {"messages": [message], "stream": True}):
        response = client.post("/v1/chat/completions", json={"model": "poets", **body})
        assert json.dumps(reply) in response.text

    answer = client.post("/api/ask", json={"question": text}).json()
    assert (answer["answer"], answer["hits"], answer["refused"]) == (reply, [], False)
    anyway = client.post("/api/ask", json={"question": text, "no_refuse": True}).json()
    assert anyway["answer"] != reply
