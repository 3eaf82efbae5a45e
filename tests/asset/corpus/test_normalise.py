"""Text is written in one way, whatever it came as."""

import unicodedata
from typing import Literal

import pytest
from hypothesis import given, strategies as st

from kraq_dspy.asset.corpus.normalise import is_blank, normalised


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("Peter\u00a0Marlow", "Peter Marlow"),
        ("Peter\u202fMarlow", "Peter Marlow"),
        ("well\u2011known", "well-known"),
        ("gran\u00adary", "granary"),
        ("gran\u200bary", "granary"),
        ("one\u2028two\u2029three\r\nfour\rfive", "one\ntwo\nthree\nfour\nfive"),
        ("cafe\u0301", "caf\u00e9"),
        ("e\u200b\u0301", "\u00e9"),
        ("\ufeffmark", "mark"),
        ("\u202etxt.exe", "txt.exe"),
        ("a\U000e0041b", "ab"),
        (
            "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
            "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
        ),  # a joiner is spelling
        ("page\fpage\ttab", "page\fpage\ttab"),
        ("\x00\ud800", "\ufffd\ufffd"),
    ],
)
def test_spellings_that_look_alike_become_one(written: str, meant: str) -> None:
    assert normalised(written) == meant


@given(st.text(st.characters()))
def test_what_is_normalised_stays_as_it_is(text: str) -> None:
    once = normalised(text)
    assert normalised(once) == once
    assert unicodedata.is_normalized("NFC", once)
    assert once.encode("utf-8").decode() == once


@given(st.text(st.characters(codec="ascii", exclude_characters="\r\x0b\x00\b\x1b")))
def test_plain_text_is_left_alone(text: str) -> None:
    assert normalised(text) == text


@given(st.text(st.sampled_from("ab\u00e9\u0301\u0302\u0323 ")), st.sampled_from(["NFC", "NFD"]))
def test_composed_and_decomposed_letters_are_one(text: str, form: Literal["NFC", "NFD"]) -> None:
    assert normalised(unicodedata.normalize(form, text)) == normalised(text)


@pytest.mark.parametrize(
    "text", ["", " \n", "\u200b\u200b", "\u00ad", "\u2800", "\u3164", "\u200d\ufe0f", "\u2060\ufeff"]
)
def test_what_nobody_can_see_is_blank(text: str) -> None:
    assert is_blank(text)
    assert is_blank(normalised(text))


@pytest.mark.parametrize("text", ["a", "\u0301", "\ufffd", "-", "\u0e01", "\U0001f600"])
def test_what_can_be_seen_is_not(text: str) -> None:
    assert not is_blank(text)
