"""Thinking is taken off the front of a reply; text that is about its tags stays."""

import json

import pytest

from kraq_dspy.models.lms.structured.repair import read_reply
from kraq_dspy.models.lms.structured.unmarked import without_thinking

DRAFT = '{"names": ["Wrong"], "places": []}'
FINAL = '{"names": ["Ada"], "places": ["Rome"]}'
LISTS = {"names": list[str], "places": list[str]}


@pytest.mark.parametrize(
    "thinking",
    [
        "<think>{}</think>\n",
        "<THINKING>\n{}\n</THINKING>",
        "[THINK]{}[/THINK]",
        "◁think▷{}◁/think▷",
        "<seed:think>{}</seed:think>",
        "<|START_THINKING|>{}<|END_THINKING|>",
        "<|begin_of_thought|>{}<|end_of_thought|>\n",
        "<think>a</think><reflection>{}</reflection>",
        "<think>\n\n</think>\n\n",
        "so it must be {}\n</think>\n\n",
        "<|channel|>analysis<|message|>{}<|end|><|start|>assistant<|channel|>final<|message|>",
    ],
)
def test_thinking_is_taken_off(thinking: str) -> None:
    assert without_thinking(thinking.replace("{}", "Rome? No.") + "Paris").strip() == "Paris"
    assert read_reply(thinking.replace("{}", f"maybe {DRAFT}") + FINAL, LISTS)[0] == json.loads(FINAL)


@pytest.mark.parametrize(
    "text",
    [
        "The tag </think> ends a thought.",
        "<think> and </think> enclose what a model thinks.",
        "`<think>` begins it, `</think>` ends it.",
        "<think>never ended",
        "(thinking) is what it did",
        "[reasoning](https://example.org) is a link",
    ],
)
def test_text_about_such_tags_stays(text: str) -> None:
    assert without_thinking(text) == text
    assert read_reply(f"[[ ## answer ## ]]\n{text}\n\n[[ ## completed ## ]]", {"answer": str})[0] == {"answer": text}
    about = {"names": [text], "places": ["<think>x y</think>"]}
    assert read_reply(json.dumps(about), LISTS)[0] == about


@pytest.mark.parametrize(
    "reply",
    [
        f'First {{"a": 1}}, then:\n{FINAL}',
        f"{FINAL}\n\n[[ ## completed ## ]]",
        f"<musing>{DRAFT}</musing>{FINAL}",
        f"{DRAFT}\nNo, that is wrong. This is right:\n```json\n{FINAL}\n```",
        '{"names": ["Ada"]}\n{"places": ["Rome"]}',
        'Names:\n{"names": ["Ada"]}\nPlaces:\n{"places": ["Rome"]}',
        f"{FINAL} I hope that {{helps}}!",
    ],
)
def test_of_several_objects_the_whole_one_that_fits_is_taken(reply: str) -> None:
    assert read_reply(reply, LISTS) == (json.loads(FINAL), [])


def test_objects_that_follow_each_other_add_up() -> None:
    more = '{"names": ["Ben"], "places": []}'
    assert read_reply(f"{FINAL}\n\n{more}", LISTS)[0] == {"names": ["Ada", "Ben"], "places": ["Rome"]}


def test_a_reply_of_many_brackets_is_quick_work() -> None:
    assert read_reply('{"a":' * 20_000, LISTS)[0] == {}
