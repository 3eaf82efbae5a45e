"""A server is asked once whether it can hold replies to a schema, and typed steps use it."""

import asyncio
import json
from typing import Annotated, Any

import dspy
import pydantic
import pytest

from kraq_dspy.errors import ConfigError
from kraq_dspy.models.lms import enforcement
from kraq_dspy.models.lms.adapter import KraqAdapter, UnreadableReplyError
from kraq_dspy.models.lms.enforcement import PROBE, enforces_schema, known_enforcement, reason_of
from kraq_dspy.models.lms.kraq_lm import KraqLM
from kraq_dspy.models.lms.meter import Meter
from kraq_dspy.models.lms.retry import Backoff
from kraq_dspy.models.lms.roles import make_lm
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


def test_a_server_that_answers_a_tiny_schema_with_json_is_held_to_schemas(
    scripted: ScriptedServer, reply: type[Reply], lm: KraqLM
) -> None:
    scripted.replies = [reply('{"number": 7}'), reply('{"same": false}')]
    assert confirm(lm) is False
    probe, request = scripted.requests
    assert probe["messages"][-1]["content"] == PROBE
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


@pytest.mark.parametrize("prose", ["The sea is blue.", "7", '{"text": "The sea is blue."}', ""])
def test_a_server_that_answers_it_otherwise_is_asked_for_sections(
    scripted: ScriptedServer, reply: type[Reply], lm: KraqLM, prose: str
) -> None:
    scripted.replies = [reply(prose), reply(SECTIONS)]
    assert confirm(lm) is True
    assert "response_format" not in scripted.requests[-1]
    assert "[[ ## same ## ]]" in scripted.requests[-1]["messages"][0]["content"]


def test_a_server_that_refuses_schemas_is_asked_without(
    scripted: ScriptedServer, reply: type[Reply], lm: KraqLM
) -> None:
    scripted.replies = [reply("response_format is not supported", status=400), reply(SECTIONS)]
    assert confirm(lm) is True


@pytest.mark.parametrize(
    ("body", "times"),
    [
        ({"error": {"code": 500, "message": "response_format must be text", "type": "server_error"}}, 1),
        ({"detail": "json_schema is not supported"}, 2),  # lm15 does not read that, so it is asked twice
    ],
)
def test_a_server_that_fails_over_schemas_is_asked_without(
    scripted: ScriptedServer, reply: type[Reply], lm: KraqLM, body: dict[str, Any], times: int
) -> None:
    refusal = [reply(status=500, body=json.dumps(body).encode())] * 4 + [reply("Blue.")]
    scripted.replies = [*refusal * times, reply(SECTIONS)]
    assert confirm(lm) is True
    assert "response_format" not in scripted.requests[-1]
    assert "its server fails over them" in reason_of(lm)


def test_a_server_that_had_one_bad_moment_is_asked_again(
    scripted: ScriptedServer, reply: type[Reply], lm: KraqLM
) -> None:
    scripted.replies = [reply("busy", status=500)] * 4 + [
        reply("Blue."),
        reply('{"number": 7}'),
        reply('{"same": true}'),
    ]
    assert confirm(lm) is True
    assert "response_format" in scripted.requests[-1]


@pytest.mark.parametrize(
    "spent",
    [{"content": None, "reasoning_content": "hm"}, {"content": "<think>\nhm"}, {"content": ""}],
    ids=["reasoning", "tag", "nothing"],
)
@pytest.mark.parametrize("keeps", [True, False])
def test_a_model_that_thinks_is_judged_by_its_first_reply(
    scripted: ScriptedServer, reply: type[Reply], lm: KraqLM, spent: dict[str, Any], keeps: bool
) -> None:
    thought = reply(message={"role": "assistant", **spent}, finish="length")
    first = reply('{"same": true}' if keeps else "I think so.")
    scripted.replies = [thought, thought, first, reply(SECTIONS)]
    assert confirm(lm) is True
    assert known_enforcement(lm) is keeps
    assert reason_of(lm) == ("its first reply kept to one" if keeps else "its first reply did not keep to one")


def test_a_model_that_thinks_and_then_keeps_to_a_schema_is_held_to_them(
    scripted: ScriptedServer, reply: type[Reply], lm: KraqLM
) -> None:
    scripted.replies = [reply('<think>A number.</think>{"number": 7}')]
    assert enforces_schema(lm)


def test_a_schema_that_a_server_breaks_over_later_is_left_out(
    scripted: ScriptedServer, reply: type[Reply], lm: KraqLM
) -> None:
    broken = reply("failed to parse grammar", status=500)
    scripted.replies = [reply('{"number": 7}')] + [broken] * 4 + [reply(SECTIONS)]
    assert confirm(lm) is True
    assert known_enforcement(lm) is False


def test_what_was_decided_is_said_with_its_reason(
    scripted: ScriptedServer, reply: type[Reply], lm: KraqLM, caplog: pytest.LogCaptureFixture
) -> None:
    scripted.replies = [reply("The sea is blue.")]
    enforces_schema(lm)
    assert caplog.messages == ["hosted_vllm/m is asked without JSON schemas: it answered 'The sea is blue.' to one"]


def test_it_is_found_out_once_for_many_callers(scripted: ScriptedServer, reply: type[Reply], lm: KraqLM) -> None:
    scripted.replies = [reply('{"number": 7}'), reply('{"same": false}')]

    async def many() -> list[Any]:
        with dspy.context(lm=lm, adapter=KraqAdapter()):
            step = dspy.Predict(ConfirmSameEntity)
            return await asyncio.gather(*(step.acall(first=str(number), second="b") for number in range(8)))

    assert [answer.same for answer in asyncio.run(many())] == [False] * 8
    assert [request["messages"][-1]["content"] for request in scripted.requests].count(PROBE) == 1


def test_a_probe_is_paid_for_and_no_part_of_an_item(
    scripted: ScriptedServer, reply: type[Reply], quick: Backoff
) -> None:
    scripted.replies = [reply('{"number": 7}')]
    meter = Meter()
    assert enforces_schema(
        make_lm(RoleSettings(model="hosted_vllm/m", api_base=scripted.url), meter=meter, backoff=quick)
    )
    assert list(meter.usage()) == [("structured output", "hosted_vllm/m")]


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


def test_chatter_where_one_text_is_wanted_is_asked_for_again_under_a_schema(
    scripted: ScriptedServer, reply: type[Reply], quick: Backoff
) -> None:
    scripted.replies = [reply("Sure, I know that!"), reply('{"answer": "Paris"}')]
    with dspy.context(lm=held(scripted, quick), adapter=KraqAdapter()):
        assert dspy.Predict(AnswerQuestion)(passages=["x"], question="?").answer == "Paris"
    assert "response_format" in scripted.requests[1]


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
