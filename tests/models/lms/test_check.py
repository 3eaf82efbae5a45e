"""A model is asked every step, and what became of its replies is told apart."""

import json

import dspy
import pytest

from kraq_dspy import signatures
from kraq_dspy.models.lms.check import MAIN_JOB, check_model, inputs_of
from kraq_dspy.models.lms.retry import Backoff
from kraq_dspy.models.lms.roles import make_lm
from kraq_dspy.settings import RoleSettings
from kraq_dspy.signatures import ConfirmSameEntity, GenerateQuestion
from tests.models.lms.conftest import Reply, ScriptedServer

EVERY = [getattr(signatures, name) for name in signatures.NAMES]
MARKED = "[[ ## same ## ]]\n{}\n\n[[ ## completed ## ]]"


def test_the_embedded_model_is_fit_for_every_step() -> None:
    report = check_model(make_lm(RoleSettings()), EVERY)
    assert report.fit
    assert [step.step for step in report.steps if step.unreadable or step.second_call] == []
    assert (report.schemas, report.logprobs) == (False, True)
    assert all(step.prompt_tokens > 0 and step.completion_tokens > 0 for step in report.steps)


@pytest.mark.parametrize("signature", EVERY)
def test_there_are_two_different_inputs_for_every_step(signature: type[dspy.Signature]) -> None:
    first, second = inputs_of(signature, 0), inputs_of(signature, 1)
    assert first.keys() == second.keys() == signature.input_fields.keys()
    assert first != second


@pytest.mark.parametrize(
    ("replies", "outcome"),
    [
        ([MARKED.format("True")], (1, 0, 0)),
        (["**Same**: yes."], (1, 0, 0)),
        (["I cannot say.", MARKED.format("false")], (0, 1, 0)),
        (["I cannot say."], (0, 0, 1)),
    ],
)
def test_what_became_of_a_reply_is_told_apart(
    scripted: ScriptedServer, reply: type[Reply], quick: Backoff, replies: list[str], outcome: tuple[int, ...]
) -> None:
    scripted.replies = [reply(text) for text in replies]
    lm = make_lm(RoleSettings(model="hosted_vllm/m", api_base=scripted.url, structured="none"), backoff=quick)
    [step] = check_model(lm, [ConfirmSameEntity], trials=1).steps
    assert (step.readable, step.second_call, step.unreadable) == outcome
    assert bool(step.reason) is bool(step.unreadable)


def test_a_model_that_cannot_do_the_main_job_is_not_fit(
    scripted: ScriptedServer, reply: type[Reply], quick: Backoff
) -> None:
    scripted.replies = [reply("I am sorry, I am a teapot.")]
    lm = make_lm(RoleSettings(model="hosted_vllm/m", api_base=scripted.url, structured="none"), backoff=quick)
    report = check_model(lm, [GenerateQuestion, ConfirmSameEntity])
    assert not report.fit
    assert "larger model" in report.advice[-1]
    assert "GenerateQuestion" in report.advice[-1]
    scripted.replies = [reply(json.dumps({"question": "What is it?"}))]
    assert check_model(lm, [GenerateQuestion]).fit
    assert set(MAIN_JOB) <= set(signatures.NAMES)
