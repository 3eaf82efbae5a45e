"""A deterministic, OpenAI-compatible stand-in for a model server, for tests and benchmarks.

It is NOT a language model. It recognises which kind of prompt it was sent (GraphRAG's, nano-graphrag's and LightRAG's
extraction, description summaries, community reports, GraphRAG's searches, DSPy's adapters, instructor's JSON mode, any
JSON schema or tool) and answers in that prompt's own format with content taken from the prompt's own text: capitalised
spans are entities, neighbours in a sentence are related, first sentences are summaries. The same request always gets
the same answer, and the same faults: they depend on the seed, the text and the number of the attempt at it.

    cd benchmarks && python -m stand_in_server --port 8199 --latency-ms 200

Endpoints: POST /v1/chat/completions, POST /v1/embeddings, GET /v1/models, GET /stats, POST /reset, GET /log?n=5,
POST /config {"latency_ms": 200, "rate_429": 0.05}. Every option below is a knob of /config too. `usage` counts a token
for four letters; /stats counts exactly with tiktoken where it is installed.
"""

import argparse
import asyncio
import contextlib
import os
from dataclasses import fields

from stand_in_server.http_server import HttpServer
from stand_in_server.knobs import Knobs
from stand_in_server.service import Service


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
