"""A stand-in for a language model that learns from its prompt, to see whether optimizers find what there is to learn.

It reads as the embedded model does and, left alone, answers in whole sentences. It answers in a few words when most of
the demonstrations in its prompt do, or when the instructions say so in one of a few ways; at a temperature above 0 it
does so by chance, too. A judge's verdict it copies from the most similar demonstration, and without any it trusts
every answer. Asked for instructions, it proposes some, few of which help to answer and none to judge.

So what it scores depends on demonstrations and instructions alone, and by how much is known. It is no language model.
"""

import hashlib
import json
import re
import threading
from collections import Counter
from typing import Any

import dspy
from dspy.lm15 import Message, Request, Response, TextPart, Usage

from kraq_dspy.embedded.engine import EmbeddedEngine
from kraq_dspy.eval.metrics.answers import token_f1
from kraq_dspy.models.lms.schemas import REQUEST

OBEYED = ("only the answer", "nothing but", "name or the number", "no sentence")
PROPOSALS = (
    "Read all passages with care, then answer the question.",
    "Explain how you found the answer.",
    "Reply with the name or the number that is asked for.",
    "Quote the passage that decides the question.",
    "Give nothing but the answer, in the words of the passage.",
    "Be polite and complete.",
)
HEADER = re.compile(r"\[\[ ## (\w+) ## \]\]\s*(.*?)\s*(?=\[\[ ## |\Z)", re.DOTALL)
OUTPUT = re.compile(r"^\d+\. `(\w+)`(?: \((.+?)\))?:?", re.MULTILINE)
OWN = {"answer", "correct", "question", "rationale", "response", "verdict", "entities", "title"}
SHORT = 6  # words


class Learner:
    """An engine for `dspy.LM`. Safe for threads. `calls` counts what it was asked, `kinds` are the fields wanted."""

    supports_function_calling = False
    supports_reasoning = False
    supports_response_schema = False
    supported_params = frozenset({"temperature", "max_tokens", "logprobs"})

    def __init__(self, embedder: Any = None) -> None:
        self.calls = 0
        self.kinds: list[set[str]] = []
        self._proposals = 0
        self._reader = EmbeddedEngine(embedder)
        self._asked: Counter[str] = Counter()
        self._lock = threading.Lock()

    def __deepcopy__(self, memo: object) -> "Learner":
        return self

    def complete(self, request: Request) -> Response:
        system = request.system if isinstance(request.system, str) else ""
        messages = [message.text or "" for message in request.messages]
        prompt = "\n".join([system, *messages])
        with self._lock:
            self.calls += 1
            self._asked[prompt] += 1
            turn = self._asked[prompt]
        chance = int(hashlib.blake2b(f"{turn} {prompt}".encode(), digest_size=8).hexdigest(), 16)
        outputs = _outputs(system)
        self.kinds.append(set(outputs))
        if not OWN & set(outputs):
            return _response(request, prompt, self._proposed(prompt, outputs))
        answer = self._reader.complete(request)
        fields = dict(HEADER.findall(answer.message.text or ""))
        turns = [
            (m.role, dict(HEADER.findall((m.text or "").partition(f"\n\n{REQUEST}")[0]))) for m in request.messages
        ]
        demos = [values for role, values in turns if role == "assistant"]
        inputs = [values for role, values in turns if role == "user"]  # the last is what it is asked
        warm = bool(request.config.temperature) and chance % 2 == 0
        for name in ("answer", "response"):
            if name in fields and (warm or _wants_few_words(system, demos, name)):
                fields[name] = fields[name].split(". ")[0].strip(" .")
        if "correct" in fields:
            fields["correct"] = str(_verdict(inputs, demos))
        text = "\n\n".join(f"[[ ## {name} ## ]]\n{value}" for name, value in fields.items())
        return _response(request, prompt, text)

    def _proposed(self, prompt: str, outputs: dict[str, str]) -> str:
        with self._lock:
            proposal = PROPOSALS[self._proposals % len(PROPOSALS)]
            self._proposals += any("instruction" in name or "advice" in name for name in outputs)
        values: dict[str, Any] = {}
        for name, kind in outputs.items():
            if kind.startswith(("dict", "object")):
                named = dict(HEADER.findall(prompt)).get("module_names", "")
                values[name] = dict.fromkeys(re.findall(r"[a-z_][\w.]*", named.partition("Respond")[0]), proposal)
            else:
                values[name] = proposal if "instruction" in name else "As before."
        if "JSON object" in prompt:
            return json.dumps(values)
        parts = [f"[[ ## {name} ## ]]\n{v if isinstance(v, str) else json.dumps(v)}" for name, v in values.items()]
        return "\n\n".join([*parts, "[[ ## completed ## ]]"])


def learner_model(engine: Any | None = None, name: str = "learner") -> dspy.LM:
    return dspy.LM(name, engine=engine or Learner(), cache=False, num_retries=0)


def _outputs(system: str) -> dict[str, str]:
    start = system.find("Your output fields are:")
    return {name: kind or "str" for name, kind in OUTPUT.findall(system[start:] if start >= 0 else "")}


def _wants_few_words(system: str, demos: list[dict[str, str]], name: str) -> bool:
    shown = [demo[name] for demo in demos if name in demo]
    if shown:
        return sum(len(answer.split()) <= SHORT for answer in shown) * 2 > len(shown)
    return any(phrase in system.lower() for phrase in OBEYED)


def _verdict(inputs: list[dict[str, str]], demos: list[dict[str, str]]) -> bool:
    *shown, own = [_likeness(values) for values in inputs]
    rights = [demo["correct"] == "True" for demo in demos]
    labelled = [(abs(likeness - own), right) for likeness, right in zip(shown, rights, strict=False)]
    if not labelled:
        return True
    return min(labelled)[1]


def _likeness(values: dict[str, str]) -> float:
    references = json.loads(values.get("reference_answers", '["?"]'))
    return token_f1(references, values.get("answer", "").partition("\n\nRespond with")[0])


def _response(request: Request, prompt: str, text: str) -> Response:
    return Response(
        id=None,
        model=request.model,
        message=Message.assistant([TextPart(text)]),
        finish_reason="stop",
        usage=Usage(input_tokens=len(prompt) // 4, output_tokens=len(text) // 4),
    )
