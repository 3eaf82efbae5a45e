"""Small models name their fields in lines of their own, or write the one text that is wanted and nothing else."""

import json

import pytest

from kraq_dspy.extend import KraqAdapter
from kraq_dspy.models.lms.adapter import UnreadableReplyError
from kraq_dspy.models.lms.repair import read_reply, without_thinking
from kraq_dspy.signatures import AnswerQuestion, DraftAnswer, ExtractElements, RewriteQuestion


@pytest.mark.parametrize(
    "reply",
    [
        "rationale: She was born there.\nresponse: Rome",
        "**Rationale:** She was born there.\n**Response:** Rome",
        "# rationale\nShe was born there.\n\n# response\nRome\n",
        "1. `rationale` (str): She was born there.\n2. `response` (str): Rome\n3. `completed` (str): yes",
        "1. `rationale` (str)\nShe was born there.\n2. **response**\nRome",
    ],
)
def test_lines_that_begin_with_the_names_of_all_fields_are_read(reply: str) -> None:
    values = KraqAdapter().parse(DraftAnswer, reply)
    assert values == {"rationale": "She was born there.", "response": "Rome"}


@pytest.mark.parametrize(
    "reply",
    [
        "rationale: She was born there.",
        "response: Rome\nrationale: She was born there.",
        "Here you are.\nrationale: She was born there.\nresponse: Rome",
        "rationale: a\nresponse: b\nresponse: c",
        "rationale:\nresponse: Rome",
        "1. rationale of the answer\n2. response: Rome",
        "The rationale is that the response: Rome",
    ],
)
def test_a_field_that_is_missing_twice_empty_or_out_of_order_is_not_guessed(reply: str) -> None:
    with pytest.raises(UnreadableReplyError):
        KraqAdapter().parse(DraftAnswer, reply)


def test_lists_of_records_are_read_from_such_lines_too() -> None:
    reply = 'entities: [{"name": "Ada", "type": "person", "description": "x"}]\nrelationships: []\nclaims: []'
    values = KraqAdapter().parse(ExtractElements, reply)
    assert [entity.name for entity in values["entities"]] == ["Ada"]
    assert (values["relationships"], values["claims"]) == ([], [])


@pytest.mark.parametrize(
    "reply",
    [
        "Who was Ada?",
        "Who was Ada?\n\n[[ ## completed ## ]]",
        "Sure! Here is the question, rewritten:\n\nWho was Ada?",
        "rewritten: Who was Ada?",
        "**Rewritten**\nWho was Ada?",
        "1. `rewritten` (str): Who was Ada?\n2. `completed` (str): Ada",
    ],
)
def test_the_one_text_that_is_wanted_may_come_alone(reply: str) -> None:
    assert KraqAdapter().parse(RewriteQuestion, reply) == {"rewritten": "Who was Ada?"}


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "rewritten",
        "**Rewritten:**",
        "I'm sorry, but I cannot rewrite that.",
        "Sure, I can do that!",
        "As an AI model, I have no question.",
        "[[ ## question ## ]]\nWho was Ada?",
        "{'question': 'Who was Ada?'}",
        "<answer>Who was Ada?",
        "Who was Ada Lovelace, the first programmer of the world? " * 5,
    ],
)
def test_chatter_loops_a_bare_name_and_broken_forms_are_not_that_text(reply: str) -> None:
    with pytest.raises(UnreadableReplyError):
        KraqAdapter().parse(RewriteQuestion, reply)


def test_what_a_model_does_not_know_is_its_answer_and_is_not_asked_again_under_a_schema() -> None:
    """Asked again, Qwen2.5-Coder-0.5B made up "1978"."""
    assert KraqAdapter().parse(AnswerQuestion, "I do not know.") == {"answer": "I do not know."}


DRAFT = '{"names": ["Wrong"], "places": []}'
FINAL = '{"names": ["Ada"], "places": ["Rome"]}'
LISTS = {"names": list[str], "places": list[str]}


@pytest.mark.parametrize(
    "thinking",
    [
        "<think>{}</think>\n",
        "<THINKING>\n{}\n</THINKING>",
        "[THINK]{}[/THINK]",
        "<think>a</think><reflection>{}</reflection>",
        "<think>\n\n</think>\n\n",
        "so it must be {}\n</think>\n\n",
    ],
)
def test_thinking_is_taken_off(thinking: str) -> None:
    assert without_thinking(thinking.replace("{}", "Rome? No.") + "Paris").strip() == "Paris"
    assert read_reply(thinking.replace("{}", f"maybe {DRAFT}") + FINAL, LISTS)[0] == json.loads(FINAL)


@pytest.mark.parametrize(
    "text",
    [
        "The tag </think> ends a thought.",
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


def test_a_reply_of_many_brackets_is_quick_work() -> None:
    assert read_reply('{"a":' * 20_000, LISTS)[0] == {}
