"""Every value here can be checked by eye: token i has the log-probability -i."""

import math
from types import SimpleNamespace
from typing import Any

import dspy
import pytest
from hypothesis import given, strategies as st

from kraq_dspy.models.lms.logprobs import field_logprobs, mean_logprob


def numbered(*pieces: str | bytes) -> dict[str, Any]:
    """Tokens in DSPy's shape; the first has the log-probability -1, the second -2 ..."""
    raw = [piece.encode() if isinstance(piece, str) else piece for piece in pieces]
    return {
        "content": [
            {"token": piece.decode("utf-8", "replace"), "logprob": -float(i), "bytes": list(piece)}
            for i, piece in enumerate(raw, 1)
        ]
    }


def test_tokens_of_a_value_are_found_between_its_markers() -> None:
    logprobs = numbered("[[ ## rationale ## ]]\n", "It", " says so", ".", "\n\n[[ ## response ## ]]\n", "Paris", "\n")
    by_field = field_logprobs(logprobs, {"rationale": "It says so.", "response": "Paris"})
    assert by_field == {"rationale": (-2, -3, -4), "response": (-6,)}


def test_a_token_that_holds_a_marker_and_a_part_of_the_value_belongs_to_the_value() -> None:
    logprobs = numbered("[[ ## response", " ## ]]\nPa", "ris\n\n[[", " ## completed ## ]]")
    assert field_logprobs(logprobs, {"response": "Paris"}) == {"response": (-2, -3)}


def test_tokens_that_split_a_character_stay_with_their_field() -> None:
    zurich = "Zürich".encode()
    logprobs = numbered("[[ ## rationale ## ]]\né\n[[ ## response ## ]]\n", zurich[:2], zurich[2:], "\n[[ ## completed")
    assert field_logprobs(logprobs, {"rationale": "é", "response": "Zürich"}) == {
        "rationale": (-1,),
        "response": (-2, -3),
    }


def test_a_split_character_that_a_server_reports_as_an_empty_token_counts_where_it_stands() -> None:
    logprobs = numbered("[[ ## response ## ]]\n", "Z", "", "ü", "rich", "\n[[ ## completed ## ]]", "")
    assert field_logprobs(logprobs, {"response": "Zürich"}) == {"response": (-2, -3, -4, -5)}


def test_what_stands_around_a_label_does_not_count() -> None:
    in_brackets = numbered("[[ ## verdict ## ]]", " (", "No", ")\n\n[[ ## completed ## ]]")
    assert field_logprobs(in_brackets, {"verdict": "No"}) == {"verdict": (-3,)}
    named_twice = numbered("[[ ## verdict ## ]]", " (", "No", " means ", "no", ")")
    assert field_logprobs(named_twice, {"verdict": "No"}) == {"verdict": (-3,)}


def test_a_field_name_inside_a_value_is_no_marker() -> None:
    logprobs = numbered(
        "[[ ## rationale ## ]]\n", "The response", " is under [[ ## response ## ]]", "\n[[ ## response ## ]]\n", "42"
    )
    by_field = field_logprobs(logprobs, {"rationale": "The response is under [[ ## response ## ]]", "response": "42"})
    assert by_field == {"rationale": (-2, -3), "response": (-5,)}


def test_markers_that_only_the_forgiving_adapter_reads_are_found_where_no_strict_one_is() -> None:
    by_field = field_logprobs(numbered("**[[ ## verdict ## ]]", " yes", ",", " it does"), {"verdict": "Yes"})
    assert by_field == {"verdict": (-2,)}
    inside = numbered("[[ ## rationale ## ]]\nSee", "\n> [[ ## response ## ]] x", "\n[[ ## response ## ]]\n", "42")
    value = "See\n> [[ ## response ## ]] x"
    assert field_logprobs(inside, {"rationale": value, "response": "42"}) == {"rationale": (-1, -2), "response": (-4,)}


def test_the_first_of_two_equal_markers_wins_as_in_the_adapter() -> None:
    logprobs = numbered("[[ ## response ## ]]\n", "one", "\n[[ ## response ## ]]\n", "two")
    assert field_logprobs(logprobs, {"response": "one"}) == {"response": (-2,)}


def test_a_value_on_the_line_of_its_marker_is_found() -> None:
    logprobs = numbered("  [[ ## response ## ]]", " yes", " indeed")
    assert field_logprobs(logprobs, {"response": "yes indeed"}) == {"response": (-2, -3)}


def test_an_end_of_turn_token_after_the_last_value_does_not_count() -> None:
    logprobs = numbered("[[ ## response ## ]]\n", "42", "<|eot_id|>")
    assert field_logprobs(logprobs, {"response": "42"}) == {"response": (-2,)}


def test_fields_of_a_json_object_are_found_without_their_quotes() -> None:
    logprobs = numbered('{"rationale', '": "', 'He said \\"response', '\\"", "response', '":', ' "', "Paris", '"}')
    by_field = field_logprobs(logprobs, {"rationale": 'He said "response"', "response": "Paris"})
    assert by_field == {"rationale": (-3, -4), "response": (-7,)}


def test_a_number_in_a_json_object_is_found() -> None:
    assert field_logprobs(numbered('{"year": ', "19", "84", "}"), {"year": "1984"}) == {"year": (-2, -3)}


def test_a_value_without_marker_is_found_if_it_occurs_once_and_left_out_if_it_is_ambiguous() -> None:
    logprobs = numbered("the", " answer", " is", " Paris", " the")
    assert field_logprobs(logprobs, {"response": "Paris", "other": "the", "absent": "Rome"}) == {"response": (-4,)}


def test_values_that_repeat_each_other_are_told_apart_by_their_order() -> None:
    logprobs = numbered("rationale: ", "Rome", " it", " is", "\nresponse: ", "Rome", " it", " is", "<|im_end|>")
    by_field = field_logprobs(logprobs, {"rationale": "Rome it is", "response": "Rome it is"})
    assert by_field == {"rationale": (-2, -3, -4), "response": (-6, -7, -8)}
    within = numbered("rationale: ", "It says", " Rome", "\nresponse: ", "Rome")
    assert field_logprobs(within, {"rationale": "It says Rome", "response": "Rome"})["response"] == (-5,)
    swapped = numbered("Rome Rome", " and Paris", " and Paris")
    assert field_logprobs(swapped, {"rationale": "and Paris and Paris", "response": "Rome"}) == {"rationale": (-2, -3)}


def test_objects_lists_and_missing_bytes_are_read_like_dictionaries() -> None:
    as_dicts = numbered("[[ ## response ## ]]\n", "Pa", "ris")
    as_objects = SimpleNamespace(content=[SimpleNamespace(**token) for token in as_dicts["content"]])
    without_bytes = [{**token, "bytes": None} for token in as_dicts["content"]]
    for logprobs in (as_dicts, as_objects, without_bytes):
        assert field_logprobs(logprobs, {"response": "Paris"}) == {"response": (-2, -3)}


@given(
    st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=40),
    st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=40),
    st.lists(st.integers(1, 6), min_size=1, max_size=20),
)
def test_what_the_adapter_parses_is_what_the_tokens_spell(first: str, second: str, cuts: list[int]) -> None:
    """Whatever the text and wherever its bytes are cut, a field's tokens cover its value as the adapter parsed it."""
    signature = dspy.Signature("question -> rationale, response")
    text = f"[[ ## rationale ## ]]\n{first}\n\n[[ ## response ## ]]\n{second}\n\n[[ ## completed ## ]]"
    parsed = dspy.ChatAdapter().parse(signature, text)
    data = text.encode()
    pieces: list[bytes] = []
    while data:
        size = cuts[len(pieces) % len(cuts)]
        pieces.append(data[:size])
        data = data[size:]
    by_field = field_logprobs(numbered(*pieces), parsed)
    for name, value in parsed.items():
        chosen = b"".join(pieces[int(-x) - 1] for x in by_field.get(name, ()))
        assert (name in by_field) == bool(value)
        assert "".join(value.split()) in "".join(chosen.decode("utf-8", "replace").split())
        assert len(chosen) <= len(value.encode()) * 2 + 12 + text.count("\r") * 2


def test_the_confidence_is_the_geometric_mean_of_the_token_probabilities() -> None:
    assert math.exp(mean_logprob([math.log(0.5), math.log(0.125)])) == pytest.approx(0.25)


def test_the_confidence_of_a_4000_token_draft_does_not_underflow() -> None:
    assert math.exp(sum([math.log(0.1)] * 4000)) == 0.0
    assert math.exp(mean_logprob([math.log(0.1)] * 4000)) == pytest.approx(0.1)


def test_an_impossible_token_makes_the_confidence_zero_and_no_tokens_are_refused() -> None:
    assert mean_logprob([-1.0, -math.inf]) == -math.inf
    with pytest.raises(ValueError, match="no tokens"):
        mean_logprob([])
