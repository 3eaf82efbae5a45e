"""Gathers requests into batches that transformers generates, and follows each row: its tokens, the schema that it is
held to, its log-probabilities, where it ends."""

import json
import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
from dspy.lm15 import InvalidRequestError
from numpy.typing import NDArray

from kraq_dspy.errors import ModelError, import_extra
from kraq_dspy.models.embedders.model_folder import local_folder, weights_place
from kraq_dspy.models.lms.engines.gguf_file import read_gguf


@dataclass(frozen=True, slots=True)
class GenerationJob:
    """One prompt as token ids, and how its row is to be sampled."""

    ids: list[int]
    adapter: str
    model: str
    max_tokens: int
    temperature: float
    top_p: float
    seed: int | None
    stop: tuple[str, ...]
    is_scored: bool  # its tokens' log-probabilities are wanted
    matcher: Any | None = None  # holds the reply to a JSON schema


LIKE_LENGTH, LITTLE_PADDING = 1.5, 128
"""A prompt may be so many times as long as the shortest of its batch, and as many tokens longer anyway."""


def of_like_length(rows: Sequence[int], lengths: Sequence[int]) -> list[list[int]]:
    """Part rows of prompts so that none is filled up to much more than its length, the shortest prompts first.

    All rows of a batch are as long as its longest, and a processor reads what fills them up as well.

    >>> of_like_length([0, 1, 2, 3], [300, 2000, 310, 1900])
    [[0, 2], [3, 1]]
    """
    by_length = sorted(zip(lengths, rows, strict=True))
    parts: list[list[int]] = []
    shortest = 0
    for length, row in by_length:
        if not parts or length > max(shortest * LIKE_LENGTH, shortest + LITTLE_PADDING):
            parts.append([])
            shortest = length
        parts[-1].append(row)
    return parts


class LogprobRecorder:
    """A logits processor that changes nothing: keeps the log-probability of every token that was chosen.

    Processors run before temperature and top-p, and a step's choice is known at the next step. Keeping all logits, as
    `output_logits` does, would take gigabytes.
    """

    def __init__(self, torch: Any) -> None:
        self.torch = torch
        self.chosen: list[list[float]] = []  # by step, then by row
        self._last: Any = None

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        self.finish(input_ids)
        self._last = self.torch.log_softmax(scores.float(), dim=-1)
        return scores

    def finish(self, input_ids: Any) -> None:
        """The last column of `input_ids` is what was chosen from the last scores."""
        if self._last is not None:
            self.chosen.append(self._last.gather(1, input_ids[:, -1:])[:, 0].tolist())
            self._last = None


class RowLimits:
    """A stopping criterion by row: its own token limit is reached, or nobody waits for it any more."""

    def __init__(
        self, torch: Any, jobs: Sequence[GenerationJob], cancelled: Sequence[Callable[[], bool]], n_prompt: int
    ) -> None:
        self.torch = torch
        self.jobs = jobs
        self.cancelled = cancelled
        self.n_prompt = n_prompt

    def __call__(self, input_ids: Any, scores: Any, **_: Any) -> Any:
        written = input_ids.shape[1] - self.n_prompt
        rows = zip(self.jobs, self.cancelled, strict=True)
        done = [written >= job.max_tokens or gone() for job, gone in rows]
        return self.torch.tensor(done, dtype=self.torch.bool, device=input_ids.device)


def pieces_until(pieces: Sequence[str], cut: int) -> list[str]:
    """The pieces of the first `cut` characters; the last may be a part of a token."""
    within_cut: list[str] = []
    length = 0
    for piece in pieces:
        if length >= cut and piece:
            break
        within_cut.append(piece[: cut - length])
        length += len(piece)
    return within_cut


_PURPOSE = "A reply held to a JSON schema"
# Free white space is where small models lose themselves; without the usual spaces they write empty lists.
_SPACES = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}


class SchemaGrammars:
    """Turns schemas into matchers for one tokenizer; reading the vocabulary takes a second, once.

    Raises MissingExtraError without llguidance.
    """

    def __init__(self, tokenizer: Any, ends: Sequence[int]) -> None:
        self._llguidance = import_extra("llguidance", "transformers", _PURPOSE)
        tables = import_extra("llguidance.hf", "transformers", _PURPOSE)
        self._tokens = tables.from_tokenizer(tokenizer, eos_token=list(ends) or None)

    def matcher(self, response_format: Mapping[str, Any]) -> Any:
        """Make the matcher of one reply. Raises InvalidRequestError for a schema that llguidance
        does not know how to follow."""
        grammars = self._llguidance.LLMatcher
        schema = json.dumps(response_format.get("schema", {"type": "object"}))
        grammar = grammars.grammar_from_json_schema(schema, overrides=_SPACES)
        fault = grammars.validate_grammar(grammar, self._tokens)
        if fault:
            raise InvalidRequestError(f"The JSON schema cannot be followed: {fault}")
        return grammars(self._tokens, grammar)


class SchemaMask:
    """A logits processor: a row with a matcher gets the tokens that its schema allows next, and its end at the end."""

    def __init__(self, torch: Any, matchers: Sequence[Any | None], ends: Sequence[int], n_prompt: int) -> None:
        self.torch = torch
        self.matchers = list(matchers)
        self.ends = list(ends)
        self.n_prompt = n_prompt

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        begun = input_ids.shape[1] > self.n_prompt
        last_tokens = input_ids[:, -1].tolist()
        allowed_of: dict[int, NDArray[np.bool_]] = {}
        for row, matcher in enumerate(self.matchers):
            if matcher is None:
                continue
            written = begun and not matcher.is_stopped()
            if written and not matcher.try_consume_tokens([last_tokens[row]]):
                self.matchers[row] = None  # padding: the row was left before its schema ended
                continue
            allowed_of[row] = self._allowed(matcher, scores.shape[1])

        if allowed_of:  # one copy to the device for all rows
            allowed = self.torch.from_numpy(np.stack(list(allowed_of.values()))).to(scores.device)
            rows = list(allowed_of)
            scores[rows] = scores[rows].masked_fill(~allowed, -self.torch.inf)
        return scores

    def _allowed(self, matcher: Any, n_tokens: int) -> NDArray[np.bool_]:
        """The tokens that may come next, as one truth value for each of the model's."""
        allowed = np.zeros(n_tokens, dtype=bool)
        if matcher.is_stopped():
            allowed[self.ends] = True
        else:
            bits = np.unpackbits(np.frombuffer(matcher.compute_bitmask(), dtype=np.uint8), bitorder="little")
            allowed[: len(bits)] = bits[:n_tokens]  # a model may have rows for tokens its tokenizer lacks
        return allowed


def end_tokens(tokenizer: Any, model: Any) -> list[int]:
    """Chat models have several: end of text, end of turn."""
    ends = model.generation_config.eos_token_id
    several = ends if isinstance(ends, list) else [] if ends is None else [ends]
    return sorted({*several, *([] if tokenizer.eos_token_id is None else [tokenizer.eos_token_id])})


def pad_token(tokenizer: Any) -> int:
    """Never the end token: padding behind an answer must not look like its end. It is masked, so any other does."""
    for token in (tokenizer.pad_token_id, tokenizer.unk_token_id, tokenizer.bos_token_id):
        if token is not None and token != tokenizer.eos_token_id:
            return int(token)
    return 0 if tokenizer.eos_token_id != 0 else 1


def checked_weights(name: str) -> tuple[str, dict[str, Any]]:
    """`weights_place`, after a look at what is there. Raises ModelError for a GGUF file that is none, and a path with
    no folder."""
    place = weights_place(name)
    if place[1]:
        read_gguf(Path(name).expanduser())
    else:
        local_folder(name, "model")
    return place


def prompt_ids(tokenizer: Any, messages: Sequence[Mapping[str, str]]) -> list[int]:
    """The tokens up to where the model begins its reply: the tokenizer's chat template, else the contents in order."""
    if tokenizer.chat_template is None:
        text = "\n\n".join(message["content"] for message in messages) + "\n\n"
        return list(tokenizer(text)["input_ids"])
    text = in_template(tokenizer, messages, add_generation_prompt=True)
    # The template has written the special tokens already.
    return list(tokenizer(text, add_special_tokens=False)["input_ids"])


def in_template(tokenizer: Any, messages: Sequence[Mapping[str, str]], *, add_generation_prompt: bool = False) -> str:
    """The messages as the tokenizer's chat template writes them; where it takes no system message, as Gemma's, that
    stands before the first message of the user. Raises ModelError if it cannot write them at all."""
    problem: Exception | None = None
    for form in (list(messages), without_system_role(messages)):
        try:
            text: str = tokenizer.apply_chat_template(form, tokenize=False, add_generation_prompt=add_generation_prompt)
        except Exception as error:  # noqa: BLE001 (a template is a program of the model's makers, and raises what it likes)
            problem = problem or error
            continue
        if all(message["content"].strip() in text for message in messages if message["role"] == "system"):
            return text

    reason = problem or "it leaves out what the system says"
    raise ModelError(
        f"The model's chat template cannot write these messages: {reason}. Choose a model whose template "
        "accepts a user's message, or one without a template."
    )


def without_system_role(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The same messages, with what the system says before the first thing that the user says.

    >>> without_system_role([{"role": "system", "content": "Be short."}, {"role": "user", "content": "Who?"}])
    [{'role': 'user', 'content': 'Be short.\\n\\nWho?'}]
    """
    instructions = [str(message["content"]) for message in messages if message["role"] == "system"]
    rest = [dict(message) for message in messages if message["role"] != "system"]
    if not instructions:
        return rest
    if not rest or rest[0]["role"] != "user" or not isinstance(rest[0]["content"], str):
        return [{"role": "user", "content": "\n\n".join(instructions)}, *rest]
    rest[0]["content"] = "\n\n".join([*instructions, rest[0]["content"]])
    return rest


_REPLACEMENT = "\ufffd"


def pieces_of(tokenizer: Any, ids: Sequence[int]) -> list[str]:
    """One string for each id; joined, they are the decoded text without special tokens.

    As in vLLM, a token that ends within a character adds "", and the one that completes it adds the character; a
    character that is never completed is left out. Some tokenisers decode a token by its neighbours, so each is decoded
    behind the few before it.
    """
    pieces: list[str] = []
    begun = shown = 0  # tokens before `begun` are settled; those from there to `shown` have been shown, as context
    for end in range(1, len(ids) + 1):
        before = _decode(tokenizer, ids[begun:shown])
        text = _decode(tokenizer, ids[begun:end])
        if text.endswith(_REPLACEMENT):
            pieces.append("")
            continue
        pieces.append(text[len(before) :])
        begun, shown = shown, end
    return pieces


def _decode(tokenizer: Any, ids: Sequence[int]) -> str:
    text: str = tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)
    return text


Job = TypeVar("Job")
Result = TypeVar("Result")
_IDLE_S = 1.0


class Batches(Generic[Job, Result]):
    """`work(jobs, cancelled)` runs in one thread of its own, on up to `size` jobs at a time.

    The thread waits `gather_s` after the last job for another one, so that callers in many threads meet in one batch.
    `cancelled[i]()` tells whether nobody waits for job i any more. An exception of `work` is raised to every caller of
    the batch; a result that is an exception, to its own. A thread that is idle ends; the next job starts another one.
    """

    def __init__(
        self,
        work: Callable[[Sequence[Job], Sequence[Callable[[], bool]]], Sequence[Result | Exception]],
        *,
        size: int,
        gather_s: float,
    ) -> None:
        self._work = work
        self._size = size
        self._gather_s = gather_s
        self._lock = threading.Lock()
        self._waiting: queue.SimpleQueue[tuple[Job, Future[Result]]] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def submit(self, job: Job) -> "Future[Result]":
        """Cancel the future, and its job is dropped before its batch begins; `work` is told if it has begun."""
        future: Future[Result] = Future()
        with self._lock:
            self._waiting.put((job, future))
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="kraq-batches", daemon=True)
                self._thread.start()
        return future

    def _run(self) -> None:
        while batch := self._next():
            jobs, futures = zip(*batch, strict=True)
            try:
                results = self._work(jobs, [future.cancelled for future in futures])
            except Exception as error:  # noqa: BLE001 (whoever waits must hear of it, whatever it is)
                results = [error] * len(jobs)
            for future, result in zip(futures, results, strict=True):
                # Not before the work: a running future could not be cancelled any more.
                if future.set_running_or_notify_cancel():
                    if isinstance(result, Exception):
                        future.set_exception(result)
                    else:
                        future.set_result(result)

    def _next(self) -> list[tuple[Job, "Future[Result]"]]:
        """The next batch; none, if nothing came for a second: the thread ends then."""
        batch: list[tuple[Job, Future[Result]]] = []
        while len(batch) < self._size:
            try:
                job, future = self._waiting.get(timeout=self._gather_s if batch else _IDLE_S)
            except queue.Empty:
                if batch:
                    break
                with self._lock:
                    if self._waiting.empty():
                        self._thread = None
                        break
                continue

            if not future.cancelled():
                batch.append((job, future))
        return batch
