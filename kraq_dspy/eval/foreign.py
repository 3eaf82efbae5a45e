"""Asks systems that run elsewhere: an HTTP endpoint, a tool of an MCP server, or a shell command.

    evaluate({"docs": read_foreign("docs.toml")}, "test.jsonl", ["recall@5"], space=space)

A file says how one is reached:

    url = "http://127.0.0.1:8000/v1/search"   # or: mcp = "npx some-server", mcp = "https://...", command = "grep ..."
    body = {question = "{question}", k = 5}   # of a POST; a url with {question} is fetched
    texts = "hits.*.chunk.text"               # where the passages stand in the reply
    answer = "answer"                         # where the answer stands, if there is one

Without `body`, `texts` and `answer`, a url is asked as OpenAI's chat completions are. What is found is judged by its
text, since a foreign system has neither our ids nor our chunks: a gold document counts as found if nearly all words of
its gold statement stand in one of the texts.
"""

import asyncio
import json
import os
import shlex
import subprocess
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import dspy
import httpx

from kraq_dspy._internal.toml_file import read_toml
from kraq_dspy.asset.corpus.sentences import sentence_spans
from kraq_dspy.errors import ConfigError, EvaluationError, MissingExtraError, did_you_mean
from kraq_dspy.eval.datasets import Example
from kraq_dspy.eval.recorded import hits_of
from kraq_dspy.language.text import content_words
from kraq_dspy.records import Document
from kraq_dspy.workspace import Workspace

NEARLY = 0.9
"""Share of a gold statement's words that one text must have to count as having found it."""
CHAT_ANSWER = "choices.0.message.content"
_SHOWN = 200  # characters of a broken reply in a message


@dataclass(frozen=True)
class ForeignSystem:
    """A retrieval system outside kraq. Exactly one of `url`, `mcp` and `command` says how kraq reaches the system.

    Args:
        url: the address. If the address contains "{question}", kraq fetches it; otherwise kraq posts `body` to it.
        mcp: the command or address of an MCP server.
        command: a shell command with "{question}".
        body: the JSON to post.
        texts: the path to the passages in the JSON reply: names and numbers with dots, `*` for each item.
        answer: the path to the answer.
        model: the name of the model, if the system is called like OpenAI's chat completions.
        tool: the tool of an MCP server.
        argument: the argument of the tool that takes the question.
        arguments: further arguments of the tool.
        headers: headers of the request. Values may name a variable of the environment: "Bearer $TOKEN".
        timeout: seconds to wait for a reply.

    Raises:
        ConfigError: for no place, or several.
    """

    url: str = ""
    mcp: str = ""
    command: str = ""
    body: Mapping[str, Any] = field(default_factory=dict)
    texts: str = ""
    answer: str = ""
    model: str = ""
    tool: str = ""
    argument: str = "query"
    arguments: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    timeout: float = 60.0

    def __post_init__(self) -> None:
        places = [name for name in ("url", "mcp", "command") if getattr(self, name)]
        if len(places) != 1:
            named = " and ".join(places) or "none"
            raise ConfigError(f"A foreign system is reached by one of url, mcp and command; there is {named}.")
        if self.mcp and not self.tool:
            raise ConfigError("An MCP server is asked through one of its tools: name it (tool = ...).")

    @property
    def place(self) -> str:
        """Where it is reached, for reports."""
        return self.url or self.mcp or self.command

    @property
    def answers(self) -> bool:
        """Whether it answers, and does not only find."""
        return bool(self.answer or self._is_chat or (self.command and not self.texts))

    @property
    def _is_chat(self) -> bool:
        return bool(self.url) and not (self.body or self.texts or self.answer or "{question}" in self.url)

    def ask(self, example: Example, space: Workspace | None, k: int) -> dspy.Prediction:
        """The answer, if it gives one, and its first `k` texts as hits of the gold documents that they have found.

        Raises EvaluationError for a refused connection, a slow, broken or empty reply: the row says which.
        """
        answer, texts = self._read(self._reply(example.question))
        hits = hits_of(example.question, *found_documents(texts[:k], gold_statements(example, space)))
        return dspy.Prediction(hits=hits, **({"answer": answer} if self.answers else {}))

    def _reply(self, question: str) -> Any:
        """What it says: a JSON value, a text, or a list of texts."""
        try:
            if self.command:
                return self._run(question)
            return self._client.call(question) if self.mcp else self._fetch(question)
        except (httpx.TimeoutException, subprocess.TimeoutExpired, TimeoutError) as error:
            raise EvaluationError(f"There was no reply within {self.timeout:g} s.") from error
        except (httpx.TransportError, OSError) as error:
            raise EvaluationError(f"{self.place} refused the connection, or broke it off: {error}") from error

    def _fetch(self, question: str) -> Any:
        headers = {name: _filled(value) for name, value in self.headers.items()}
        if "{question}" in self.url:
            url = self.url.replace("{question}", str(httpx.QueryParams({"q": question}))[2:])
            reply = httpx.get(url, headers=headers, timeout=self.timeout)
        else:
            chat = {"model": self.model, "messages": [{"role": "user", "content": question}]}
            body = with_question(self.body, question) if self.body else chat
            reply = httpx.post(self.url, json=body, headers=headers, timeout=self.timeout)
        if reply.is_error:
            raise EvaluationError(f"The reply has the status {reply.status_code}: {_brief(reply.text)}")
        return reply.text

    def _run(self, question: str) -> str:
        words = [word.replace("{question}", question) for word in shlex.split(self.command)]
        done = subprocess.run(words, input=question, capture_output=True, text=True, timeout=self.timeout, check=False)
        if done.returncode:
            raise EvaluationError(f"The command ended with {done.returncode}: {_brief(done.stderr or done.stdout)}")
        return done.stdout

    @cached_property
    def _client(self) -> "_McpClient":
        return _McpClient(self)

    def _read(self, reply: Any) -> tuple[str, list[str]]:
        """The answer and the texts of a reply. Raises EvaluationError for one that is no JSON where paths need it."""
        if not (self.texts or self.answer or self._is_chat):
            texts = [reply] if isinstance(reply, str) else list(reply)
            texts = [text.strip() for text in texts if text.strip()]
            if not texts:
                raise EvaluationError("The reply is empty.")
            return "\n\n".join(texts), texts

        value = reply if isinstance(reply, Mapping) else _json_of(reply)
        answer = " ".join(values_at(value, CHAT_ANSWER if self._is_chat else self.answer))
        texts = [text for text in values_at(value, self.texts) if text.strip()]
        before, items, _ = self.texts.partition("*")
        found_nothing = bool(items) and values_at({"reply": value}, f"reply.{before}") == ["[]"]
        if not texts and not answer and not found_nothing:
            raise EvaluationError("The reply is empty: it has neither an answer nor texts.")
        return answer, texts


class _McpClient:
    """A session with an MCP server, kept open in a thread of its own until the process ends."""

    def __init__(self, system: ForeignSystem) -> None:
        try:
            from mcp import Client, StdioServerParameters
        except ImportError as error:
            raise MissingExtraError("mcp", "mcp", "a foreign system by MCP") from error
        self._system = system
        server: Any = system.mcp
        if not system.mcp.startswith(("http://", "https://")):
            command, *arguments = shlex.split(system.mcp)
            server = StdioServerParameters(command=command, args=arguments, env=dict(os.environ))
        self._make = partial(Client, server)
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, name="kraq-mcp-client", daemon=True).start()
        self._client: Any = None
        self._lock = threading.Lock()

    def call(self, question: str) -> Any:
        """What the tool says: its structured content, or its texts. Raises EvaluationError for a tool that fails."""
        with self._lock:  # one server, one question at a time
            result = asyncio.run_coroutine_threadsafe(self._called(question), self._loop).result(self._system.timeout)
        texts = [block.text for block in result.content if getattr(block, "text", None)]
        if result.is_error:
            raise EvaluationError(f"The tool {self._system.tool!r} failed: {_brief(' '.join(texts))}")
        return (result.structured_content if self._system.texts else None) or texts

    async def _called(self, question: str) -> Any:
        if self._client is None:
            client = self._make()
            await client.__aenter__()
            self._client = client
        arguments = {**self._system.arguments, self._system.argument: question}
        try:
            return await self._client.call_tool(self._system.tool, arguments)
        except Exception as error:
            self._client = None  # the next question connects again
            raise EvaluationError(f"The MCP server broke off: {type(error).__name__}: {_brief(str(error))}") from error


def read_foreign(path: str | Path) -> ForeignSystem:
    """Read a foreign system from a TOML file. Raises ConfigError for an unknown key."""
    table = read_toml(Path(path), "file of a foreign system")
    known = [each.name for each in fields(ForeignSystem)]
    for name in table:
        if name not in known:
            raise ConfigError(
                f"{str(path)!r} has an unknown key {name!r}{did_you_mean(name, known)}; there are: {', '.join(known)}."
            )
    return ForeignSystem(**table)


def gold_statements(example: Example, space: Workspace | None) -> dict[str, list[frozenset[str]]]:
    """The words of each gold document's statements: of each gold passage the sentence that has most words of the
    question and its answers, or of the whole document if no passage is named. Empty without an index that has them."""
    if space is None or not example.supporting_ids:
        return {}
    index = space.index
    documents = {each.id: each for each in index.get(Document, sorted(index.known(Document, example.supporting_ids)))}
    passages = [each for each in example.metadata.get("passages") or () if isinstance(each, Mapping)]
    asked = set(content_words(" ".join([example.question, *example.answers])))

    statements: dict[str, list[frozenset[str]]] = {}
    for id, document in documents.items():
        texts = [document.text[each["start"] : each["end"]] for each in passages if each.get("document_id") == id]
        statements[id] = [_statement(text, asked) for text in texts or [document.text]]
    return statements


def _statement(text: str, asked: set[str]) -> frozenset[str]:
    sentences = [frozenset(content_words(text[start:end])) for start, end in sentence_spans(text)]
    return max(sentences or [frozenset(content_words(text))], key=lambda words: len(words & asked))


def found_documents(
    texts: Sequence[str], statements: Mapping[str, Sequence[frozenset[str]]], nearly: float = NEARLY
) -> tuple[list[str], list[str]]:
    """The texts, and for each the gold document that it has found first, or a name of its own; a text that has found
    several stands once for each.

    >>> found_documents(["Ada lived in London, then."], {"ada": [frozenset({"ada", "lived", "london"})]})[1]
    ['ada']
    """
    shown, ids = [], []
    for place, text in enumerate(texts):
        words = set(content_words(text))
        found = [id for id, own in statements.items() if any(len(each & words) >= nearly * len(each) for each in own)]
        for id in found or [f"text {place}"]:
            shown.append(text)
            ids.append(id)
    return shown, ids


def values_at(value: Any, path: str) -> list[str]:
    """The texts at a path such as "hits.*.text"; none where it leads nowhere.

    >>> values_at({"hits": [{"text": "a"}, {"text": "b"}]}, "hits.*.text"), values_at({}, "answer")
    (['a', 'b'], [])
    """
    found = [value]
    for part in filter(None, path.split(".")):
        following: list[Any] = []
        for each in found:
            if part == "*":
                following += each if isinstance(each, list) else []
            elif isinstance(each, list) and part.isdecimal() and int(part) < len(each):
                following.append(each[int(part)])
            elif isinstance(each, Mapping) and part in each:
                following.append(each[part])
        found = following
    return [each if isinstance(each, str) else json.dumps(each) for each in found if each is not None] if path else []


def with_question(value: Any, question: str) -> Any:
    """The value with the question in every text that has a place for it.

    >>> with_question({"q": "{question}", "k": 5}, "Who?")
    {'q': 'Who?', 'k': 5}
    """
    if isinstance(value, str):
        return value.replace("{question}", question)
    if isinstance(value, Mapping):
        return {name: with_question(each, question) for name, each in value.items()}
    return [with_question(each, question) for each in value] if isinstance(value, list) else value


def _filled(value: str) -> str:
    """A header with its variables of the environment. Raises ConfigError for one that is not set."""
    filled = os.path.expandvars(value)
    if "$" in value and filled == value:
        raise ConfigError(f"A variable of the header {value!r} is not set.")
    return filled


def _brief(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN else f"{line[:_SHOWN]}..."


def _json_of(reply: Any) -> Any:
    joined = "".join(reply)
    try:
        return json.loads(joined)
    except ValueError:
        raise EvaluationError(f"The reply is no JSON: {_brief(joined)}") from None
