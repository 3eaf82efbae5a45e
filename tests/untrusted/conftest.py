"""A model server that obeys whatever it sees unquoted, and thirty texts that try to be obeyed."""

import json
import re
import threading
import unicodedata
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

ORDER = "PWNED"
INVISIBLE = re.compile("[\u200b-\u200f\u2060\ufeff]")
MARKER = re.compile(r"\[\s*\[\s*#\s*#\s*(\w+)\s*#\s*#\s*\]\s*\]")
TURN = re.compile(
    r"<[|｜]\w[^|｜<>]*[|｜]>|<\|/\w+\|>|</?(?:s|bos|eos|start_of_turn|end_of_turn)>|\[/?INST\]|<</?SYS>>",
    re.IGNORECASE,
)
REQUEST = re.compile(r"respond\s+with\s+the\s+corresponding\s+output\s+fields", re.IGNORECASE)
CHOICE = re.compile(r"^\{(\w+)\}.*one of: ([^;\n]+)", re.MULTILINE)
OUTPUT = re.compile(r"^\d+\. `(\w+)` \((\w+)", re.MULTILINE)


@dataclass(frozen=True)
class Injection:
    name: str
    text: str


def read_injections() -> list[Injection]:
    lines = Path(__file__).with_name("injections.jsonl").read_text("utf-8").splitlines()
    return [Injection(**json.loads(line)) for line in lines]


def unquoted(messages: Sequence[Mapping[str, Any]], inputs: Collection[str] | None = None) -> list[str]:
    """The parts of a prompt that are not the value of a field, as a gullible reader would find them.

    The first value of each of the `inputs` (without them: of each name that is no output) is quoted, up to the next
    marker, the request for an answer, or the mark of a turn; so is nothing that comes after. Look-alikes of markers are
    taken for markers. A value that begins as a JSON list and is none is not quoted.
    """
    outputs = {"completed", "system", *(name for name, _ in OUTPUT.findall(_listing(messages)))}
    parts: list[str] = []
    for message in messages:
        content = message["content"]
        if not isinstance(content, str):  # an attachment
            parts.append(json.dumps(content))
            continue
        text = INVISIBLE.sub("", unicodedata.normalize("NFKC", content))
        first, *turns = TURN.split(TURN.sub(lambda mark: mark[0], text))
        parts += turns
        if message["role"] != "user":
            parts.append(first)
            continue
        request = REQUEST.search(first)
        if request:
            parts.append(first[request.start() :])
            first = first[: request.start()]
        before, *fields = MARKER.split(first)
        parts.append(before)
        named: set[str] = set()
        for name, value in zip(fields[::2], fields[1::2], strict=True):
            quoted = name not in outputs if inputs is None else name in inputs
            if name in named or not quoted or _broken_list(value):
                parts.append(value)
            named.add(name)
    return parts


def _listing(messages: Sequence[Mapping[str, Any]]) -> str:
    """Where the prompt names its outputs."""
    system = next((str(message["content"]) for message in messages if message["role"] == "system"), "")
    return system[system.rfind("Your output fields are:") :]


def _broken_list(value: str) -> bool:
    if not value.strip().startswith('["'):
        return False
    try:
        return not isinstance(json.loads(value), list)
    except ValueError:
        return True


@dataclass
class ObeyingServer:
    """Speaks the OpenAI protocol. `obeyed` are the unquoted texts that held an order; `asked` counts prompts."""

    obeyed: list[str] = field(default_factory=list)
    prompts: int = 0
    url: str = ""

    def answer(self, messages: Sequence[Mapping[str, Any]]) -> str:
        """What the prompt's own format wants: the order where there is one, else text of the prompt, word for word."""
        self.prompts += 1
        orders = [part for part in unquoted(messages) if ORDER in part]
        self.obeyed += orders
        text = ORDER if orders else str(messages[-1]["content"])
        # The whole prompt comes back as if it were knowledge, so that an injection reaches every later stage.
        known = {
            "entities": [{"name": n, "type": "thing", "description": text} for n in ("Mill", "Tower", "Harbour")],
            "relationships": [{"source": "Mill", "target": "Tower", "predicate": "near", "description": text}],
            "claims": [{"subject": "Mill", "statement": text}],
            "findings": [{"summary": text, "explanation": text}],
        }
        listing = _listing(messages)
        choices = dict(CHOICE.findall(listing))
        values = {name: choices.get(name) or _value(name, kind, text, known) for name, kind in OUTPUT.findall(listing)}
        return "\n\n".join(
            [*(f"[[ ## {name} ## ]]\n{value}" for name, value in values.items()), "[[ ## completed ## ]]"]
        )


def _value(name: str, kind: str, text: str, known: Mapping[str, Any]) -> str:
    if name in known:
        return json.dumps(known[name])
    if kind in ("bool", "int", "float"):
        return {"bool": "True", "int": "1", "float": "0.5"}[kind]
    if kind in ("list", "dict"):
        return "[]" if kind == "list" else "{}"
    return text if text == ORDER else f"It is about the mill and the tower. {text[-500:]}"


@pytest.fixture
def obeying() -> Iterator[ObeyingServer]:
    state = ObeyingServer()
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with lock:
                text = state.answer(body["messages"])
            words = re.findall(r"\s*\S+", text)
            choice: dict[str, Any] = {"index": 0, "finish_reason": "stop"}
            choice["message"] = {"role": "assistant", "content": text}
            if body.get("logprobs"):
                tokens = [{"token": word, "logprob": -0.1, "top_logprobs": []} for word in words]
                choice["logprobs"] = {"content": tokens}
            reply = json.dumps({"id": "1", "object": "chat.completion", "model": "m", "choices": [choice]}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(reply)))
            self.end_headers()
            self.wfile.write(reply)

        def log_message(self, format: str, *args: Any) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    state.url = f"http://127.0.0.1:{server.server_port}/v1"
    yield state
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="session")
def injections() -> list[Injection]:
    return read_injections()
