"""The embedded model quotes the sentence that tells, gives no false value, and declines what the text does not tell."""

import pytest

from kraq_dspy.embedded.engine import EmbeddedEngine
from kraq_dspy.models.embedders import load_embedder
from kraq_dspy.settings import EncoderSettings
from tests.embedded.quoting.score import Scored, counts, score


@pytest.fixture(scope="module", params=["first_hundred", "fresh_fifty", "second_hundred"])
def scored(request: pytest.FixtureRequest) -> list[Scored]:
    return score(request.param, EmbeddedEngine(load_embedder(EncoderSettings())).similar)


def test_no_value_is_false(scored: list[Scored]) -> None:
    assert counts(scored).get("false short", 0) == 0


def test_nine_in_ten_of_what_the_text_tells_are_quoted(scored: list[Scored]) -> None:
    told = [each for each in scored if each.asked.short]
    assert counts(told)["quoted"] + counts(told)["short"] >= len(told) * 9 / 10


def test_five_in_six_of_what_the_text_does_not_tell_are_declined(scored: list[Scored]) -> None:
    of_unanswerable = [each for each in scored if not each.asked.short]
    assert counts(of_unanswerable)["declined"] >= len(of_unanswerable) * 5 / 6
