"""A deterministic, OpenAI-compatible stand-in for a model server, for tests and benchmarks.

It is NOT a language model. It recognises which kind of prompt it was sent (GraphRAG's, nano-graphrag's and LightRAG's
extraction, description summaries, community reports, GraphRAG's searches, DSPy's adapters, instructor's JSON mode, any
JSON schema or tool) and answers in that prompt's own format with content taken from the prompt's own text: capitalised
spans are entities, neighbours in a sentence are related, first sentences are summaries. The same request always gets
the same answer, and the same faults: they depend on the seed, the text and the number of the attempt at it.

    cd benchmarks && python -m stand_in_server --port 8199 --latency-ms 200

Endpoints: POST /v1/chat/completions, POST /v1/embeddings, GET /v1/models, GET /stats, POST /reset, POST /config
{"latency_ms": 200, "rate_429": 0.05}. Every option below is a knob of /config too. `usage` counts a token for four
letters; /stats counts exactly with tiktoken where it is installed.
"""

import argparse
import asyncio
import contextlib
import json
import os
import traceback
from dataclasses import fields
from http import HTTPStatus
from typing import Any

from stand_in_server.faults import Knobs
from stand_in_server.request import RefusalError, as_events
from stand_in_server.service import Service

Headers = dict[str, str]


class HttpServer:
    def __init__(self, service: Service) -> None:
        self.service = service

    async def client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, from its first request to its last."""
        try:
            while await self._exchange(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the client hung up
        finally:
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """One request and its reply; whether the connection stays open."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, path, _ = head[0].split(" ", 2)
        pairs = (line.partition(":") for line in head[1:] if line)
        headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
        raw = await _body(reader, headers)
        status, extra, kind = 200, {}, "application/json"
        try:
            reply = await self._reply(method, path, raw)
        except RefusalError as error:
            if error.close:
                return False
            status, reply, extra = error.status, error.body, error.headers
        except Exception as error:  # noqa: BLE001 a bug here must be seen by the client too, not end the connection
            traceback.print_exc()
            status, reply = 500, RefusalError(500, f"server bug: {error!r}", "server_bug").body
        if isinstance(reply, bytes):
            kind = "text/event-stream"
        else:
            reply = json.dumps(reply, ensure_ascii=False, default=str).encode()
        lines = {"Content-Type": kind, "Content-Length": str(len(reply)), **extra}
        top = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n" + "".join(f"{k}: {v}\r\n" for k, v in lines.items())
        writer.write(top.encode() + b"\r\n" + reply)
        await writer.drain()
        return headers.get("connection", "").lower() != "close"

    async def _reply(self, method: str, path: str, raw: bytes) -> Any:
        """What becomes JSON, or the bytes of an event stream."""
        place = path.split("?")[0].rstrip("/")
        if method == "GET":
            return self._page(place)
        try:
            body = json.loads(raw) if raw else {}
        except ValueError:
            raise RefusalError(400, "bad json", "invalid_request_error") from None
        if place == "/reset":
            self.service.stats.reset()
            return {"ok": True}
        if place == "/config":
            return self.service.configure(body)
        if place.endswith("/chat/completions"):
            reply = await self.service.chat(body)
            with_usage = bool((body.get("stream_options") or {}).get("include_usage"))
            return as_events(reply, with_usage) if body.get("stream") else reply
        if place.endswith("/embeddings"):
            return await self.service.embeddings(body)
        raise _no_path(place)

    def _page(self, place: str) -> Any:
        if place == "/stats":
            return self.service.stats.report()
        if place.endswith("/models"):
            models = [{"id": name, "object": "model", "owned_by": "local"} for name in ("fake-chat", "fake-embed")]
            return {"object": "list", "data": models}
        if place in ("", "/health"):
            return {"ok": True}
        raise _no_path(place)


async def _body(reader: asyncio.StreamReader, headers: Headers) -> bytes:
    if headers.get("transfer-encoding", "").lower() != "chunked":
        size = int(headers.get("content-length") or 0)
        return await reader.readexactly(size) if size else b""
    body = b""
    while True:
        size = int((await reader.readline()).split(b";")[0], 16)
        body += await reader.readexactly(size) if size else b""
        await reader.readline()
        if not size:
            return body


def _no_path(place: str) -> RefusalError:
    return RefusalError(404, f"no such path {place}", "invalid_request_error")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=8199)
    parser.add_argument("--host", default="127.0.0.1")
    for knob in fields(Knobs):
        parser.add_argument("--" + knob.name.replace("_", "-"), type=type(knob.default), default=knob.default)
    options = vars(parser.parse_args())
    host, port = options.pop("host"), options.pop("port")
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve(host, port, Knobs(**options)))


async def serve(host: str, port: int, knobs: Knobs) -> None:
    http = HttpServer(Service(knobs))
    server = await asyncio.start_server(http.client, host, port, limit=2**26, backlog=1024)
    print(f"stand_in_server on http://{host}:{port}/v1 pid {os.getpid()} {knobs}", flush=True)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    main()
