"""Whatever a user gives becomes a system of one kind, which knows how it is asked."""

from collections.abc import Sequence
from typing import Any

import dspy
import pytest

from kraq_dspy.errors import ConfigError, EvaluationError
from kraq_dspy.eval.datasets import Example
from kraq_dspy.eval.system import AskedSystem, system_of

EXAMPLE = Example("q1", "Where did Ada live?", ("London",))
CLAIM = Example("q2", "Ada lived in Bath.", ("false",), type="veracity")


class Parrot(dspy.Module):
    """Answers with the question, in the field that some programs call so."""

    def forward(self, question: str) -> dspy.Prediction:
        return dspy.Prediction(response=question)


def find(question: str, k: int) -> Sequence[str]:
    return ["Ada lived in London.", "Ada was a countess.", "Ada wrote."][:k]


def asked(given: Any, example: Example = EXAMPLE, k: int = 2) -> dspy.Prediction:
    system = system_of(given, examples=[example])
    prediction, _ = system.ask(example, None, k)
    return prediction


def test_a_program_answers_in_whatever_field_and_is_told_that_a_claim_is_one() -> None:
    assert asked(Parrot()).answer == EXAMPLE.question
    assert asked(Parrot(), CLAIM).answer == f"{CLAIM.question}\nIs this claim true, false, or a mixture of both?"


def test_a_function_finds_or_answers() -> None:
    assert [hit.chunk.text for hit in asked(find).hits] == ["Ada lived in London.", "Ada was a countess."]
    assert asked(lambda question: {"answer": "London"}).answer == "London"


def test_recorded_answers_are_read_and_are_no_gold() -> None:
    row = Example("q1", EXAMPLE.question, ("London",), metadata={"response": "In Bath", "level": "easy"})
    system = system_of(None, examples=[row])

    assert system.is_recorded
    assert system.ask(row, None, 5)[0].answer == "In Bath"
    assert dict(system.scored(row).metadata) == {"level": "easy"}


def test_only_a_retriever_is_known_to_hand_on_as_many_passages_as_it_is_asked_for() -> None:
    assert system_of(find).passages(7) == 7
    assert system_of(Parrot()).passages(7) is None


def test_a_system_is_named_by_its_user_or_by_what_it_is() -> None:
    given = AskedSystem("mine", find, answers=False)

    assert [system_of(Parrot(), "parrot").name, system_of(Parrot()).name] == ["parrot", "Parrot"]
    assert system_of(given, "another name") is given


def test_a_name_needs_an_index_and_a_program_of_ones_own_is_asked_with_nothing_hidden() -> None:
    with pytest.raises(ConfigError, match="'combined' is no index; the name of a program needs one"):
        system_of("combined")
    with pytest.raises(EvaluationError, match="cannot hide them from 'parrot'"):
        system_of(Parrot(), "parrot").without_hidden(None)


def test_a_prediction_without_an_answer_says_what_it_has() -> None:
    class Silent(dspy.Module):
        def forward(self, question: str) -> dspy.Prediction:
            return dspy.Prediction(thought="Hm.")

    with pytest.raises(EvaluationError, match=r"has no `answer`; it has thought\."):
        asked(Silent())
