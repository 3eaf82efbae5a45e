"""A reply gives one question, which stands alone or is asked for again."""

from typing import Any

import dspy
import pytest
from dspy.utils import DummyLM

from kraq_dspy.models.lms.adapter import UnreadableReplyError
from kraq_dspy.programs import AskQuestion, AskRandomQuestion
from kraq_dspy.signatures import GenerateQuestion
from kraq_dspy.steps.kept import program_key

SMOLLM2 = (
    "What is Gut malignancies? Provide a response in the format of a JSON object with the structure described above. "
    "The response must have a title, such as"
)


@pytest.mark.parametrize(
    ("reply", "question"),
    [
        ("Here it is:\n* Who met Ada?\nIt asks for a name.", "Who met Ada?"),
        (SMOLLM2, "What is Gut malignancies?"),
        ("Who met Ada? And where did they meet?", "Who met Ada? And where did they meet?"),
        ("誰發明了電話？答案在文中", "誰發明了電話？"),
        ("Tell of Ada\nand of Charles", "Tell of Ada"),
    ],
)
def test_the_question_is_taken_without_what_stands_around_it(reply: str, question: str) -> None:
    with dspy.context(lm=DummyLM([{"question": reply}] * 2)):
        assert AskQuestion()(summary="Ada met Charles.").question == question


def test_a_question_without_a_mark_and_in_other_words_than_the_summary_s_is_not_asked_for_again() -> None:
    reply = "how do cities keep drivers informed on the highways"
    assert asked([reply, "Who met Ada?"]) == ("How do cities keep drivers informed on the highways?", 1)


ECHO = "What is the person, place or thing it is about Ada?"


def asked(replies: list[str], summary: str = "Ada met Charles.", candidates: int = 1) -> tuple[str, int]:
    """The question, and how many replies it took."""
    lm = DummyLM([{"question": reply} for reply in replies])
    with dspy.context(lm=lm):
        question = AskQuestion(candidates)(summary=summary).question
    return question, len(lm.history)


@pytest.mark.parametrize(
    "reply",
    [
        ECHO,
        "Charles wrote a short quiz question whose answer is in?",
        "What is the main topic of the summary?",
        "What is the main topic of the IBD summary?",
        "Who does this article tell of?",
        "What theme do the passages share with Ada?",
        "What were their differences?",
        "Who is the subject?",
        "Who is the main character of the film?",  # SmolLM2's with the packaged adapter, as the next two
        "Who is the band's own label?",
        "What band is this?",
        "Who met in the city?",
        "Who was the man who met the woman of the show?",
        "Who met in this city?",
        "What man that met her is this?",
        "Gut malignancies",
        "",
    ],
)
def test_what_nobody_would_ask_who_does_not_see_the_text_is_asked_for_again(reply: str) -> None:
    assert asked([reply, "Who met Ada?"]) == ("Who met Ada?", 2)


def test_after_the_second_call_the_first_question_stands_or_else_the_first_reply_but_no_echo() -> None:
    assert asked(["Ada", "Ada and Charles", "Who met Ada?"]) == ("Ada", 2)
    assert asked(["question", "What do they share?", "Who met Ada?"]) == ("What do they share?", 2)
    assert asked([ECHO, "question", "Who met Ada?"]) == ("question", 2)
    assert asked([ECHO, "", "Who met Ada?"]) == (ECHO, 2)


def test_what_nobody_wrote_is_no_question() -> None:
    assert asked(["", "Ada and Charles"]) == ("Ada and Charles", 2)
    with pytest.raises(ValueError, match="asked 2 times and wrote no question"):
        asked(["", ""])


@pytest.mark.parametrize(
    "reply",
    [
        "Who saw Ada at the passage of the bill?",
        "Was it Charles' meeting?",
        "Who met Ada in the city?",
        "Who met in the city that has no name?",
        "Who met for the show in 1843?",
        'Who met for the show "difference"?',
        "ใครพบเอดา",
        "誰發明了電話",
        "Πού ζούσε η Άντα;",
    ],
)
def test_other_questions_are_asked_for_once(reply: str) -> None:
    assert asked([reply, "Who met Ada?"]) == (reply, 1)


DOG = "Bernese Mountain Dog\nThe Bernese Mountain Dog is a large breed. The name comes from the canton of Bern in 1907."


def test_of_several_questions_the_one_that_a_sentence_tells_most_plainly_is_taken() -> None:
    mixed, half, plain = "What is the large canton?", "Where is Bern?", "Which breed is the Bernese Mountain Dog?"
    assert asked([mixed, half, plain], DOG, 3) == (plain, 3)
    assert asked([plain, half, mixed], DOG, 3) == (plain, 1)  # nothing is left to be desired
    assert asked([mixed, plain, half], DOG, 2) == (plain, 2)
    assert asked([mixed, plain, half], DOG, 1) == (mixed, 1)


def test_questions_of_the_baseline_are_chosen_alike() -> None:
    passages = ["Bern\nBern is a city.", "Ada\nAda Lovelace wrote a program of 1843."]
    replies = [{"question": text} for text in ("Which program is of Bern?", "Who wrote a program of 1843?")]
    with dspy.context(lm=DummyLM(replies)):
        assert AskRandomQuestion(2)(passages=passages).question == "Who wrote a program of 1843?"


def test_what_does_not_stand_alone_is_no_candidate() -> None:
    assert asked(["What is it about?", "Dog", "Where is Bern?", "Who met Ada?"], DOG, 3) == ("Where is Bern?", 3)
    assert asked(["Dog", "The dog", "A breed"], DOG, 2) == ("Dog", 2)
    assert asked(["Dog", "The dog", "A breed", "Bern", "Is it Bern?"], DOG, 5) == ("Is it Bern?", 5)


def test_one_candidate_is_the_program_that_kept_answers_were_asked_with() -> None:
    assert program_key(AskQuestion(1)) == program_key(AskQuestion())
    assert program_key(AskQuestion(3)) != program_key(AskQuestion(2)) != program_key(AskQuestion())


def test_the_step_may_be_another_module() -> None:
    ask = AskQuestion()
    ask.generate = dspy.ChainOfThought(GenerateQuestion)  # type: ignore[assignment]
    with dspy.context(lm=DummyLM([{"reasoning": "Two people.", "question": text} for text in ("Ada", "Who met Ada?")])):
        assert ask(summary="Ada met Charles.").question == "Who met Ada?"


class ReadableTimes(dspy.Module):
    """Writes a title so often, and then what nobody can read."""

    def __init__(self, n_readable: int) -> None:
        super().__init__()
        self.n_readable = n_readable

    def forward(self, summary: str, config: dict[str, Any] | None = None) -> dspy.Prediction:
        self.n_readable -= 1
        if self.n_readable < 0:
            raise UnreadableReplyError(GenerateQuestion, "[**", {}, ["question: missing"], False)
        return dspy.Prediction(question="Gut malignancies")


def test_a_further_attempt_that_cannot_be_read_loses_nothing() -> None:
    ask = AskQuestion()
    ask.generate = ReadableTimes(1)  # type: ignore[assignment]
    assert ask(summary="Ada met Charles.").question == "Gut malignancies"
    with pytest.raises(UnreadableReplyError):
        ask(summary="Ada met Charles.")
