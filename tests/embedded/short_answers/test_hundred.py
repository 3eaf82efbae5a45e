"""The embedded model's short answers are right, or it gives the sentence; it declines what the text does not tell."""

import pytest

from kraq_dspy.embedded.engine import EmbeddedEngine
from kraq_dspy.models.embedders import load_embedder
from kraq_dspy.settings import EncoderSettings
from tests.embedded.short_answers.score import Scored, counts, score


@pytest.fixture(scope="module", params=["first_hundred", "fresh_fifty", "second_hundred"])
def scored(request: pytest.FixtureRequest) -> list[Scored]:
    return score(request.param, EmbeddedEngine(load_embedder(EncoderSettings())).similar)


def test_at_most_one_short_answer_in_twenty_is_false(scored: list[Scored]) -> None:
    assert counts(scored).get("false short", 0) <= len(scored) / 20


def test_right_short_answers_are_half_of_all(scored: list[Scored]) -> None:
    assert counts(scored)["short"] >= len(scored) / 2


def test_three_in_four_of_what_the_text_does_not_tell_are_declined(scored: list[Scored]) -> None:
    of_unanswerable = [each for each in scored if not each.asked.short]
    declined = counts(of_unanswerable).get("declined", 0)
    assert declined >= len(of_unanswerable) * 3 / 4


def test_few_of_what_the_text_tells_are_declined(scored: list[Scored]) -> None:
    assert counts(scored).get("refused", 0) <= len(scored) / 25
