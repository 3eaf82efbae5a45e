import dspy
import pytest

from kraq_dspy._internal.step import FittingPredict, NearestDemos, held
from kraq_dspy.signatures import GenerateQuestion
from tests.conftest import KeywordEmbedder


def demo(thing: str) -> dspy.Example:
    return dspy.Example(summary=f"About a {thing}.", question=f"What is the {thing}?")


@pytest.fixture
def predictor(keyword_embedder: type[KeywordEmbedder]) -> NearestDemos:
    predict = FittingPredict(GenerateQuestion, shorten="summary")
    return NearestDemos(predict, [demo("cat"), demo("dog"), demo("cat and dog")], 2, keyword_embedder("cat", "dog"))


def asked(predictor: NearestDemos, summary: str) -> list[str]:
    return [chosen.question for chosen in predictor.chosen({"summary": summary})]


def test_the_nearest_demonstrations_are_shown_the_nearest_last(predictor: NearestDemos) -> None:
    assert asked(predictor, "A cat sat.") == ["What is the cat and dog?", "What is the cat?"]


def test_a_demonstration_with_the_same_input_is_never_shown(predictor: NearestDemos) -> None:
    assert "What is the cat?" not in asked(predictor, "About a cat.")


def test_a_copy_chooses_alike_and_gives_back_the_predictor_that_it_holds(predictor: NearestDemos) -> None:
    copy = predictor.deepcopy()
    assert asked(copy, "A dog sat.") == asked(predictor, "A dog sat.")
    copy.lm = lm = dspy.utils.DummyLM([])
    assert isinstance(held(copy), FittingPredict)
    assert (held(copy).lm, held(copy).demos) == (lm, [])


def test_the_model_sees_the_chosen_ones_alone(predictor: NearestDemos) -> None:
    lm = dspy.utils.DummyLM([{"question": "Why?"}])
    with dspy.context(lm=lm):
        predictor(summary="A cat sat.")
    shown = str(lm.history[-1]["messages"])
    assert "What is the cat?" in shown
    assert "What is the dog?" not in shown


def test_no_demonstration_is_no_error(keyword_embedder: type[KeywordEmbedder]) -> None:
    predict = NearestDemos(dspy.Predict(GenerateQuestion), [], 2, keyword_embedder("cat"))
    assert predict.chosen({"summary": "A cat."}) == []
