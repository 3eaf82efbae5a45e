"""Asks a real vLLM server for what this library relies on, and compares it with the engine of this process.

The tiny model cannot follow DSPy's format, so a plain adapter takes its words as they come.
"""

import asyncio
import math
import time
from typing import Any

import dspy
import pytest
from dspy.lm15 import Config, Message, Request

from kraq_dspy import make_lm
from kraq_dspy.errors import ModelError
from kraq_dspy.extend import KraqLM
from kraq_dspy.models.lms.engines.transformers_engine import AsyncTransformersEngine, TransformersEngine
from kraq_dspy.models.lms.logprobs import mean_logprob, take_logprobs
from kraq_dspy.models.lms.prompt_scorer import make_prompt_scorer
from kraq_dspy.programs.speculative.drafts import Draft
from kraq_dspy.programs.speculative.scoring import WangScore
from kraq_dspy.settings import RoleSettings
from tests.vllm.conftest import Server

pytestmark = pytest.mark.vllm

QUESTIONS = ["which city is this?", "the cat sat on", "Zürich and 東京"]


class Plain(dspy.ChatAdapter):  # type: ignore[misc]
    """The question as it is; the first half of the answer is the rationale, the second the response."""

    def format(
        self, signature: type[dspy.Signature], demos: list[dict[str, Any]], inputs: dict[str, Any]
    ) -> list[dict[str, Any]]:
        return [{"role": "user", "content": " ".join([inputs["question"], *inputs.get("passages", [])])}]

    def parse(self, signature: type[dspy.Signature], completion: str) -> dict[str, Any]:
        if "response" not in signature.output_fields:
            return {"answer": completion}
        middle = len(completion) // 2
        return {"rationale": completion[:middle].strip(), "response": completion[middle:].strip()}


@pytest.fixture(scope="module")
def engine(server: Server) -> TransformersEngine:
    return TransformersEngine(server.model, adapters={"generator": server.adapter})


def served(server: Server, name: str, **settings: Any) -> KraqLM:
    role = RoleSettings(
        model=f"hosted_vllm/{name}", api_base=server.api_base, api_key_env="VLLM_TEST_KEY", temperature=0.0, **settings
    )
    return make_lm(role)


def local(engine: TransformersEngine, name: str, **settings: Any) -> dspy.LM:
    twin = AsyncTransformersEngine(engine)
    return dspy.LM(name, engine=engine, async_engine=twin, cache=False, temperature=0.0, **settings)


def answered(lm: dspy.LM, question: str) -> tuple[str, float]:
    """The text of one `dspy.Predict`, and the mean probability of its tokens: bytes that are no characters, of which a
    random model writes many, have no place in the text where a field could be looked for."""
    with dspy.context(lm=lm, adapter=Plain()):
        prediction = dspy.Predict("question -> answer")(question=question, config={"logprobs": True})
    logprobs = take_logprobs(prediction, role="drafter", wanted_by="kraq")
    scores = [token["logprob"] if isinstance(token, dict) else token.logprob for token in logprobs["content"]]
    return prediction.answer, math.exp(mean_logprob(scores))


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("adapter", ["instruct", "generator"])
def test_both_engines_give_the_same_text_and_confidence(
    server: Server, engine: TransformersEngine, question: str, adapter: str
) -> None:
    mine, theirs = (server.model, "instruct") if adapter == "instruct" else (adapter, server.generator)
    text, confidence = answered(local(engine, mine, max_tokens=24), question)
    served_text, served_confidence = answered(served(server, theirs, max_tokens=24), question)
    assert served_text == text
    assert served_confidence == pytest.approx(confidence, rel=1e-3)


def test_the_adapter_changes_the_answer_and_an_unknown_name_is_an_error(server: Server) -> None:
    names = ("instruct", server.generator)
    confidences = [answered(served(server, name, max_tokens=24), QUESTIONS[0])[1] for name in names]
    assert confidences[0] != pytest.approx(confidences[1], rel=1e-3)
    with pytest.raises(ModelError, match="has no model 'hosted_vllm/generatr'"):
        answered(served(server, "generatr"), QUESTIONS[0])


def test_log_probabilities_spell_the_text(server: Server) -> None:
    lm = served(server, "instruct", max_tokens=24)
    with dspy.context(lm=lm, adapter=Plain()):
        prediction = dspy.Predict("question -> answer")(question=QUESTIONS[2], config={"logprobs": True})
    tokens = prediction["logprobs"]["content"]
    # Bytes that are no character, of which a random model writes many, are not shown among the tokens.
    spelled = "".join(token["token"] for token in tokens)
    assert spelled.replace("\ufffd", "").startswith(prediction.answer.replace("\ufffd", ""))
    assert all(token["logprob"] <= 0 for token in tokens)


@pytest.mark.parametrize("adapter", [None, "generator"])
def test_wangs_scores_are_those_of_the_same_model_in_this_process(server: Server, adapter: str | None) -> None:
    folder = server.adapter if adapter else None
    there = RoleSettings("hosted_vllm/instruct", server.api_base, "VLLM_TEST_KEY", adapter=folder)
    here = RoleSettings(f"transformers/{server.model}", adapter=folder, precision="fp32")  # as the server
    drafts = [
        Draft(0, (0,), "The cat sat there.", "the mat", 0.1, rationale_logprobs=(-0.1,), response_logprobs=(-0.2,)),
        Draft(1, (0,), "東京 is a city.", "Zürich", 0.1, rationale_logprobs=(-0.3,), response_logprobs=(-0.4,)),
    ]

    by_server, by_process = (
        WangScore(make_prompt_scorer(role))(question="Which city is this?", drafts=drafts) for role in (there, here)
    )

    for mine, theirs in zip(by_process, by_server, strict=True):
        assert theirs.parts == pytest.approx(mine.parts, rel=1e-3)
        assert theirs.parts["self_contain"] < 0


def test_cancelled_drafts_stop_on_the_server(server: Server) -> None:
    lm = served(server, "instruct")
    n_drafts, length = 6, 16_000
    before = server.count("vllm:generation_tokens_total")

    async def run() -> list[Any]:
        config = Config(max_tokens=length, temperature=0.0, extensions={"ignore_eos": True})
        requests = [Request(lm.model, messages=(Message.user(f"draft {i}"),), config=config) for i in range(n_drafts)]
        drafts = [asyncio.create_task(lm.acall(request)) for request in requests]
        while await asyncio.to_thread(server.count, "vllm:generation_tokens_total") == before:
            await asyncio.sleep(0.05)
        for draft in drafts:
            draft.cancel()
        return await asyncio.gather(*drafts, return_exceptions=True)

    results = asyncio.run(run())
    for _ in range(300):
        if server.count("vllm:num_requests_running") == 0:
            break
        time.sleep(0.1)
    assert server.count("vllm:num_requests_running") == 0
    assert all(isinstance(result, asyncio.CancelledError) for result in results)
    # Left alone, each of them would have gone on to its last token.
    assert 0 < server.count("vllm:generation_tokens_total") - before < n_drafts * length / 2
