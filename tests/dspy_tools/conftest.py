"""Makes a program of this library over plain texts, and a model that answers whatever signature asks it."""

import re
import threading
from collections.abc import Callable
from typing import Any

import dspy
import pytest
from dspy.lm15 import Message, Request, Response, TextPart, Usage

from kraq_dspy.programs import TraditionalRAG

RIVERS = {"Rhine": "North Sea", "Danube": "Black Sea", "Rhone": "Mediterranean", "Volga": "Caspian Sea"}


class Obliging:
    """An engine that fills every field it is asked for: an answer about a river by what the river is, all else by the
    field's name. It knows the Volga only where the prompt shows an example or says "in brief"."""

    def __init__(self) -> None:
        self.prompts: list[str] = []
        self._lock = threading.Lock()

    def __deepcopy__(self, memo: object) -> "Obliging":
        return self

    def complete(self, request: Request) -> Response:
        whole = "\n".join([str(request.system), *(message.text or "" for message in request.messages)])
        with self._lock:
            self.prompts.append(whole)
        text = self.reply(whole, request.messages[-1].text or "")
        usage = Usage(input_tokens=len(whole) // 4, output_tokens=len(text) // 4, total_tokens=None)
        parts = (TextPart(text),)
        message = Message.assistant(parts)
        return Response(id=None, model=request.model, message=message, finish_reason="stop", usage=usage)

    def reply(self, whole: str, last: str) -> str:
        request = last[last.rfind("Respond with") :] if "Respond with" in last else ""
        fields = [name for name in re.findall(r"\[\[ ## (\w+) ## \]\]", request) if name != "completed"]
        if not fields:
            return '{"new_instruction": "Answer with the name of the sea, in brief."}'
        return "\n\n".join(f"[[ ## {name} ## ]]\n{self.value(name, whole, last)}" for name in fields)

    def value(self, name: str, whole: str, last: str) -> str:
        if name in ("advice", "module_advice"):
            return '{"answer": "Say it in brief."}'
        if name != "answer":
            return f"Some {name}, in brief."
        river = next((river for river in RIVERS if f"does the {river} flow" in last), "")
        if river == "Volga" and "in brief" not in whole and len(re.findall("flow into", whole)) < 2:
            return "a sea"
        return RIVERS.get(river, "unknown")


class AsyncObliging:
    def __init__(self, engine: Obliging) -> None:
        self.engine = engine

    def __deepcopy__(self, memo: object) -> "AsyncObliging":
        return self

    async def complete(self, request: Request) -> Response:
        return self.engine.complete(request)


def retrieve(question: str, k: int) -> list[str]:
    return ["A river ends in a sea.", *(f"The {river} is a river." for river in RIVERS)][:k]


@pytest.fixture
def engine() -> Obliging:
    return Obliging()


@pytest.fixture
def lm(engine: Obliging) -> dspy.LM:
    return dspy.LM("obliging/model", engine=engine, async_engine=AsyncObliging(engine), cache=False)


@pytest.fixture
def program() -> TraditionalRAG:
    return TraditionalRAG(retrieve, k=2)


@pytest.fixture
def devset() -> list[dspy.Example]:
    return [question(river) for river in RIVERS]


def question(river: str) -> dspy.Example:
    example = dspy.Example(question=f"Where does the {river} flow into?", answers=[RIVERS[river]], answer=RIVERS[river])
    return example.with_inputs("question")


@pytest.fixture
def ask() -> Callable[[str], Any]:
    return lambda river: question(river)
