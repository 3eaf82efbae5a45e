"""Lists without end, as a 0.5B model writes them, are left, closed, and what is missing is asked for."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, Literal

import dspy
import pytest
from dspy.lm15 import (
    ErrorDetail,
    Message,
    Request,
    Response,
    StreamDeltaEvent,
    StreamEndEvent,
    StreamErrorEvent,
    StreamStartEvent,
    TextDelta,
    TextPart,
)
from dspy.lm15 import Usage as Counted

from kraq_dspy.models.lms.adapter import KraqAdapter
from kraq_dspy.models.lms.engines.engine import AsyncEngine, CallLedger, Engine
from kraq_dspy.models.lms.engines.loops import in_loop
from kraq_dspy.models.lms.kraq_lm import KraqLM
from kraq_dspy.models.lms.meter import Meter, working_on
from kraq_dspy.models.lms.retry import Backoff
from kraq_dspy.records import NamedLink, Usage
from kraq_dspy.settings import RoleSettings
from kraq_dspy.signatures import NameElements
from tests.models.lms.conftest import MemoryJournal

LINK = {"source": "Caterpillars", "predicate": "organism", "target": "organism"}
LINKS = {"relationships": [LINK | {"predicate": "dissolve into"}, LINK]}
ENDLESS_NAMES = json.dumps({"names": ["Caterpillars", "spines", *["organism"] * 60]})[:-2]
ENDLESS_LINKS = json.dumps({"relationships": [*LINKS["relationships"], *[LINK] * 60]})[:-40]
ENDED_NAMES = json.dumps({"names": ["organism"] * 60, **LINKS})  # by the limit of the schema
SHORT = json.dumps({"names": ["Ada"], "relationships": []})
Ask = Callable[[KraqLM], dspy.Prediction]


class Scripted:
    """An inner engine that writes its replies word by word, and counts the words that were read of them."""

    def __init__(self, replies: list[str], faults: int = 0, fault: str = "raised") -> None:
        self.replies = replies
        self.fault = fault
        self.faults = faults
        self.schemas: list[dict[str, Any]] = []
        self.whole = 0
        self.words = 0

    def complete(self, request: Request) -> Response:
        self.whole += 1
        reply = self._next(request)
        self.words += len(reply.split())
        usage = Counted(input_tokens=9, output_tokens=len(reply.split()))
        finish_reason: Any = "stop" if reply.endswith("}") else "length"
        return Response("1", request.model, Message.assistant([TextPart(reply)]), finish_reason, usage)

    def stream(self, request: Request) -> Iterator[Any]:
        yield StreamStartEvent(id="1", model="as the server calls it")
        for number, word in enumerate(reply := self._next(request).split(" ")):
            self.words += 1
            if self.faults and number:
                self.faults -= 1
                if self.fault == "raised":
                    raise dspy.lm15.ServerError("gone", status=503)
                if self.fault == "told":
                    yield StreamErrorEvent(error=ErrorDetail(code="server", message="gone"))
                return
            yield StreamDeltaEvent(delta=TextDelta(text=f" {word}" if number else word, part_index=0))
        yield StreamEndEvent(finish_reason="stop", usage=Counted(input_tokens=9, output_tokens=len(reply)))

    def _next(self, request: Request) -> str:
        self.schemas.append(dict(request.config.response_format or {}).get("schema", {}))
        return self.replies.pop(0)


class AsyncScripted(Scripted):
    async def complete(self, request: Request) -> Response:  # type: ignore[override]
        return super().complete(request)

    async def stream(self, request: Request) -> AsyncIterator[Any]:  # type: ignore[override]
        for event in super().stream(request):
            await asyncio.sleep(0)
            yield event


class Local(Scripted):
    reads_along = True


class AsyncLocal(AsyncScripted):
    reads_along = True


@pytest.fixture
def meter() -> Meter:
    return Meter()


@pytest.fixture(params=["call", "acall"])
def made(request: pytest.FixtureRequest, quick: Backoff, meter: Meter) -> Callable[..., tuple[KraqLM, Scripted, Ask]]:
    """A model that writes these replies, its inner engine, and how it is asked."""

    def make(*replies: str, local: bool = True, faults: int = 0, fault: str = "raised") -> tuple[KraqLM, Scripted, Ask]:
        settings = RoleSettings(model="some/model", structured="json_schema", api_base="http://127.0.0.1:9/v1")
        ledger = CallLedger(settings, "nowhere", meter, quick)
        inner = (Local if local else Scripted)(list(replies), faults, fault)
        awaited = (AsyncLocal if local else AsyncScripted)(list(replies), faults, fault)
        lm = KraqLM(
            "some/model", cache=False, num_retries=0,
            engine=Engine(inner, ledger), async_engine=AsyncEngine(awaited, ledger),
        )  # fmt: skip
        predict = dspy.Predict(NameElements)
        if request.param == "call":
            return lm, inner, lambda lm: _with(lm, lambda: predict(passage="Of caterpillars."))
        return lm, awaited, lambda lm: _with(lm, lambda: asyncio.run(predict.acall(passage="Of caterpillars.")))

    return make


def _with(lm: KraqLM, work: Callable[[], dspy.Prediction]) -> dspy.Prediction:
    with dspy.context(lm=lm, adapter=KraqAdapter(second_try=False)):
        return work()


@pytest.mark.parametrize(
    "text",
    [
        ENDLESS_NAMES,
        ENDLESS_LINKS,
        ENDLESS_LINKS[:-17],  # wherever it breaks off
        ENDLESS_NAMES + '"]}',  # closed by the schema
        ENDLESS_NAMES.replace(', "organism"', ',\n "organism"', 47).replace(", ", ",   ", 30),  # in white space alone
        json.dumps({"names": ["it is used and used and used" + " and used" * 40]}),
    ],
)
def test_the_same_thing_three_times_over_is_a_loop(text: str) -> None:
    assert in_loop(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        SHORT,
        json.dumps({"names": ["Ada"] * 20}),  # too short to be sure
        json.dumps({"relationships": [LINK, LINK]}),
        json.dumps({"relationships": [LINK | {"target": target} for target in ("eggs", "larvae", "wings", "adults")]}),
        json.dumps({"names": [f"Henry {number}" for number in range(40)]}),
    ],
)
def test_a_list_whose_entries_differ_is_none_wherever_it_has_come(text: str) -> None:
    assert not any(in_loop(text[:end]) for end in range(len(text) + 1))


def test_a_loop_is_left_its_list_closed_and_the_rest_asked_for(
    made: Callable[..., tuple[KraqLM, Scripted, Ask]], meter: Meter
) -> None:
    lm, inner, ask = made(ENDLESS_NAMES, json.dumps(LINKS))

    prediction = ask(lm)

    assert list(dict.fromkeys(prediction.names)) == ["Caterpillars", "spines", "organism"]
    assert prediction.relationships == [NamedLink(**link) for link in LINKS["relationships"]]
    assert [list(schema["properties"]) for schema in inner.schemas] == [["names", "relationships"], ["relationships"]]
    assert inner.schemas[1]["required"] == ["relationships"]
    assert inner.words < 45  # of 62 and more
    assert (meter.total().calls, inner.whole) == (2, 0)


def test_a_loop_in_the_last_list_takes_no_second_request(made: Callable[..., tuple[KraqLM, Scripted, Ask]]) -> None:
    names = '{"names": ["Caterpillars"], '
    lm, inner, ask = made(names + ENDLESS_LINKS[1:])

    prediction = ask(lm)

    assert prediction.names == ["Caterpillars"]
    assert prediction.relationships == [NamedLink(**link) for link in LINKS["relationships"]]
    assert inner.words < 60  # of 370


def test_what_is_asked_for_may_loop_as_well(made: Callable[..., tuple[KraqLM, Scripted, Ask]], meter: Meter) -> None:
    lm, _, ask = made(ENDLESS_NAMES, ENDLESS_LINKS)

    prediction = ask(lm)

    assert (len(set(prediction.names)), len(prediction.relationships), meter.total().calls) == (3, 2, 2)


def test_a_reply_without_a_loop_is_as_it_was_written_and_costs_what_its_server_says(
    made: Callable[..., tuple[KraqLM, Scripted, Ask]], meter: Meter
) -> None:
    lm, _, ask = made(SHORT)

    assert ask(lm).names == ["Ada"]
    assert meter.total() == Usage(1, 9, len(SHORT.split(" ")))


def test_a_part_that_is_no_json_leaves_the_lists_before_it(
    made: Callable[..., tuple[KraqLM, Scripted, Ask]],
) -> None:
    lm, _, ask = made(ENDLESS_NAMES, "I cannot say.")
    prediction = ask(lm)

    assert (set(prediction.names), prediction.relationships) == ({"Caterpillars", "spines", "organism"}, [])


class Label(dspy.Signature):
    """Say of each review what it is."""

    reviews: list[str] = dspy.InputField()
    verdicts: list[Literal["good", "bad"]] = dspy.OutputField()


def test_a_list_of_labels_may_say_the_same_for_long(made: Callable[..., tuple[KraqLM, Scripted, Ask]]) -> None:
    lm, *_ = made(json.dumps({"verdicts": ["good"] * 60}))
    prediction = _with(lm, lambda: dspy.Predict(Label)(reviews=["Fine."] * 60))
    assert prediction.verdicts == ["good"] * 60


@pytest.mark.parametrize(("times", "is_left"), [(100, False), (400, True)])
def test_a_text_is_left_once_it_has_said_the_same_for_long(
    made: Callable[..., tuple[KraqLM, Scripted, Ask]], times: int, is_left: bool
) -> None:
    lm, *_ = made("good " * times)
    response = lm.engine.complete(Request("some/model", messages=(Message.user("What are they?"),)))
    assert ((response.message.text or "").count("good") < times) is is_left
    assert (response.finish_reason == "length") is is_left


@pytest.mark.parametrize("fault", ["raised", "told", "silent"])
def test_a_stream_that_breaks_is_asked_again_from_the_beginning(
    made: Callable[..., tuple[KraqLM, Scripted, Ask]], meter: Meter, fault: str
) -> None:
    lm, inner, ask = made(SHORT, SHORT, SHORT, faults=2, fault=fault)

    assert ask(lm).names == ["Ada"]
    assert (len(inner.schemas), meter.retries, meter.total().calls) == (3, 2, 1)


def test_the_journal_keeps_the_whole_as_one_answer(
    made: Callable[..., tuple[KraqLM, Scripted, Ask]], journal: MemoryJournal, meter: Meter
) -> None:
    lm, _, ask = made(ENDLESS_NAMES, json.dumps(LINKS))
    with working_on("extract", "item", journal):
        first = ask(lm)
    with working_on("extract", "item", journal):
        again = ask(lm)

    assert again.toDict() == first.toDict()
    assert (len(journal.answers), journal.paid[0].calls, meter.total().calls) == (1, 2, 2)
