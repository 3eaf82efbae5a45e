"""Speaks OpenAI's chat completions, with the programs as models, so that any chat front end asks an index."""

import json
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any
from uuid import uuid4

from sse_starlette import ServerSentEvent

from kraq_dspy.apps.serve.asking import ProgramCall, stream
from kraq_dspy.apps.serve.refusals import RequestError
from kraq_dspy.apps.serve.requests import QUESTION, ChatRequest
from kraq_dspy.apps.serve.served import ServedIndex
from kraq_dspy.workspace.registry import PROGRAMS


def models(served: Mapping[str, ServedIndex]) -> dict[str, Any]:
    """Every program; "INDEX/PROGRAM" where several indexes are served."""
    ids = [f"{index}/{spec.name}" if len(served) > 1 else spec.name for index in served for spec in iter(PROGRAMS)]
    listed = [{"id": each, "object": "model", "created": 0, "owned_by": "kraq"} for each in ids]
    return {"object": "list", "data": listed}


def asked_of(served: Mapping[str, ServedIndex], request: ChatRequest) -> tuple[str | None, str, str]:
    """(index, program, question): the last thing that the user says. Programs answer one question at a time; what was
    said before is not looked at.

    Raises RequestError.
    """
    index, slash, program = request.model.rpartition("/")
    if not slash or index not in served:
        index, program = "", request.model
    if program not in PROGRAMS:
        raise RequestError(404, "model_not_found", f"There is no model {request.model[:100]!r}; see /v1/models.")
    question = next((message.text for message in reversed(request.messages) if message.role == "user"), "").strip()
    if not question:
        raise RequestError(422, "invalid_request", "messages holds no text of the role user.")
    if len(question) > QUESTION:
        raise RequestError(422, "invalid_request", f"The question is longer than {QUESTION:,} characters.")
    return index or None, program, question


def completion(model: str, answer: dict[str, Any]) -> dict[str, Any]:
    """The answer; what it rests on stands under "kraq", where clients that do not know it pass it over."""
    message = {"role": "assistant", "content": answer["answer"]}
    return {
        **_head(model, "chat.completion"),
        "choices": [{"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}],
        "usage": _usage(answer),
        "kraq": _evidence(answer),
    }


async def chunks(call: ProgramCall, request: ChatRequest) -> AsyncGenerator[ServerSentEvent, None]:
    """The answer as server-sent events. An answer that comes as a whole is one of them."""
    head = _head(request.model, "chat.completion.chunk")

    def chunk(delta: dict[str, Any], finish: str | None = None, **more: Any) -> ServerSentEvent:
        choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
        return event_of({**head, "choices": [choice], **more})

    def event_of(data: dict[str, Any]) -> ServerSentEvent:
        return ServerSentEvent(json.dumps(data), sep="\n")

    yield chunk({"role": "assistant", "content": ""})
    written = ""
    async with aclosing(stream(call)) as events:
        async for event, data in events:
            if event == "text":
                written += data["text"]
                yield chunk({"content": data["text"]})
            elif event == "error":
                yield event_of(data)
            elif event == "answer":
                if not written.strip():
                    yield chunk({"content": data["answer"]})
                yield chunk({}, "stop", kraq=_evidence(data))
                if (request.stream_options or {}).get("include_usage"):
                    yield event_of({**head, "choices": [], "usage": _usage(data)})
    yield ServerSentEvent("[DONE]", sep="\n")


def _head(model: str, kind: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{uuid4().hex}", "object": kind, "created": int(time.time()), "model": model}


def _usage(answer: dict[str, Any]) -> dict[str, int]:
    prompt, written = answer["usage"]["prompt_tokens"], answer["usage"]["completion_tokens"]
    return {"prompt_tokens": prompt, "completion_tokens": written, "total_tokens": prompt + written}


def _evidence(answer: dict[str, Any]) -> dict[str, Any]:
    return {name: answer[name] for name in ("hits", "next_questions", "notes", "timings", "model")}
