"""Tests that what reaches a person is struck out of a text, and that other numbers stay."""

import itertools

import pytest
from hypothesis import given, strategies as st

from kraq_dspy.asset.corpus.normalise import CARD, EMAIL, PHONE, find_personal, redacted, redacted_document
from kraq_dspy.records import Document
from kraq_dspy.settings import RedactSettings

ALL = RedactSettings(emails=True, phones=True, cards=True)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Write to ada.lovelace+notes@example.co.uk today.", EMAIL),
        ("jörg@müller.example", EMAIL),
        ("Call +49 30 1234567 now", PHONE),
        ("Call +1 (212) 555-0147.", PHONE),
        ("Call (212) 555-0147.", PHONE),
        ("Call 212-555-0147, or not", PHONE),
        ("Call 212.555.0147", PHONE),
        ("Call 020 7946 0958", PHONE),
        ("Call 0044 20 7946 0958", PHONE),
        ("Card 4111 1111 1111 1111, please", CARD),
        ("Card 5500-0055-5555-5559", CARD),
        ("Card 378282246310005", CARD),
    ],
)
def test_what_reaches_a_person_is_found_and_struck_out(text: str, kind: str) -> None:
    [matches] = find_personal(text)
    assert matches.kind == kind
    assert f"[{kind}]" in redacted(text, ALL)
    assert not any(character.isdigit() or character == "@" for character in redacted(text, ALL))


@pytest.mark.parametrize(
    "text",
    [
        "From 1998-2003 and on 01.02.2003, 2004-05-06 and 12/11/1918.",
        "ISBN 978-3-16-148410-0, 1,234,567,890 people, 3.14159265358979",
        "192.168.100.200 and 10.0.0.1:8080, version 1.2.3-4567",
        "4111 1111 1111 1112 fails its check; 0000 0000 0000 0000 is none",
        "@handle, a@b and user@localhost",
        "In 1850 he had 12 000 000 marks and 300 500 men.",
    ],
)
def test_years_sums_addresses_of_machines_and_book_numbers_stay(text: str) -> None:
    assert find_personal(text) == []
    assert redacted(text, ALL) == text


def test_only_the_kinds_that_are_asked_for_are_struck_out() -> None:
    text = "a@b.org, +49 30 1234567"
    assert redacted(text, RedactSettings()) == text
    assert redacted(text, RedactSettings(phones=True)) == "a@b.org, [phone number]"


def test_a_document_loses_them_in_title_text_and_metadata_and_keeps_its_id() -> None:
    document = Document("a@b.org", "Mail a@b.org", "Ask a@b.org.", metadata={"from": "a@b.org", "year": 1999})
    struck = redacted_document(document, ALL)
    assert struck.id == "a@b.org"
    assert "a@b.org" not in struck.title + struck.text + str(struck.metadata)
    assert struck.metadata["year"] == 1999


@given(st.text(alphabet="0123456789 +-.()@abé/", max_size=60))
def test_what_is_found_lies_in_the_text_in_order_and_is_gone_after_one_pass(text: str) -> None:
    matches = find_personal(text)
    assert all(0 <= one.start < one.end <= len(text) for one in matches)
    assert all(before.end <= after.start for before, after in itertools.pairwise(matches))
    struck = redacted(text, ALL)
    assert sum(struck.count(f"[{kind}]") for kind in (EMAIL, PHONE, CARD)) == len(matches)


def test_a_long_text_of_digits_and_signs_is_quick_work() -> None:
    for piece in ("1 ", "1-", "a.", "+1 ", "@a.", "0 1"):
        assert find_personal(piece * 50_000) is not None
