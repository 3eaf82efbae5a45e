"""Tests that a reply's envelope is heard: the reply was cut off, withheld, refused, or is no answer at all."""

import json
from typing import Any

import dspy
import pytest

from kraq_dspy import make_lm
from kraq_dspy.extend import Backoff, KraqAdapter, KraqLM
from kraq_dspy.models.lms.adapter import NoAnswerError, UnreadableReplyError
from kraq_dspy.models.lms.envelope import flaws_heard
from kraq_dspy.settings import RoleSettings
from kraq_dspy.signatures import AnswerQuestion, ExtractElements
from tests.models.lms.conftest import Reply, ScriptedServer

ENTITIES = [{"name": name, "type": "person", "description": "d"} for name in ("Ada", "Ben", "Cleo")]
WHOLE = json.dumps({"entities": ENTITIES, "relationships": [], "claims": []})
TORN = WHOLE[: WHOLE.index("Cleo")]


@pytest.fixture
def lm(scripted: ScriptedServer, quick: Backoff) -> KraqLM:
    role = RoleSettings(model="hosted_vllm/m", api_base=scripted.url, structured="json_schema", max_tokens=99)
    return make_lm(role, backoff=quick)


def extracted(lm: KraqLM) -> tuple[list[str], list[str]]:
    """The names, and what is told of flaws."""
    with dspy.context(lm=lm, adapter=KraqAdapter()), flaws_heard() as heard:
        prediction = dspy.Predict(ExtractElements)(passage="x")
    return [entity.name for entity in prediction.entities], [flaw.words for flaw in heard]


def test_of_a_list_that_was_cut_off_the_complete_items_are_kept_and_it_is_told(
    scripted: ScriptedServer, reply: type[Reply], lm: KraqLM
) -> None:
    scripted.replies = [reply(TORN, finish="length")]
    names, [flaw] = extracted(lm)
    assert names == ["Ada", "Ben"]
    assert flaw == "the reply was cut off at the limit of tokens (max_tokens = 99); raise max_tokens"
    assert len(scripted.requests) == 1


def test_a_whole_list_that_ends_at_the_limit_is_no_torn_one(
    scripted: ScriptedServer, reply: type[Reply], lm: KraqLM
) -> None:
    scripted.replies = [reply(WHOLE, finish="length")]
    assert extracted(lm)[0] == ["Ada", "Ben", "Cleo"]
    assert len(scripted.requests) == 1


def test_a_text_that_was_cut_off_is_told(scripted: ScriptedServer, reply: type[Reply], lm: KraqLM) -> None:
    scripted.replies = [reply("It is Mira Tol", finish="length")]
    with dspy.context(lm=lm, adapter=KraqAdapter()), flaws_heard() as heard:
        assert dspy.Predict(AnswerQuestion)(passages=["x"], question="?").answer == "It is Mira Tol"
    assert [flaw.why for flaw in heard] == ["length"]
    assert len(scripted.requests) == 1


TOOL = {"id": "1", "type": "function", "function": {"name": "look_up", "arguments": "{}"}}


@pytest.mark.parametrize(
    ("message", "finish", "words", "calls"),
    [
        ({"content": None, "refusal": "I cannot help."}, "stop", "the model refused: 'I cannot help.'", 1),
        ({"content": None}, "content_filter", "the server's content filter withheld the reply", 1),
        ({"content": ""}, "content_filter", "the server's content filter withheld the reply", 1),
        (
            {"content": None, "reasoning_content": "hm"},
            "length",
            "tokens (max_tokens = 99) before any answer",
            1,
        ),
        ({"content": None, "tool_calls": [TOOL]}, "tool_calls", "called the tool 'look_up' and wrote no answer", 2),
        ({"content": None, "reasoning_content": "hm"}, "stop", "the model thought and wrote no answer", 2),
        ({"content": '{"entities": ['}, "length", "the reply was cut off at the limit of tokens", 2),
    ],
)
def test_what_is_no_answer_has_words_of_its_own(
    scripted: ScriptedServer,
    reply: type[Reply],
    lm: KraqLM,
    message: dict[str, Any],
    finish: str,
    words: str,
    calls: int,
) -> None:
    scripted.replies = [reply(message={"role": "assistant", **message}, finish=finish)]
    with pytest.raises(NoAnswerError) as caught:
        extracted(lm)
    assert words in str(caught.value)
    assert len(scripted.requests) == calls


def test_a_tool_call_is_asked_for_again_as_an_answer(scripted: ScriptedServer, reply: type[Reply], lm: KraqLM) -> None:
    call = {"role": "assistant", "content": None, "tool_calls": [TOOL]}
    scripted.replies = [reply(message=call, finish="tool_calls"), reply(WHOLE)]
    assert extracted(lm) == (["Ada", "Ben", "Cleo"], [])


def test_one_unreadable_list_does_not_discard_the_others(
    scripted: ScriptedServer, reply: type[Reply], lm: KraqLM
) -> None:
    scripted.replies = [reply(json.dumps({"entities": ENTITIES, "relationships": [], "claims": [{"x": 1}]}))]
    names, [flaw] = extracted(lm)
    assert names == ["Ada", "Ben", "Cleo"]
    assert flaw.startswith("claims could not be read: claims: no item fits")
    assert len(scripted.requests) == 2


def test_a_long_reply_is_no_long_message(scripted: ScriptedServer, reply: type[Reply], lm: KraqLM) -> None:
    scripted.replies = [reply("No. " * 9_000)]
    with pytest.raises(UnreadableReplyError, match="36,000 characters") as caught:
        extracted(lm)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("text", ["Mira \ud83d Tolan", '{"answer": "Mira \\ud83d Tolan"}'], ids=["text", "JSON"])
def test_half_a_character_becomes_the_replacement_character(
    scripted: ScriptedServer, reply: type[Reply], lm: KraqLM, text: str
) -> None:
    scripted.replies = [reply(text)]
    with dspy.context(lm=lm, adapter=KraqAdapter()):
        assert dspy.Predict(AnswerQuestion)(passages=["a \ud83d"], question="\udc00?").answer == "Mira \ufffd Tolan"
    assert "a \ufffd" in scripted.requests[0]["messages"][-1]["content"]
