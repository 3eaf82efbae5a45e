"""Every model engine keeps one contract: the embedded one, and a server over HTTP."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import dspy
import pytest
from stand_in import stand_in

from kraq_dspy import make_lm, signatures
from kraq_dspy.extend import KraqAdapter, KraqLM, Meter
from kraq_dspy.models.lms.meter import working_on
from kraq_dspy.settings import RoleSettings
from tests.models.lms.conftest import MemoryJournal

TEXT = (
    "Marie Curie\nMarie Curie was a physicist who worked in Paris. She won the Nobel Prize in 1903 with Pierre Curie. "
    "The University of Paris made her a professor."
)
STEPS = (
    "AnswerAndExplain",
    "AnswerQuestion",
    "AskAboutPassages",
    "ConfirmSameEntity",
    "DraftAnswer",
    "ExtractElements",
    "FindMissedElements",
    "GenerateQuestion",
    "MergeDescriptions",
    "NameElements",
    "RateGroundedness",
    "SummarizeCommunity",
    "VerifyDraft",
    "WriteFactoidPair",
)


@pytest.fixture(scope="module")
def server() -> Iterator[Any]:
    with stand_in() as running:
        yield running


@pytest.fixture(params=["embedded", "http", "http with schemas"])
def settings(request: pytest.FixtureRequest) -> RoleSettings:
    if request.param == "embedded":
        return RoleSettings()
    structured = "none" if request.param == "http" else "json_schema"
    url = request.getfixturevalue("server").url
    return RoleSettings(model="hosted_vllm/stand-in", api_base=url, structured=structured)


@pytest.fixture
def meter() -> Meter:
    return Meter()


@pytest.fixture
def lm(settings: RoleSettings, meter: Meter) -> KraqLM:
    return make_lm(settings, meter=meter)


def inputs(signature: type[dspy.Signature]) -> dict[str, Any]:
    return {name: TEXT if field.annotation is str else [TEXT, TEXT] for name, field in signature.input_fields.items()}


@pytest.mark.parametrize(
    "adapter", [KraqAdapter(), dspy.ChatAdapter(), dspy.JSONAdapter()], ids=lambda a: type(a).__name__
)
@pytest.mark.parametrize("name", STEPS)
def test_every_step_is_answered_in_every_format(lm: KraqLM, name: str, adapter: dspy.Adapter, meter: Meter) -> None:
    signature = getattr(signatures, name)
    with dspy.context(lm=lm, adapter=adapter):
        answer = dspy.Predict(signature)(**inputs(signature))
    assert all(answer[field] is not None for field in signature.output_fields)
    assert meter.total().calls == 1
    assert meter.total().prompt_tokens > 100
    assert meter.total().completion_tokens > 0


def test_the_same_prompt_gets_the_same_answer_through_call_and_acall(lm: KraqLM) -> None:
    step = dspy.Predict(signatures.ExtractElements)

    async def awaited() -> dspy.Prediction:
        with dspy.context(lm=lm, adapter=KraqAdapter()):
            return await step.acall(passage=TEXT)

    with dspy.context(lm=lm, adapter=KraqAdapter()):
        called = step(passage=TEXT)
    assert called.toDict() == asyncio.run(awaited()).toDict() == asyncio.run(awaited()).toDict()


def test_demos_do_not_change_what_is_read(lm: KraqLM) -> None:
    step = dspy.Predict(signatures.GenerateQuestion)
    with dspy.context(lm=lm, adapter=KraqAdapter()):
        plain = step(summary=TEXT).question
        step.demos = [{"summary": "Anna met Bert in Rome.", "question": "Who met Bert?"}]
        assert step(summary=TEXT).question == plain


def test_sixteen_threads_get_their_own_answers(lm: KraqLM, meter: Meter) -> None:
    step = dspy.Predict(signatures.ExtractElements)

    towns = [f"Town{first}{second}" for first in "abcdefgh" for second in "abcdefgh"]

    def names(town: str) -> list[str]:
        with dspy.context(lm=lm, adapter=KraqAdapter()):
            return [
                entity.name for entity in step(passage=f"They say {town} lies near Anna Lake and Bert River.").entities
            ]

    with ThreadPoolExecutor(16) as pool:
        names_of_towns = list(pool.map(names, towns))
    assert all(town in here for town, here in zip(towns, names_of_towns, strict=True))
    assert meter.total().calls == 64


def test_a_replay_pays_nothing(
    lm: KraqLM, meter: Meter, journal: MemoryJournal, request: pytest.FixtureRequest
) -> None:
    step = dspy.Predict(signatures.ExtractElements)
    http = lm.model != "embedded"
    before = request.getfixturevalue("server").stats()["requests"] if http else 0
    answers = []
    for _ in range(3):
        with working_on("extract", "a", journal), dspy.context(lm=lm, adapter=KraqAdapter()):
            answers.append(step(passage=TEXT + " Replayed.").toDict())
    assert answers[0] == answers[1] == answers[2]
    assert (meter.total().calls, meter.replays) == (1, 2)
    if http:
        assert request.getfixturevalue("server").stats()["requests"] - before == 1


def test_log_probabilities_come_when_asked_for(lm: KraqLM) -> None:
    with dspy.context(lm=lm, adapter=KraqAdapter()):
        step = dspy.Predict(signatures.DraftAnswer)
        assert "logprobs" not in step(**inputs(signatures.DraftAnswer))
        prediction = step(**inputs(signatures.DraftAnswer), config={"logprobs": True})
    tokens = prediction.logprobs["content"]
    assert prediction.response in "".join(token["token"] for token in tokens)
    assert all(token["logprob"] <= 0 for token in tokens)


def test_faults_of_all_kinds_are_survived() -> None:
    faults = {"rate_429": 0.1, "rate_500": 0.05, "rate_timeout": 0.03, "rate_malformed": 0.05, "timeout_s": 1}
    meter = Meter()
    with stand_in(**faults, retry_after=0) as server:
        lm = make_lm(RoleSettings(model="hosted_vllm/m", api_base=server.url, timeout_s=0.5), meter=meter)
        step = dspy.Predict(signatures.ExtractElements)

        async def all_of_them() -> list[Any]:
            limit = asyncio.Semaphore(16)

            async def one(number: int) -> dspy.Prediction:
                async with limit:
                    return await step.acall(passage=f"Town {number} lies near Anna Lake. Bert River ends there.")

            with dspy.context(lm=lm, adapter=KraqAdapter()):
                return await asyncio.gather(*map(one, range(150)), return_exceptions=True)

        outcomes = asyncio.run(all_of_them())
        failed = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
        assert len(failed) <= 2, failed
        assert meter.retries >= 10
        assert server.stats()["requests"] <= 150 * 1.5
