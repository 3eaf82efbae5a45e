"""The embedded model's pairs with short answers, and its critics; every expected value can be read off the text."""

from collections.abc import Sequence

import dspy
import pytest

from kraq_dspy.models.lms.adapter import KraqAdapter
from kraq_dspy.models.lms.engines.embedded.ask import factoid_pair
from kraq_dspy.models.lms.engines.embedded.judge import grounded, relevant, stands_alone
from kraq_dspy.models.lms.roles import make_lm
from kraq_dspy.settings import RoleSettings
from kraq_dspy.signatures import RateGroundedness, RateRelevance, RateStandAlone, WriteFactoidPair

BYRON = "Lord Byron\nIt rained. Lord Byron wrote Don Juan in Venice. He died in Greece."
FILM = "Ed Wood is a 1994 American comedy film. It was loved."


def blind(question: str, texts: Sequence[str]) -> list[float]:
    return [0.0] * len(texts)


@pytest.mark.parametrize(
    ("passage", "question", "answer"),
    [
        (BYRON, "Who wrote Don Juan in Venice?", "Lord Byron"),
        (FILM, "What is Ed Wood?", "a 1994 American comedy film"),
        ("Woodson is a place (CDP) in Arkansas.", "What is Woodson?", "a place"),
        ("Ada Lovelace was an English mathematician.", "Who was Ada Lovelace?", "an English mathematician"),
    ],
)
def test_a_sentence_is_turned_round_into_a_question_with_a_short_answer(
    passage: str, question: str, answer: str
) -> None:
    assert factoid_pair(passage, blind) == {"question": question, "answer": answer}


def test_a_name_that_goes_on_after_a_preposition_is_not_cut_into_a_question() -> None:
    pair = factoid_pair("Deliver Us from Evil is a 2014 film directed by Scott Derrickson.", blind)
    assert not pair["question"].startswith("What from Evil")


@pytest.mark.parametrize("passage", ["it rained all day.", "", "北京很大。人很多！"])
def test_a_passage_without_such_a_sentence_still_gets_a_pair(passage: str) -> None:
    pair = factoid_pair(passage, blind)
    assert pair["question"].endswith(("?", "？"))


def test_the_pairs_of_such_sentences_pass_all_three_critics() -> None:
    for passage in (BYRON, FILM):
        pair = factoid_pair(passage, blind)
        assert grounded(pair["question"], pair["answer"], passage)[0] == 5
        assert relevant(pair["question"], "everybody")[0] == 5
        assert stands_alone(pair["question"])[0] == 5


@pytest.mark.parametrize(
    ("question", "answer", "least", "most"),
    [
        ("Who wrote Don Juan?", "Lord Byron", 5, 5),
        ("Who wrote Don Juan?", "Mary Shelley", 1, 1),
        ("Who founded the Royal Society of Chemistry?", "Lord Byron", 1, 2),
        ("Who wrote Don Juan?", "", 1, 1),
        ("Where did he die?", "Venice", 1, 4),
        ("When did he die in Greece?", "Lord Byron", 1, 3),
    ],
)
def test_groundedness_wants_the_answer_beside_the_question(question: str, answer: str, least: int, most: int) -> None:
    assert least <= grounded(question, answer, BYRON)[0] <= most


@pytest.mark.parametrize(
    ("question", "rating"),
    [
        ("Who wrote Don Juan?", 5),
        ("What did Marie Curie keep in her laboratory?", 5),
        ("How is a broken heat pump repaired?", 5),
        ("What does this model cost?", 2),
        ("Which method does the paper propose?", 2),
        ("According to the text, who won the Nobel Prize?", 2),
        ("Where did he die?", 2),
        ("Why?", 1),
        ("What is energy?", 3),
        ("What is the seed lexicon?", 4),
    ],
)
def test_a_question_stands_alone_unless_something_in_it_points_outside(question: str, rating: int) -> None:
    assert stands_alone(question)[0] == rating


def test_relevance_grows_with_what_a_question_says_and_with_the_audience() -> None:
    assert relevant("Why?", "poets")[0] == 1
    assert relevant("What is ink?", "poets")[0] < relevant("What is ink?", "people who buy ink")[0]


def test_the_embedded_model_answers_the_four_steps() -> None:
    with dspy.context(lm=make_lm(RoleSettings()), adapter=KraqAdapter()):
        pair = dspy.Predict(WriteFactoidPair)(passage=BYRON)
        assert (pair.question, pair.answer) == ("Who wrote Don Juan in Venice?", "Lord Byron")
        critic = dspy.Predict(RateGroundedness)(question=pair.question, answer=pair.answer, passage=BYRON)
        assert critic.groundedness == 5
        assert dspy.Predict(RateRelevance)(audience="poets", question=pair.question).relevance == 5
        assert dspy.Predict(RateStandAlone)(question="What did he do?").stand_alone == 2
