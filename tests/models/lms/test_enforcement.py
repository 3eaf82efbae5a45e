"""A server is asked once whether it can hold replies to a schema, and typed steps use it."""

import json
from typing import Annotated, Any

import dspy
import pydantic
import pytest

from kraq_dspy import make_lm
from kraq_dspy.errors import ConfigError
from kraq_dspy.extend import Backoff, KraqAdapter, KraqLM
from kraq_dspy.models.lms import enforcement
from kraq_dspy.models.lms.adapter import UnreadableReplyError
from kraq_dspy.models.lms.enforcement import known_enforcement, verdict_on
from kraq_dspy.settings import RoleSettings, settings_from_dict
from kraq_dspy.signatures import AnswerQuestion, ConfirmSameEntity, ExtractElements
from tests.models.lms.conftest import Reply, ScriptedServer

EMPTY = json.dumps({"entities": [], "relationships": [], "claims": []})
SECTIONS = "[[ ## same ## ]]\nTrue\n\n[[ ## completed ## ]]"


@pytest.fixture(autouse=True)
def _nothing_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(enforcement, "_verdicts", {})


@pytest.fixture
def lm(scripted: ScriptedServer, quick: Backoff) -> KraqLM:
    return make_lm(RoleSettings(model="hosted_vllm/m", api_base=scripted.url), backoff=quick)


def confirm(lm: dspy.BaseLM, **config: Any) -> Any:
    with dspy.context(lm=lm, adapter=KraqAdapter()):
        return dspy.Predict(ConfirmSameEntity)(first="a", second="b", config=config).same


def test_what_a_server_can_is_told_by_its_first_reply_under_a_schema(
    scripted: ScriptedServer, reply: type[Reply], lm: KraqLM
) -> None:
    scripted.replies = [reply('{"same": false}')]
    assert known_enforcement(lm) is None
    assert confirm(lm) is False
    [request] = scripted.requests
    assert request["response_format"]["json_schema"] == {
        "name": "ConfirmSameEntity",
        "schema": {
            "type": "object",
            "properties": {"same": {"type": "boolean"}},
            "required": ["same"],
            "additionalProperties": False,
        },
        "strict": True,
    }
    assert '"same": true or false' in request["messages"][0]["content"]
    assert known_enforcement(lm) is True
    assert str(verdict_on(lm)) == "under JSON schemas: it kept to one"


class Headline(dspy.Signature):
    """Say it."""

    text: str = dspy.InputField()
    title: Annotated[str, pydantic.Field(max_length=40)] = dspy.OutputField()
    keywords: list[str] = dspy.OutputField()


def test_a_text_is_held_to_the_length_that_its_field_names(
    scripted: ScriptedServer, reply: type[Reply], quick: Backoff
) -> None:
    role = RoleSettings(model="hosted_vllm/m", api_base=scripted.url, structured="json_schema")
    scripted.replies = [reply(json.dumps({"title": "t", "keywords": []}))]
    with dspy.context(lm=make_lm(role, backoff=quick), adapter=KraqAdapter()):
        dspy.Predict(Headline)(text="x")
    schema = scripted.requests[-1]["response_format"]["json_schema"]["schema"]
    assert schema["properties"]["title"] == {"type": "string", "maxLength": 40}


def test_a_server_that_answers_with_prose_is_asked_for_sections_from_then_on(
    scripted: ScriptedServer, reply: type[Reply], lm: KraqLM, caplog: pytest.LogCaptureFixture
) -> None:
    scripted.replies = [reply("The sea is blue."), reply(SECTIONS)]
    assert [confirm(lm), confirm(lm)] == [True, True]
    assert ["response_format" in request for request in scripted.requests] == [True, False, False]
    assert "[[ ## same ## ]]" in scripted.requests[-1]["messages"][0]["content"]
    assert caplog.messages == ["hosted_vllm/m is asked without JSON schemas: it answered 'The sea is blue.' to one"]


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, {"error": {"code": 400, "message": "response_format is not supported", "type": "x"}}),
        (500, {"error": {"code": 500, "message": "response_format must be text", "type": "server_error"}}),
        (500, {"detail": "json_schema is not supported"}),
    ],
)
def test_a_server_that_refuses_schemas_or_fails_over_them_is_asked_without(
    scripted: ScriptedServer, reply: type[Reply], lm: KraqLM, status: int, body: dict[str, Any]
) -> None:
    refusal = [reply(status=status, body=json.dumps(body).encode())] * (4 if status == 500 else 1)
    scripted.replies = [*refusal, reply(SECTIONS)]
    assert confirm(lm) is True
    assert "response_format" not in scripted.requests[-1]
    assert "its server refuses them" in str(verdict_on(lm))


@pytest.mark.parametrize(
    "spent",
    [{"content": None, "reasoning_content": "hm"}, {"content": "<think>\nhm"}, {"content": ""}],
    ids=["reasoning", "tag", "nothing"],
)
def test_a_model_that_spends_its_tokens_on_thinking_is_not_judged_by_that(
    scripted: ScriptedServer, reply: type[Reply], lm: KraqLM, spent: dict[str, Any]
) -> None:
    scripted.replies = [reply(message={"role": "assistant", **spent}, finish="length")]
    with pytest.raises(UnreadableReplyError):
        confirm(lm)
    assert known_enforcement(lm) is None
    scripted.replies = [reply('<think>Hm.</think>{"same": true}')]
    assert confirm(lm) is True
    assert known_enforcement(lm) is True


def test_a_schema_that_a_server_breaks_over_later_is_left_out(
    scripted: ScriptedServer, reply: type[Reply], lm: KraqLM
) -> None:
    broken = reply("failed to parse grammar", status=500)
    scripted.replies = [reply('{"same": true}')] + [broken] * 4 + [reply(SECTIONS)]
    assert [confirm(lm), confirm(lm)] == [True, True]
    assert known_enforcement(lm) is False


@pytest.mark.parametrize(
    ("settings", "known"),
    [
        (RoleSettings(), False),
        (RoleSettings(model="hosted_vllm/m", api_base="http://x/v1"), None),
        (RoleSettings(model="hosted_vllm/m", api_base="http://x/v1", structured="json_schema"), True),
        (RoleSettings(model="hosted_vllm/m", api_base="http://x/v1", structured="none"), False),
        (RoleSettings(model="openai/gpt-4o-mini", api_base="http://x/v1"), None),
        (RoleSettings(model="openai/gpt-4o-mini"), True),
    ],
)
def test_what_settings_engines_and_tables_say_needs_no_call(
    settings: RoleSettings, known: bool | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "unused")
    assert known_enforcement(make_lm(settings)) is known


def test_a_setting_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ConfigError, match="json_schema"):
        settings_from_dict({"roles": {"default": {"structured": "yes"}}})


def test_log_probabilities_and_text_are_never_asked_for_under_a_schema(
    scripted: ScriptedServer, reply: type[Reply], quick: Backoff
) -> None:
    role = RoleSettings(model="hosted_vllm/m", api_base=scripted.url, structured="json_schema")
    lm = make_lm(role, backoff=quick)
    scripted.replies = [reply(SECTIONS)]
    assert confirm(lm, logprobs=True) is True
    scripted.replies = [reply()]
    with dspy.context(lm=lm, adapter=KraqAdapter()):
        dspy.Predict(AnswerQuestion)(passages=["x"], question="?")
    assert all("response_format" not in request for request in scripted.requests)


def held(scripted: ScriptedServer, quick: Backoff) -> KraqLM:
    role = RoleSettings(model="hosted_vllm/m", api_base=scripted.url, structured="json_schema")
    return make_lm(role, backoff=quick)


@pytest.mark.parametrize("blanks", ['{"entities": [' + " \n" * 400, "", "Ich weiss es nicht."])
def test_a_reply_that_a_schema_did_not_help_is_asked_for_without_one(
    scripted: ScriptedServer, reply: type[Reply], quick: Backoff, blanks: str
) -> None:
    sections = "[[ ## entities ## ]]\n[]\n[[ ## relationships ## ]]\n[]\n[[ ## claims ## ]]\n[]\n[[ ## completed ## ]]"
    scripted.replies = [reply(blanks), reply(sections)]
    with dspy.context(lm=held(scripted, quick), adapter=KraqAdapter()):
        assert dspy.Predict(ExtractElements)(passage="x").entities == []
    first, second = scripted.requests
    assert "response_format" in first
    assert "response_format" not in second


@pytest.mark.parametrize("config", [{}, {"logprobs": True}], ids=["alone", "with log-probabilities"])
def test_a_label_that_cannot_be_read_under_its_marker_is_asked_for_as_json(
    scripted: ScriptedServer, reply: type[Reply], quick: Backoff, config: dict[str, Any]
) -> None:
    note = "[[ ## same ## ]]  # note: the value you produce must be True or False"  # Qwen2.5-Coder-0.5B's reply
    role = RoleSettings(model="hosted_vllm/m", api_base=scripted.url, structured="none")
    scripted.replies = [reply(note), reply('```json\n{"same": false}\n```')]
    assert confirm(make_lm(role, backoff=quick), **config) is False

    first, second = scripted.requests
    assert "response_format" not in second
    assert "[[ ## same ## ]]" in str(first["messages"])
    assert "[[ ## same ## ]]" not in str(second["messages"])
    assert [message["role"] for message in second["messages"]] == ["system", "user"]
    assert second["messages"][-1]["content"].endswith("as one JSON object.")
    assert {**first, "messages": []} == {**second, "messages": []}


def test_a_reply_that_stays_unreadable_says_what_was_wrong(
    scripted: ScriptedServer, reply: type[Reply], quick: Backoff
) -> None:
    scripted.replies = [reply("Das weiss ich nicht.")]
    with (
        dspy.context(lm=held(scripted, quick), adapter=KraqAdapter()),
        pytest.raises(UnreadableReplyError, match="same: missing") as caught,
    ):
        dspy.Predict(ConfirmSameEntity)(first="a", second="b")
    assert caught.value.lm_response == "Das weiss ich nicht."


def test_examples_are_written_in_the_form_that_is_asked_for(
    scripted: ScriptedServer, reply: type[Reply], quick: Backoff
) -> None:
    scripted.replies = [reply('{"same": true}')]
    step = dspy.Predict(ConfirmSameEntity)
    step.demos = [{"first": "Bonn", "second": "BONN", "same": True}]
    with dspy.context(lm=held(scripted, quick), adapter=KraqAdapter()):
        step(first="a", second="b")
    assert {"role": "assistant", "content": '{"same": true}'} in scripted.requests[0]["messages"]
