"""Which part of a reply is the question."""

import dspy
import pytest
from dspy.utils import DummyLM

from kraq_dspy.programs.kraq.describe_community import AskQuestion

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
    with dspy.context(lm=DummyLM([{"question": reply}])):
        assert AskQuestion()(summary="Ada met Charles.").question == question
