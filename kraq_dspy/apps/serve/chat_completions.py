"""Speaks OpenAI's chat completions, so that chat clients use an index as they use a model.

A model is an index ("docs"), which answers with the default program, or an index and a program ("docs/combined"). The
user's last message is the question, what was said before it is the conversation. A completion has, besides OpenAI's
fields, `kraq`: what `POST /api/ask` answers, with the passages that the answer rests on. What a web chat asks about a
conversation, its title for instance, is answered without the documents (`chat_tasks.py`).
"""

import json
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from typing import Annotated, Any, Literal
from uuid import uuid4

from pydantic import BaseModel, ConfigDict, Field, model_validator
from sse_starlette import ServerSentEvent
from starlette.requests import Request
from starlette.responses import Response

from kraq_dspy.apps.serve.api import GONE, Api
from kraq_dspy.apps.serve.asking import Event, ask, in_own_task, stream, streaming, while_connected
from kraq_dspy.apps.serve.atlas import Json
from kraq_dspy.apps.serve.chat_tasks import reply_to_task
from kraq_dspy.apps.serve.refusals import RequestError
from kraq_dspy.apps.serve.requests import QUESTION
from kraq_dspy.errors import did_you_mean
from kraq_dspy.programs.conversation import text_of, turns_of
from kraq_dspy.workspace.refusing import refusal_text
from kraq_dspy.workspace.registry import PROGRAMS

MOST_MESSAGES = 1000
TEXT = "text"
NO_QUESTION = "There is no question: the last message with the role 'user' must have a text."
NO_JSON = (
    'response_format is {type!r}, but an answer is text. Leave response_format out, or send {{"type": "text"}}; the '
    "passages that an answer rests on come as JSON in the field 'kraq'."
)
DONE = "[DONE]"
NO_USAGE = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}


class NoParameters(BaseModel):
    """The body of requests that have no parameters; what a client adds is passed over."""

    model_config = ConfigDict(extra="ignore")


class OpenAIBody(BaseModel):
    """What a client of OpenAI sends: unknown fields are passed over, and null stands for a field that is not there."""

    model_config = ConfigDict(extra="ignore")

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        return {name: value for name, value in given.items() if value is not None}


class Message(OpenAIBody):
    """A message of a conversation. Of a list of parts, text alone is read."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[dict[str, Any]] | None = None


class StreamOptions(OpenAIBody):
    include_usage: bool = False


class ResponseFormat(OpenAIBody):
    """The form of the reply; "json_object" and "json_schema" want JSON."""

    type: Annotated[str, Field(max_length=100)] = TEXT


class ChatRequest(OpenAIBody):
    """What is read of a request for a completion.

    How a model writes (temperature, max_tokens, stop, tools and others) is the index's own matter and is
    passed over. An answer is text, so a `response_format` that wants JSON is kept by the replies to a web chat's tasks
    alone. The server refuses questions that the documents do not answer, unless `no_refuse`, our own field, is set.
    """

    model: Annotated[str, Field(min_length=1, max_length=400)]
    messages: Annotated[list[Message], Field(min_length=1, max_length=MOST_MESSAGES)]
    n: Annotated[int, Field(ge=1, le=1)] | None = None
    stream: bool = False
    no_refuse: bool = False
    stream_options: StreamOptions | None = None
    response_format: ResponseFormat = ResponseFormat()

    @property
    def wants_json(self) -> bool:
        return self.response_format.type != TEXT

    @property
    def wants_usage(self) -> bool:
        return self.stream_options is not None and self.stream_options.include_usage


class ChatCompletions:
    """Answers the addresses below /v1 from the indexes of the API, in its places for questions."""

    def __init__(self, api: Api) -> None:
        self.api = api
        self.started = int(time.time())

    def models(self, query: NoParameters) -> Json:
        """Each index, and each program over it, as a model."""
        return {"object": "list", "data": [self._described(name) for name in self._names()]}

    def model(self, query: NoParameters, id: str) -> Json:
        """Raises RequestError for a model that there is not."""
        self._parts_of(id)
        return self._described(id)

    async def complete(self, request: Request, body: ChatRequest) -> Any:
        """Raises RequestError before anything is answered; later, a stream says what went wrong as an event."""
        index_name, program = self._parts_of(body.model)
        spoken = [(message.role, text_of(message.content).strip()) for message in body.messages]
        task = reply_to_task(spoken)
        if task is not None:
            return (
                streaming(_chunks(_task_events(task), body)) if body.stream else _completion(body.model, task, NO_USAGE)
            )

        if body.wants_json:
            raise RequestError(422, "invalid_request", NO_JSON.format(type=body.response_format.type[:40]))
        question, earlier = _asked_in(body.messages)
        call = await self.api.call(
            request, self.api.served[index_name], program, question,
            history=tuple(turns_of(earlier)), no_refuse=body.no_refuse,
        )  # fmt: skip
        if body.stream:
            return streaming(_chunks(in_own_task(stream(call)), body))
        answer = await while_connected(request, ask(call))
        if answer is None:
            return Response(status_code=GONE)
        fields = answer.to_json()
        return _completion(body.model, _content(fields), _usage(fields), kraq=fields)

    def _names(self) -> Iterator[str]:
        for index_name in self.api.served:
            yield index_name
            for spec in PROGRAMS:
                yield f"{index_name}/{spec.name}"

    def _described(self, name: str) -> Json:
        return {"id": name, "object": "model", "created": self.started, "owned_by": "kraq"}

    def _parts_of(self, model: str) -> tuple[str, str]:
        """(index, program) of a model's name; "" for the default program. Raises RequestError."""
        index_name, _, program = model.partition("/")
        if index_name in self.api.served and (not program or program in PROGRAMS):
            return index_name, program
        names = list(self._names())
        message = f"There is no model {model[:80]!r}{did_you_mean(model, names)}. GET /v1/models lists them."
        raise RequestError(404, "model_not_found", message)


def _asked_in(messages: list[Message]) -> tuple[str, list[dict[str, Any]]]:
    """The question, which is the user's last message, and what was said before it. Raises RequestError."""
    places = [place for place, message in enumerate(messages) if message.role == "user"]
    question = text_of(messages[places[-1]].content).strip() if places else ""
    if not question:
        raise RequestError(422, "invalid_request", NO_QUESTION)
    if len(question) > QUESTION:
        raise RequestError(422, "invalid_request", f"The question is longer than {QUESTION:,} characters.")

    before = messages[: places[-1]]
    return question, [
        {"role": message.role, "content": message.content}
        for message in before
        if message.role in ("user", "assistant")
    ]


def _completion(model: str, content: str, usage: Json, **more: Json) -> Json:
    """A whole answer in OpenAI's shape."""
    message = {"role": "assistant", "content": content, "refusal": None}
    return {
        "id": _new_id(),
        "object": "chat.completion",
        "created": int(time.time()),
        "model": model,
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}],
        "usage": usage,
        **more,
    }


def _event(data: Json) -> ServerSentEvent:
    return ServerSentEvent(json.dumps(data), sep="\n")


async def _chunks(events: AsyncGenerator[Event, None], body: ChatRequest) -> AsyncGenerator[ServerSentEvent, None]:
    """An answer in OpenAI's shape as it comes: the role, the text's parts, the end with the evidence, what it took if
    the client wants to know, "[DONE]"."""
    shared = {"id": _new_id(), "object": "chat.completion.chunk", "created": int(time.time()), "model": body.model}

    def chunk(delta: Json, finish_reason: str | None = None, **more: Any) -> ServerSentEvent:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        return _event({**shared, "choices": [choice], **more})

    yield chunk({"role": "assistant", "content": ""})
    has_text = False
    async with aclosing(events):
        async for name, data in events:
            if name == "text":
                has_text = True
                yield chunk({"content": data["text"]})
            elif name == "answer":
                if not has_text:
                    yield chunk({"content": _content(data)})
                yield chunk({}, "stop", **({"kraq": data} if data else {}))
                if body.wants_usage:
                    yield _event({**shared, "choices": [], "usage": _usage(data) if data else NO_USAGE})
            elif name == "error":
                yield _event(data)
    yield ServerSentEvent(DONE, sep="\n")


async def _task_events(reply: str) -> AsyncGenerator[Event, None]:
    """The reply to a request about a conversation, which has no evidence."""
    yield "text", {"text": reply}
    yield "answer", {}


def _content(answer: Json) -> str:
    """The answer; a refusal with the questions that the documents do answer, since a client shows this text alone."""
    if not answer["refused"]:
        return str(answer["answer"])
    return refusal_text([each["text"] for each in answer["next_questions"]], str(answer["answer"]))


def _usage(answer: Json) -> Json:
    """Return what the models behind the answer took; 0 for a prepared one."""
    usage = answer["usage"]
    prompt, completion = usage["prompt_tokens"], usage["completion_tokens"]
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


def _new_id() -> str:
    return f"chatcmpl-{uuid4().hex}"
