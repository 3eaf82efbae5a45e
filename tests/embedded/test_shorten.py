"""Tests the embedded model's summaries, accounts and sub-questions; every expected value can be read off the text."""

import dspy
import pytest

from kraq_dspy import make_lm
from kraq_dspy.embedded.answer import account
from kraq_dspy.embedded.summarize import shortened
from kraq_dspy.extend import KraqAdapter
from kraq_dspy.settings import RoleSettings
from kraq_dspy.signatures import AskSubQuestion, ShortenText, TellFromGraph

MILL = (
    "The mill stands by the river. It rained. The river drives the mill. Nobody came. "
    "The mill grinds corn by the river."
)


def blind(question: str, texts: object) -> list[float]:
    return [0.0] * len(texts)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("words", "kept"),
    [
        (12, "The mill stands by the river. The river drives the mill."),
        (19, "The mill stands by the river. The river drives the mill. The mill grinds corn by the river."),
        (2, "It rained."),
        (1, "The …"),
    ],
)
def test_the_sentences_that_share_most_are_kept_in_reading_order(words: int, kept: str) -> None:
    assert shortened(MILL, words) == kept


def test_an_account_has_the_sentences_near_the_question_with_titles_that_say_more() -> None:
    reports = ["Mill; River; Corn\nThe mill is old.", "Town\nIts mill is new. Nobody came.", "Mill\nThe Mill is red."]
    sentences = account("How old is the mill?", reports, blind).split("\n")
    assert sorted(sentences) == ["The Mill is red.", "The mill is old.", "Town: Its mill is new."]
    assert sentences[0] == "The mill is old."
    assert account("Where is Paris?", reports, blind) == ""


def test_the_signatures_are_answered() -> None:
    with dspy.context(lm=make_lm(RoleSettings(model="embedded")), adapter=KraqAdapter()):
        short = dspy.Predict(ShortenText)(text=MILL, words=12).shortened
        reply = dspy.Predict(TellFromGraph)(
            reports=["The mill is old."],
            entities=["Mill: a mill"],
            relationships=[],
            passages=[],
            question="Which mill?",
        ).account
        question = dspy.Predict(AskSubQuestion)(information="Ed Wood is a film directed by Tim Burton.").sub_question
    assert short == "The mill stands by the river. The river drives the mill."
    assert "The mill is old." in reply
    assert "Ed Wood" in question
    assert question.endswith("?")
