"""Tests that sentences end where a reader ends them."""

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from kraq_dspy.asset.corpus.sentences import sentence_spans


def sentences(text: str) -> list[str]:
    return [text[start:end] for start, end in sentence_spans(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("He left! Why? Nobody knows.", ["He left!", "Why?", "Nobody knows."]),
        ("Dr. A. B. Smith met U.S. staff in Rome. He left.", ["Dr. A. B. Smith met U.S. staff in Rome.", "He left."]),
        ("It costs 1.5 euros. So what", ["It costs 1.5 euros.", "So what"]),
        ("A title\nIts text.", ["A title", "Its text."]),
        ('"Why?" he asked. "So."', ['"Why?" he asked.', '"So."']),
        ("你好。再见。", ["你好。", "再见。"]),
        ("Πού είναι; Εδώ.", ["Πού είναι;", "Εδώ."]),
        ("For the angle α; a letter.", ["For the angle α; a letter."]),
        ("ᠮᠣᠩ᠃ ᠪᠢᠴ᠃", ["ᠮᠣᠩ᠃", "ᠪᠢᠴ᠃"]),
        (" \n ", []),
        ("", []),
    ],
)  # fmt: skip
def test_sentences_end_where_a_reader_ends_them(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected


def cases() -> list[list[str]]:
    lines = Path(__file__).with_name("sentence_ends.txt").read_text("utf-8").splitlines()
    return [[part.strip() for part in line.split("¦")] for line in lines if not line.startswith("#")]


@pytest.mark.parametrize("parts", cases(), ids=lambda parts: parts[0][:30])
def test_abbreviations_ordinals_initials_quotes_and_addresses_end_no_sentence(parts: list[str]) -> None:
    gap = "" if parts[0].endswith("。") else " "
    assert sentences(gap.join(parts)) == parts


def test_a_long_run_of_spaces_and_stops_is_cut_in_time_that_grows_with_it() -> None:
    for text in (" " * 250_000, ". " * 125_000, "a. " * 75_000, ".»" * 125_000, "1 " * 125_000):
        assert sentence_spans(f"{text}\nEnd.")[-1][1] == len(text) + 5


@given(st.text(alphabet="aB.!? \n。", max_size=60))
def test_nothing_but_white_space_is_left_out_and_spans_are_in_order(text: str) -> None:
    spans = sentence_spans(text)
    assert "".join("".join(sentences(text)).split()) == "".join(text.split())
    assert all(start < end for start, end in spans)
    assert all(earlier[1] <= later[0] for earlier, later in pairwise(spans))
