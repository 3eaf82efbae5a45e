"""Faulty replies of models are read as far as they hold what was asked for."""

import enum
from typing import Any, Literal

import pytest

from kraq_dspy.models.lms.repair import UnreadableError, coerced, read_reply
from kraq_dspy.records import ExtractedClaim, ExtractedEntity, ExtractedRelationship, Finding

ENTITIES = list[ExtractedEntity]
ANNA = '{"name": "Anna", "type": "person", "description": "A nurse."}'
A = ExtractedEntity("Anna", "person", "A nurse.")
BERT = ExtractedEntity("Bert", "", "")
WHOLE = f"[[ ## entities ## ]]\n[{ANNA}]\n\n[[ ## relationships ## ]]\n[]\n\n[[ ## claims ## ]]\n[]"
FIELDS = {"entities": ENTITIES, "relationships": list[ExtractedRelationship], "claims": list[ExtractedClaim]}


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@pytest.mark.parametrize(
    ("text", "annotation", "value"),
    [
        # truth values
        ("TRUE", bool, True),
        ("yes.", bool, True),
        ("**No**, they differ", bool, False),
        ("The two are the same: True", bool, True),
        ("0", bool, False),
        ("```\nfalse\n```", bool, False),
        # numbers
        ("0.7 (high)", float, 0.7),
        ("Score: 0.7", float, 0.7),
        ("3.0", int, 3),
        ("-1e-3", float, -0.001),
        # labels
        ("SUPPORTED", Literal["supported", "not supported"], "supported"),
        ("The claim is Not Supported.", Literal["supported", "not supported"], "not supported"),
        ('"b"', Literal["a", "b"], "b"),
        ("Grade: 4", Literal[1, 2, 3, 4, 5], 4),
        ("Red.", Colour, Colour.RED),
        # lists of objects
        ("[]", ENTITIES, []),
        ("None", ENTITIES, []),
        ("N/A (no entities here)", ENTITIES, []),
        (f"[{ANNA}]", ENTITIES, [A]),
        (f"```json\n[{ANNA}]\n```\nLet me know!", ENTITIES, [A]),
        (f"Here you are: [{ANNA}] I hope it helps", ENTITIES, [A]),
        (f"[{ANNA},]", ENTITIES, [A]),
        (f'[{ANNA}, {{"name": "Bert", "ty', ENTITIES, [A]),
        (f"[{ANNA}, ", ENTITIES, [A]),
        (f"```json\n[{ANNA}, {{", ENTITIES, [A]),
        ("[{'name': 'Anna', 'type': 'person', 'description': 'A nurse.'}]", ENTITIES, [A]),
        (ANNA, ENTITIES, [A]),
        (f'{{"entities": [{ANNA}]}}', ENTITIES, [A]),
        (f'[{ANNA}, "Bert", {{"type": "person"}}]', ENTITIES, [A, BERT]),
        ('["Anna", "Bert"]', ENTITIES, [ExtractedEntity("Anna", "", ""), BERT]),
        ('[{"name": "Anna", "type": "person"}]', ENTITIES, [ExtractedEntity("Anna", "person", "")]),
        ('[{"Name": "Anna", "Type": null, "Description": "x"}]', ENTITIES, [ExtractedEntity("Anna", "", "x")]),
        ('[["Anna", "person", "A nurse."]]', ENTITIES, [A]),
        ('[{"name": 1984, "type": "work", "description": "x"}]', ENTITIES, [ExtractedEntity("1984", "work", "x")]),
        ('[{"name": "A", "type": "t", "description": "a "b" c"}]', ENTITIES, [ExtractedEntity("A", "t", 'a "b" c')]),
        # prose where sentences are wanted
        ("Anna nurses.\n- Bert is ill.", list[Finding], [Finding("Anna nurses.", ""), Finding("Bert is ill.", "")]),
        # one object
        (f"[{ANNA}]", ExtractedEntity, A),
        # lists of text
        ('["a", "b"] and more', list[str], ["a", "b"]),
        ("- a\n- b", list[str], ["a", "b"]),
        ("['a', 'b', 'c", list[str], ["a", "b"]),
        ('["a", 3, {"x": 1}]', list[str], ["a", "3"]),
        # text stays text
        ("```\nParis\n```", str, "Paris"),
        ("  Paris [1] ", str, "Paris [1]"),
        ("null", int | None, None),
    ],
)
def test_what_is_read(text: str, annotation: object, value: object) -> None:
    assert coerced(text, annotation) == value


@pytest.mark.parametrize(
    ("text", "annotation"),
    [
        ("maybe", bool),
        ("True or False", bool),
        ("7/10", float),
        ("between 3 and 5, or so", float),
        ("3.5", int),
        ("a or b", Literal["a", "b"]),
        ("something else", Literal["a", "b"]),
        ('["Anna", "Bert"]', list[ExtractedRelationship]),
        ('[{"type": "person", "description": "nameless"}]', ENTITIES),
        ("I could not find any.", ENTITIES),
        ("Anna knows Bert.", list[ExtractedRelationship]),
    ],
)
def test_what_is_not_guessed(text: str, annotation: object) -> None:
    with pytest.raises(UnreadableError):
        coerced(text, annotation)


@pytest.mark.parametrize(
    "reply",
    [
        f"{WHOLE}\n\n[[ ## completed ## ]]",
        f"Sure!\n```json\n{WHOLE}\n```\nBye",
        WHOLE.replace("\n", " ") + " [[ ## completed ## ]]",
        WHOLE.replace("[[ ## e", "**[[ ## E")
        .replace("[[ ## c", "## [[ ## C")
        .replace("entities ## ]]", "entities ## ]]**"),
        f'{{"entities": [{ANNA}], "relationships": [], "claims": []}}',
        f'```json\n{{"entities": [{ANNA}], "relationships": [], "claims": []}}\n```',
        f"<think>[[ ## entities ## ]] {{x}}</think>\n{WHOLE}",
        f"so I will</think>\n{WHOLE}",
        f'[[ ## entities ## ]]\n[{ANNA}, {{"name": "cut o',
        f"[[ ## entities ## ]]\n[{ANNA}]\n[[ ## relationships ## ]]\n[",
    ],
)
def test_a_reply_in_another_form_is_read_alike(reply: str) -> None:
    values, trouble = read_reply(reply, FIELDS)
    assert values == {"entities": [A], "relationships": [], "claims": []}
    assert trouble == []


@pytest.mark.parametrize(
    "reply",
    [
        "I could not find anything that matches the requested format in this passage.",
        "[[ ## entities ## ]]\n[",
        "[[ ## entities ## ]]\n[]\n\n[[ ## completed ## ]]",
        f"[[ ## claims ## ]]\n[]\n[[ ## entities ## ]]\n[{ANNA}]\n[[ ## completed ## ]]",
    ],
)
def test_a_reply_without_all_fields_says_which_are_missing(reply: str) -> None:
    values, trouble = read_reply(reply, FIELDS)
    assert values.keys() != FIELDS.keys()
    assert any("relationships: missing" in line for line in trouble)


def test_a_bare_verdict_has_three_words_at_most_and_what_is_longer_may_be_chatter() -> None:
    assert read_reply("Yes, it is", {"supported": bool}) == ({"supported": True}, [])
    assert read_reply("Yes, it is so", {"supported": bool}) == ({}, ["supported: missing"])


def test_a_bare_reply_is_taken_only_where_it_cannot_be_chatter() -> None:
    assert read_reply("Yes.", {"same": bool})[0] == {"same": True}
    assert read_reply('["a"]', {"names": list[str]})[0] == {"names": ["a"]}
    assert read_reply("I am sorry, I cannot help.", {"answer": str})[0] == {}


def test_the_first_of_two_equal_markers_counts() -> None:
    reply = "[[ ## answer ## ]]\nParis\n[[ ## answer ## ]]\nRome"
    assert read_reply(reply, {"answer": str})[0] == {"answer": "Paris"}


@pytest.mark.parametrize("marker", ["[## answer##]", "[[# answer #]]", "**[[ ## answer ## ]]**", "[[##Answer##]]"])
def test_a_marker_with_a_slip_in_it_is_one_on_a_line_of_its_own(marker: str) -> None:
    assert read_reply(f"{marker}\nParis", {"answer": str})[0] == {"answer": "Paris"}


@pytest.mark.parametrize(
    ("kind", "text", "values"),
    [
        (Literal["good", "bad"], '["good", "good", "bad", "good"]', ["good", "good", "bad", "good"]),
        (bool, "[true, true, false]", [True, True, False]),
        (int, "[3, 3, 3]", [3, 3, 3]),
        (float, "[0.5, 0.5]", [0.5, 0.5]),
        (str, '["Ada", "Ada", "Babbage"]', ["Ada", "Babbage"]),
    ],
)
def test_labels_and_numbers_may_be_the_same_and_texts_count_once(kind: Any, text: str, values: list[Any]) -> None:
    assert read_reply(f"[[ ## those ## ]]\n{text}", {"those": list[kind]})[0] == {"those": values}


@pytest.mark.parametrize("name", ["Explanation:", "\nExplanation:\n", "**Explanation:** ", "explanation = "])
def test_a_text_behind_its_name_is_none_of_the_one_with_the_marker_before(name: str) -> None:
    reply = f"[[ ## answer ## ]]\nParis\n{name}The explanation: it says so.\n\n[[ ## completed ## ]]"
    expected = {"answer": "Paris", "explanation": "The explanation: it says so."}
    assert read_reply(reply, {"answer": str, "explanation": str}) == (expected, [])


@pytest.mark.parametrize(
    ("reply", "fields"),
    [
        ("[[ ## answer ## ]]\nThe explanation: Paris", {"answer": str, "explanation": str}),
        ("[[ ## answer ## ]]\nExplanation: it says so.", {"answer": str, "explanation": str}),
        ("[[ ## answer ## ]]\nParis\nExplanation:", {"answer": str, "explanation": str}),
        ("[[ ## answer ## ]]\nParis\nSource: page 3", {"answer": str, "reason": str, "source": str}),
    ],
)
def test_a_name_within_a_text_parts_it_only_where_both_have_words(reply: str, fields: dict[str, Any]) -> None:
    values, trouble = read_reply(reply, fields)
    assert values == {"answer": reply.removeprefix("[[ ## answer ## ]]").strip()}
    assert trouble == [f"{name}: missing" for name in fields if name != "answer"]


def test_a_text_that_has_its_marker_keeps_the_names_of_others() -> None:
    reply = "[[ ## answer ## ]]\nParis\nExplanation: no\n[[ ## explanation ## ]]\nIt says so."
    values, _ = read_reply(reply, {"answer": str, "explanation": str})
    assert values == {"answer": "Paris\nExplanation: no", "explanation": "It says so."}


def test_one_bracket_without_a_hash_is_text() -> None:
    reply = "[[ ## answer ## ]]\nParis\n[answer] is what was asked for"
    assert read_reply(reply, {"answer": str})[0] == {"answer": "Paris\n[answer] is what was asked for"}


def test_of_a_summary_that_breaks_off_in_its_first_finding_the_finding_is_kept() -> None:
    fields = {"title": str, "summary": str, "findings": list[Finding]}
    begun = '{"title": "Steel", "summary": "Kaiser made steel.", "findings": [{"summary": "He built a mill.", "expl'
    for end in ('anation": "It was', 'anation": "', 'anation":', 'anation"'):
        values, trouble = read_reply(begun + end, fields)
        assert not trouble, end
        assert values["findings"] == [Finding("He built a mill.", "")]
    for beginning in ("He built a mill.",):
        assert read_reply(begun[: begun.index(beginning, 60)], fields)[1] == ["findings: missing"], beginning


@pytest.mark.parametrize(
    "reply",
    [
        "[[ ## answer ## ]] Jonas Berg [[ ## completed ## ]]",
        "Here it is: [[ ## answer ## ]] Jonas Berg",
        "[[ ## reasoning ## ]]\nx[[ ## answer ## ]]\nJonas Berg[[ ## completed ## ]]",
        "[[ ## reasoning ## ]] x [[ ## answer ## ]] Jonas Berg",
        "[[ ## answer ## ]]\nJonas Berg\n\n[[ ## reasoning ## ]]\nHe built it.\n\n[[ ## completed ## ]]",
        "[[ ## answer ## ]]\nJonas Berg\n\n[[ ## confidence ## ]]\nhigh",
        "`[[ ## answer ## ]]`\nJonas Berg",
        "``[[ ## answer ## ]]`` Jonas Berg",
        "```\n[[ ## answer ## ]]\nJonas Berg\n```",
        "\\[\\[ ## answer ## \\]\\]\nJonas Berg",
        "<answer>Jonas Berg</answer>",
        "Sure!\n<Answer>\nJonas Berg\n</Answer>\nAnything else?",
        "<think>Who?</think><answer>Jonas Berg",
    ],
)
def test_an_answer_is_read_whole_and_alone_whatever_stands_around_its_markers(reply: str) -> None:
    assert read_reply(reply, {"answer": str}) == ({"answer": "Jonas Berg"}, [])


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ("[[ ## answer ## ]]\nWrite [[ ## completed ## ]] at the end.\n\n[[ ## completed ## ]]",
         "Write [[ ## completed ## ]] at the end."),
        ("[[ ## answer ## ]] `x = 1` is it", "`x = 1` is it"),
        ("[[ ## answer ## ]]\nSee [[Jonas Berg]] and # heading\n## two", "See [[Jonas Berg]] and # heading\n## two"),
        ("[[ ## answer ## ]]\nUse <answer> tags.", "Use <answer> tags."),
    ],
)  # fmt: skip
def test_what_looks_like_a_marker_inside_a_text_is_text(reply: str, answer: str) -> None:
    assert read_reply(reply, {"answer": str}) == ({"answer": answer}, [])


def test_a_marker_at_the_beginning_of_a_line_goes_before_one_within_a_line() -> None:
    fields = {"reasoning": str, "answer": str}
    reply = "[[ ## reasoning ## ]]\nI fill [[ ## answer ## ]] with Paris.\n\n[[ ## answer ## ]]\nParis"
    assert read_reply(reply, fields)[0] == {"reasoning": "I fill [[ ## answer ## ]] with Paris.", "answer": "Paris"}
    inline = "[[ ## reasoning ## ]] It is Paris. [[ ## answer ## ]] Paris [[ ## completed ## ]]"
    assert read_reply(inline, fields)[0] == {"reasoning": "It is Paris.", "answer": "Paris"}
    tags = "<reasoning>It is Paris.</reasoning>\n<answer>Paris</answer>"
    assert read_reply(tags, fields)[0] == {"reasoning": "It is Paris.", "answer": "Paris"}
