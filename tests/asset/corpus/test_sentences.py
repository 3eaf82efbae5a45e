"""Tests that sentences end where a reader ends them."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraq_dspy.asset.corpus.chunk import sentence_spans


def sentences(text: str) -> list[str]:
    return [text[start:end] for start, end in sentence_spans(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("He left! Why? Nobody knows.", ["He left!", "Why?", "Nobody knows."]),
        ("Dr. A. B. Smith met U.S. staff in Rome. He left.", ["Dr. A. B. Smith met U.S. staff in Rome.", "He left."]),
        ("It costs 1.5 euros. So what", ["It costs 1.5 euros.", "So what"]),
        ("A title\nIts text.", ["A title", "Its text."]),
        ('"Why?" he asked. "So."', ['"Why?"', 'he asked.', '"So."']),
        ("你好。再见。", ["你好。", "再见。"]),
        (" \n ", []),
        ("", []),
    ],
)  # fmt: skip
def test_sentences_end_where_a_reader_ends_them(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected


@given(st.text(alphabet="aB.!? \n。", max_size=60))
def test_nothing_but_white_space_is_left_out_and_spans_are_in_order(text: str) -> None:
    spans = sentence_spans(text)
    assert "".join("".join(sentences(text)).split()) == "".join(text.split())
    assert all(start < end for start, end in spans)
    assert all(earlier[1] <= later[0] for earlier, later in pairwise(spans))
