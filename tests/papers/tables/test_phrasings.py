"""Tests that questions are put in other words once, and that the new words are kept."""

from pathlib import Path
from typing import Any

import dspy
import pytest
from dspy.utils import DummyLM

from kraq_dspy.errors import ConfigError
from kraq_dspy.eval import Example
from kraq_dspy.extend import LanguageModels
from kraq_dspy.papers.tables.faq_search import SHORT, Rephrasing, question_of


@pytest.fixture
def phrasings(tmp_path: Path) -> Rephrasing:
    lm = LanguageModels()["rewriter"]
    return Rephrasing(tmp_path, lm)


ASKED = Example("q1", "In which city was the painter Frida Kahlo born?", ("Coyoacán",))


def test_wordings_are_questions_of_their_own_that_know_the_first_one(phrasings: Rephrasing) -> None:
    rephrased = phrasings.of([ASKED], "free", 3)
    assert [each.id for each in rephrased] == ["q1#1", "q1#2", "q1#3"]
    assert {question_of(each.id) for each in rephrased} == {"q1"}
    assert len({each.question for each in rephrased} | {ASKED.question}) == 4
    assert {each.metadata["original"] for each in rephrased} == {ASKED.question}
    assert phrasings.of([ASKED], "original", 3)[0].question == ASKED.question


def test_short_wordings_have_at_most_thirty_characters(phrasings: Rephrasing) -> None:
    rephrased = phrasings.of([ASKED], "short", 3)
    assert rephrased
    assert all(len(each.question) <= SHORT for each in rephrased)


def test_what_one_run_rephrased_the_next_finds(phrasings: Rephrasing) -> None:
    first = phrasings.of([ASKED], "free", 2)

    def refuse(*_: Any, **__: Any) -> dspy.Prediction:
        raise AssertionError("asked again")

    again = Rephrasing(phrasings.folder, phrasings.lm, rephrase=refuse)  # type: ignore[arg-type]
    assert again.of([ASKED], "free", 2) == first


def test_an_unknown_kind_of_wording_is_refused(phrasings: Rephrasing) -> None:
    with pytest.raises(ConfigError, match="there are: original, free, short"):
        phrasings.of([ASKED], "rhymed", 1)


def test_answers_in_place_of_wordings_are_left_out_and_what_lacks_is_not_asked_for_again(tmp_path: Path) -> None:
    """What Qwen2.5-Coder-0.5B wrote."""
    wordings = ["Scott Derrickson and Ed Wood of the same nationality? ", "No, they are not from the same nationality."]
    lm: Any = DummyLM([{"rephrasings": wordings}])  # a second call would be answered by nothing that can be read
    phrasings = Rephrasing(tmp_path, lm)
    question = Example("q1", "Were Scott Derrickson and Ed Wood of the same nationality?", ("yes",))
    first = phrasings.of([question], "free", 3)
    assert [each.question for each in first] == [wordings[0].strip()]
    again = Rephrasing(phrasings.folder, lm)
    assert again.of([question], "free", 3) == first


def test_what_is_no_question_may_be_worded_without_a_mark_and_so_may_keywords(tmp_path: Path) -> None:
    lm: Any = DummyLM([{"rephrasings": ["Name Ada's birthplace."]}, {"rephrasings": ["Ada birthplace"]}])
    phrasings = Rephrasing(tmp_path, lm)
    assert phrasings.of([Example("q1", "Tell me where Ada was born.", ("London",))], "free", 1)
    assert phrasings.of([Example("q2", "Where was Ada born?", ("London",))], "short", 1)
