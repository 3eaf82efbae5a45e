"""Tests a user's own `dspy.LM` in place of a role: counted, limited and kept like ours, and still itself."""

import asyncio
from typing import Any

import dspy
import pytest
from dspy.lm15 import Message, Request, Response, TextPart, Usage
from dspy.utils import DummyLM

from kraq_dspy import Limits, make_lm
from kraq_dspy.errors import BudgetExceededError, ConfigError, ServerDownError
from kraq_dspy.extend import LanguageModels, Meter
from kraq_dspy.models.lms.kraq_lm import adopted
from kraq_dspy.models.lms.meter import working_on
from kraq_dspy.records import Usage as Paid
from kraq_dspy.settings import RoleSettings, Settings
from tests.models.lms.conftest import MemoryJournal, ScriptedServer


class Counting:
    """An engine that answers with the number of the call; it has no asynchronous twin."""

    def __init__(self) -> None:
        self.requests: list[Request] = []

    def __deepcopy__(self, memo: object) -> "Counting":
        return self

    def complete(self, request: Request) -> Response:
        self.requests.append(request)
        parts = (TextPart(f"[[ ## answer ## ]]\n{len(self.requests)}\n\n[[ ## completed ## ]]"),)
        usage = Usage(input_tokens=7, output_tokens=2, total_tokens=9)
        message = Message.assistant(parts)
        return Response(id=None, model=request.model, message=message, finish_reason="stop", usage=usage)


@pytest.fixture
def engine() -> Counting:
    return Counting()


@pytest.fixture
def lm(engine: Counting) -> dspy.LM:
    return dspy.LM("of/somebody", engine=engine, temperature=0.3, cache=False)


def ask(lm: dspy.BaseLM, question: str = "Who?") -> str:
    with dspy.context(lm=lm):
        return str(dspy.Predict("question -> answer")(question=question).answer)


async def ask_async(lm: dspy.BaseLM) -> str:
    with dspy.context(lm=lm):
        return str((await dspy.Predict("question -> answer").acall(question="Who?")).answer)


def test_its_calls_are_counted_in_both_forms_and_asked_as_it_was_set_up(lm: dspy.LM, engine: Counting) -> None:
    meter = Meter()
    ours = adopted(lm, meter)
    with working_on("extract", "item"):
        assert ask(ours) == "1"
    assert asyncio.run(ask_async(ours)) == "2"
    assert meter.usage() == {("extract", "of/somebody"): Paid(1, 7, 2), ("", "of/somebody"): Paid(1, 7, 2)}
    assert [request.config.temperature for request in engine.requests] == [0.3, 0.3]


def test_a_limit_refuses_the_call_before_it_is_made(lm: dspy.LM, engine: Counting) -> None:
    ours = adopted(lm, Meter(Limits(max_calls=1)))
    ask(ours)
    with pytest.raises(BudgetExceededError):
        ask(ours)
    assert len(engine.requests) == 1


def test_an_interrupted_item_gets_its_answers_from_the_journal(
    lm: dspy.LM, engine: Counting, journal: MemoryJournal
) -> None:
    for _ in range(2):
        with working_on("extract", "item", journal):
            assert ask(adopted(lm, Meter())) == "1"
    assert len(engine.requests) == 1


def test_history_usage_and_callbacks_are_there_once(lm: dspy.LM) -> None:
    begun: list[str] = []

    class Watcher(dspy.utils.callback.BaseCallback):
        def on_lm_start(self, call_id: str, instance: dspy.BaseLM, inputs: dict[str, Any]) -> None:
            begun.append(instance.model)

    with dspy.context(callbacks=[Watcher()]), dspy.track_usage() as tracker:
        ask(adopted(lm, Meter()))
    assert begun == ["of/somebody"]
    assert len(lm.history) == 1
    assert tracker.get_total_tokens()["of/somebody"]["prompt_tokens"] == 7


def test_a_model_of_this_library_stays_as_it_is() -> None:
    ours = make_lm(RoleSettings())
    assert adopted(ours, Meter()) is ours


def test_a_model_that_is_given_is_nearest_then_the_configured_one_then_the_role(lm: dspy.LM) -> None:
    models = LanguageModels(Settings(), lm={"drafter": lm})
    configured = DummyLM([{"answer": "configured"}])
    assert (models.name("drafter"), models.name("answerer")) == ("of/somebody", "embedded")
    with dspy.context(lm=configured):
        assert (models["drafter"].model, models["answerer"].model) == ("of/somebody", "dummy")
        assert models.names()["judge"] == "dummy"
        assert ask(models["answerer"]) == "configured"
    assert models["answerer"].model == "embedded"
    assert models["drafter"] is models["drafter"]


def test_one_model_stands_for_all_roles_and_counts_with_their_meter(lm: dspy.LM) -> None:
    models = LanguageModels(lm=lm)
    ask(models["judge"])
    ask(models["extractor"])
    assert models.meter.total().calls == 2


def test_what_is_no_model_or_no_role_is_named() -> None:
    nonsense: Any = "openai/gpt-4o"
    with pytest.raises(TypeError, match=r"lm is 'openai/gpt-4o'; expected a dspy\.LM"):
        LanguageModels(lm=nonsense)
    with pytest.raises(TypeError, match=r"role 'judge' is 'openai/gpt-4o'; expected a dspy\.LM"):
        LanguageModels(lm={"judge": nonsense})
    with pytest.raises(ConfigError, match="no role 'reader'"):
        LanguageModels(lm={"reader": DummyLM([])})


def test_a_model_behind_a_server_keeps_its_address_and_its_key(scripted: ScriptedServer) -> None:
    meter = Meter()
    lm = dspy.LM("openai/m", api_base=scripted.url, api_key="k3y", temperature=0.5, cache=False)
    ours = adopted(lm, meter)
    assert (ask(ours), asyncio.run(ask_async(ours))) == ("Paris", "Paris")
    assert scripted.keys == ["Bearer k3y"] * 2
    assert [request["temperature"] for request in scripted.requests] == [0.5, 0.5]
    assert meter.usage() == {("", "openai/m"): Paid(2, 20, 10)}


def test_an_error_of_this_library_passes_as_itself() -> None:
    class Down:
        def __deepcopy__(self, memo: object) -> "Down":
            return self

        def complete(self, request: Request) -> Response:
            raise ServerDownError("it is down")

    with pytest.raises(ServerDownError, match="it is down"):
        ask(adopted(dspy.LM("x/y", engine=Down(), cache=False), Meter()))
