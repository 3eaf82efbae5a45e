"""Speaks OpenAI's chat completions, with the programs as models, so that any chat front end asks an index."""

import json
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any
from uuid import uuid4

from kraq_dspy.apps.serve.asking import ProgramCall, stream
from kraq_dspy.apps.serve.endpoints import QUESTION, ChatRequest, RequestError
from kraq_dspy.apps.serve.served import Served, ServedIndex
from kraq_dspy.workspace.registry import PROGRAMS


def models(served: Served) -> dict[str, Any]:
    """Every program; "INDEX/PROGRAM" where several indexes are served."""
    ids = [f"{index.name}/{spec.name}" if len(served) > 1 else spec.name for index in served for spec in iter(PROGRAMS)]
    return {"object": "list", "data": [_model(each) for each in ids]}


def model(served: Served, id: str) -> dict[str, Any]:
    """One of them. Raises RequestError for a name that is none."""
    _program_of(served, id)
    return _model(id)


def _model(id: str) -> dict[str, Any]:
    return {"id": id, "object": "model", "created": 0, "owned_by": "kraq"}


def _program_of(served: Served, model: str) -> tuple[ServedIndex, str]:
    """The index and the program that a model's name says. Raises RequestError."""
    index, slash, program = model.rpartition("/")
    if not slash or index not in served.by_name:
        index, program = "", model
    if program not in PROGRAMS:
        raise RequestError(404, "model_not_found", f"There is no model {model[:100]!r}; see /v1/models.")
    return served[index or None], program


def asked_of(served: Served, request: ChatRequest) -> tuple[ServedIndex, str, str]:
    """(index, program, question): the last thing that the user says. Programs answer one question at a time; what was
    said before is not looked at.

    Raises RequestError.
    """
    index, program = _program_of(served, request.model)
    question = next((message.text for message in reversed(request.messages) if message.role == "user"), "").strip()
    if not question:
        raise RequestError(422, "invalid_request", "messages holds no text of the role user.")
    if len(question) > QUESTION:
        raise RequestError(422, "invalid_request", f"The question is longer than {QUESTION:,} characters.")
    return index, program, question


def completion(model: str, answer: dict[str, Any]) -> dict[str, Any]:
    """The answer; what it rests on stands under "kraq", where clients that do not know it pass it over."""
    message = {"role": "assistant", "content": answer["answer"]}
    return {
        **_head(model, "chat.completion"),
        "choices": [{"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}],
        "usage": _usage(answer),
        "kraq": _evidence(answer),
    }


async def chunks(call: ProgramCall, request: ChatRequest) -> AsyncGenerator[bytes, None]:
    """The answer as server-sent events. An answer that comes as a whole is one of them."""
    head = _head(request.model, "chat.completion.chunk")

    def chunk(delta: dict[str, Any], finish: str | None = None, **more: Any) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
        return _data({**head, "choices": [choice], **more})

    yield chunk({"role": "assistant", "content": ""})
    written = ""
    async with aclosing(stream(call)) as events:
        async for event, data in events:
            if event == "text":
                written += data["text"]
                yield chunk({"content": data["text"]})
            elif event == "error":
                yield _data(data)
            elif event == "answer":
                if not written.strip():
                    yield chunk({"content": data["answer"]})
                yield chunk({}, "stop", kraq=_evidence(data))
                if (request.stream_options or {}).get("include_usage"):
                    yield _data({**head, "choices": [], "usage": _usage(data)})
    yield b"data: [DONE]\n\n"


def _head(model: str, kind: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{uuid4().hex}", "object": kind, "created": int(time.time()), "model": model}


def _usage(answer: dict[str, Any]) -> dict[str, int]:
    prompt, written = answer["usage"]["prompt_tokens"], answer["usage"]["completion_tokens"]
    return {"prompt_tokens": prompt, "completion_tokens": written, "total_tokens": prompt + written}


def _evidence(answer: dict[str, Any]) -> dict[str, Any]:
    return {name: answer[name] for name in ("hits", "next_questions", "notes", "timings", "model")}


def _data(value: dict[str, Any]) -> bytes:
    return f"data: {json.dumps(value)}\n\n".encode()
