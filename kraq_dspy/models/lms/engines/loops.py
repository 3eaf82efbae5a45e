"""Leaves replies that repeat themselves, as small models write them until a limit stops them.

A reply is read while it is written. Once it ends in the same thing three times over, its request is dropped. Where that
was a list under a JSON schema, the list is closed behind what is complete, and the fields that are missing are asked
for by the same prompt under what is left of the schema.
"""

import dataclasses
import json
import math
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from dspy.lm15 import DataPart, Message, Request, Response, TextPart, TransportError, Usage

from kraq_dspy._internal.dspy_internals import StreamAccumulator, error_class_for_code
from kraq_dspy.models.lms.repair import mended

TIMES = 3
LIST_UNIT, TEXT_UNIT = 80, 400
"""Characters that stand there three times, at the least, in a list of names or records and in other text: a column of
labels may say the same for long."""
_CLOSERS = '"]}'
_LOOKED_AT = 8000  # characters at the end of a long reply


def in_loop(text: str, unit: int = LIST_UNIT) -> bool:
    """Whether the text, but for what closes it, ends in the same `unit` or more characters three times over.

    White space does not count: where a grammar leaves it free, it differs from entry to entry.
    """
    text = "".join(text.split()).rstrip(_CLOSERS)
    before = text.rfind(text[-unit:], 0, len(text) - 1)
    if before < 0:
        return False
    period = len(text) - unit - before
    length = TIMES * period * math.ceil(unit / period)
    tail = text[-length:]
    return len(tail) == length and tail[period:] == tail[:-period]


def loop_unit(request: Request) -> int:
    """The one for replies to this request."""
    return LIST_UNIT if may_be_closed(request) else TEXT_UNIT


def may_be_closed(request: Request) -> bool:
    """Whether the reply is held to a JSON schema with limits whose lists are of names or records: labels and numbers
    may well repeat, one for each of many things."""
    lists = [part["items"] for part in _properties(request).values() if "maxItems" in part]
    return bool(lists) and all(map(_is_text, lists))


def _is_text(items: dict[str, Any]) -> bool:
    """Whether entries of a list are texts, or records with one."""
    return any(map(_is_text, items.get("properties", {}).values())) or (
        items.get("type") == "string" and "enum" not in items
    )


def text_of(response: Response) -> str:
    """What the model wrote; where all fields are choices, clients have read it already."""
    read = (json.dumps(part.value) for part in response.message.parts if isinstance(part, DataPart))
    return response.text or "".join(read)


class ReadAlong:
    """Collects the events of a streamed reply until it ends, or runs in a loop."""

    def __init__(self, request: Request) -> None:
        self._written = StreamAccumulator(request)
        self._unit = loop_unit(request)
        self._text, self._parts = "", 0
        self._is_left = self._has_ended = False

    def push(self, event: Any) -> bool:
        """Whether the reply runs in a loop, and nothing more is to be read. Raises the lm15 error that the event is."""
        if event.type == "error":
            raise error_class_for_code(event.error.code)(event.error.message, provider_code=event.error.provider_code)
        self._written.push(event)
        self._has_ended |= event.type == "end"
        if event.type == "delta" and event.delta.type == "text":
            self._text += event.delta.text or ""
            self._parts += 1
            self._is_left = in_loop(self._text[-_LOOKED_AT:], self._unit)
        return self._is_left

    def response(self, estimated_tokens: int) -> Response:
        """What was written. Who leaves before the end is not told what it cost: `estimated_tokens` are the prompt's
        then, and every part of the reply counts for one.

        Raises TransportError where the stream broke off.
        """
        if self._is_left:
            self._written.finish_reason = "length"
            self._written.usage = Usage(input_tokens=estimated_tokens, output_tokens=self._parts)
        elif not self._has_ended:
            raise TransportError("The server ended the stream before the reply.")
        return self._written.response()


async def without_loops(request: Request, read: Callable[[Request], Awaitable[Response]]) -> tuple[Response, int]:
    """The reply, and how many requests it took; its usage is that of all of them."""
    values: dict[str, Any] = {}
    usages: list[Usage] = []
    while True:
        reply = await read(request)
        usages.append(reply.usage)
        text = text_of(reply)
        closed = _closed(text, request)
        if closed is None:
            break
        values |= closed
        missing = {name: part for name, part in _properties(request).items() if name not in closed}
        if not missing:
            text, reply = "", dataclasses.replace(reply, finish_reason="stop")
            break
        request = _asking_for(missing, request)
    if values:
        whole = Message.assistant([TextPart(_joined(values, text))])
        reply = dataclasses.replace(reply, message=whole, usage=_total(usages))
    return reply, len(usages)


def _joined(values: dict[str, Any], rest: str) -> str:
    """The fields as JSON, and behind them those of another JSON object, which may break off."""
    text, rest = json.dumps(values, ensure_ascii=False), rest.lstrip()
    return f"{text[:-1]}, {rest[1:]}" if rest.startswith("{") else text


def _closed(text: str, request: Request) -> dict[str, Any] | None:
    """The fields of a reply that runs in a loop, the last of them a list that was closed; None for any other reply."""
    if not in_loop(text) or _parsed(text) is not None:
        return None
    values = mended(text[text.find("{") :])
    if not isinstance(values, dict) or not values or not isinstance(values[list(values)[-1]], list):
        return None
    *_, last = values
    return {**values, last: _without_repetitions(values[last])}


def _parsed(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _without_repetitions(items: Sequence[Any]) -> list[Any]:
    """Of records; the same name may be meant twice."""
    if not all(isinstance(item, dict) for item in items):
        return list(items)
    return list({json.dumps(item, sort_keys=True): item for item in items}.values())


def _properties(request: Request) -> dict[str, Any]:
    schema: Any = (request.config.response_format or {}).get("schema") or {}
    return dict(schema.get("properties") or {})


def _asking_for(properties: dict[str, Any], request: Request) -> Request:
    form = request.config.response_format or {}
    schema: dict[str, Any] = {**dict(form["schema"]), "properties": properties, "required": list(properties)}
    config = dataclasses.replace(request.config, response_format={**form, "schema": schema})
    return dataclasses.replace(request, config=config)


def _total(usages: Sequence[Usage]) -> Usage:
    def added(name: str) -> int | None:
        counts = [count for usage in usages if (count := getattr(usage, name)) is not None]
        return sum(counts) if counts else None

    return Usage(**{field.name: added(field.name) for field in dataclasses.fields(Usage)})
