"""Tests the answer to a question that describes a thing: the name of which one sentence says all of it."""

from collections.abc import Sequence

import pytest

from kraq_dspy.embedded.answer import short_answer


def similar(_: str, texts: Sequence[str]) -> list[float]:
    return [0.0] * len(texts)


NAMES = ("Lake Varn", "Lake Brun", "Ida Holm", "Otto Lind")
LAKES = (
    "Lake Varn\nLake Varn is a deep lake in the county of Ost, known for its herons.",
    "Ida Holm\nIda Margrete Holm (born 1961) is a Norwegian painter from Ost. She drew Lake Varn in chalk.",
    "Otto Lind\nOtto Lind is a Norwegian carpenter from Ost.",
)


@pytest.mark.parametrize(
    ("question", "short"),
    [
        ("Which deep lake in the county of Ost is known for its herons?", "Lake Varn"),
        ("Lake Varn was drawn in chalk by which Norwegian painter?", "Ida Holm"),
    ],
)
def test_the_thing_that_is_all_of_it_is_named(question: str, short: str) -> None:
    assert short_answer(question, LAKES, similar)[0] == short


@pytest.mark.parametrize(
    "question",
    [
        "Which Norwegian sculptor from Ost painted Lake Varn?",  # of another kind
        "Which river in the county of Ost is known for its herons?",
        "Which deep lake in the county of Ost is known for its swans?",  # not all of it is told
        "Which deep lake in the county of Ost is not known for its herons?",
    ],
)
def test_nothing_is_named_that_is_not_told_to_be_so(question: str) -> None:
    assert short_answer(question, LAKES, similar)[0] not in NAMES


def test_of_two_things_that_are_all_of_it_none_is_named() -> None:
    twins = (*LAKES, "Lake Brun\nLake Brun is a deep lake in the county of Ost, known for its herons.")
    named, _ = short_answer("Which deep lake in the county of Ost is known for its herons?", twins, similar)
    assert named not in NAMES
