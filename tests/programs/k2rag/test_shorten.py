"""Tests that texts get fewer words; each prompt shows what the model was asked."""

import asyncio
import copy
from typing import Any

import dspy
import pytest
from dspy.utils import DummyLM

from kraq_dspy.asset.corpus.tokens import count_tokens
from kraq_dspy.programs import Shorten
from kraq_dspy.programs.k2rag.shorten import PIECE_TOKENS, split

STORY = "The mill stands by the river and grinds corn. " * 40  # 10 tokens each


class Halving:
    """A summariser that keeps the first words."""

    name = "halving"

    def __init__(self) -> None:
        self.words: list[int] = []

    def __call__(self, text: str, words: int) -> str:
        self.words.append(words)
        return " ".join(text.split()[:words])


def model(shortened: str) -> DummyLM:
    return DummyLM([{"shortened": shortened}] * 20)


def test_a_long_text_is_asked_for_in_its_share_of_words() -> None:
    lm = model("A mill grinds corn.")
    with dspy.context(lm=lm):
        assert Shorten(share=0.5, least_tokens=10)(text=STORY).shortened == "A mill grinds corn."
    words = round(0.75 * round(0.5 * count_tokens(STORY)))
    assert f"[[ ## words ## ]]\n{words}" in lm.history[0]["messages"][-1]["content"]


def test_a_text_that_is_short_enough_stays_and_costs_nothing() -> None:
    lm = model("never")
    with dspy.context(lm=lm):
        assert (
            Shorten(least_tokens=60)(text="The mill stands by the river.").shortened == "The mill stands by the river."
        )
        assert Shorten()(text="").shortened == ""
    assert lm.history == []


def test_a_summary_that_is_no_shorter_is_not_taken_and_an_empty_one_is_refused() -> None:
    with dspy.context(lm=model(STORY + " And more.")):
        assert Shorten()(text=STORY).shortened == STORY
    with dspy.context(lm=model(" ")), pytest.raises(ValueError, match="empty"):
        Shorten()(text=STORY)


def test_what_is_longer_than_a_call_is_shortened_piece_by_piece() -> None:
    text = "\n\n".join(f"Part {n}. The mill grinds corn number {n}." for n in range(PIECE_TOKENS // 8))
    lm = model("One part.")
    with dspy.context(lm=lm):
        shortened = Shorten()(text=text).shortened
    assert shortened == "\n".join(["One part."] * len(lm.history))
    assert len(lm.history) > 1
    assert "Part 0." in str(lm.history[0]["messages"])
    assert f"number {PIECE_TOKENS // 8 - 1}." in str(lm.history[-1]["messages"])


def test_a_summariser_takes_the_place_of_the_language_model() -> None:
    halving = Halving()
    shorten = Shorten(halving, share=0.1, least_tokens=10)
    called, waited = shorten(text=STORY), asyncio.run(shorten.acall(text=STORY))
    words = round(0.75 * round(0.1 * count_tokens(STORY)))
    assert halving.words == [words, words]
    assert called.shortened == waited.shortened == " ".join(STORY.split()[:words])
    assert shorten.named_predictors() == []
    assert copy.deepcopy(shorten)(text=STORY).shortened == called.shortened


@pytest.mark.parametrize("wrong", [{"share": 1.5}, {"share": -0.1}, {"least_tokens": 0}])
def test_sizes_that_make_no_sense_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="share is"):
        Shorten(**wrong)


def test_pieces_have_no_more_than_their_tokens_and_lose_nothing() -> None:
    pieces = split(STORY, 128, 10)
    assert all(count_tokens(piece) <= 128 for piece in pieces)
    assert len(pieces) == 4
    assert split("", 128, 10) == []
