"""Defines what a kind of question is: what it is asked of, how a reply is read, which passages answer, and its row."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import dspy

from kraq_dspy.exam.faults import fault_in_answers, fault_in_question
from kraq_dspy.exam.gold_finder import says_all_names, says_answer
from kraq_dspy.exam.material import AskedQuestion, Material
from kraq_dspy.exam.reply import answers_in, question_of
from kraq_dspy.exam.wording import is_about_two
from kraq_dspy.records import Chunk, GoldPassage, TestsetRow

if TYPE_CHECKING:
    from kraq_dspy.exam.corpus import Corpus
    from kraq_dspy.exam.run import ExamRun


class Kind:
    """A kind of question; a file of this folder declares each, and overrides where it differs.

    `signature` is the step that asks, `shortened` are its inputs that are cut where they do not fit a model. `share` is
    its part of a set, if nothing else is said. `has_answer` is False if nothing in the corpus answers. `is_of_one_fact`
    says that no other passage may answer otherwise, `is_read_again` that a reader has to come to the same answer, and
    `is_pooled` that other passages than those that were asked about may answer, too.
    """

    name: ClassVar[str]
    what: ClassVar[str]
    share: ClassVar[float]
    signature: ClassVar[type[dspy.Signature]]
    shortened: ClassVar[tuple[str, ...]]
    has_answer: ClassVar[bool] = True
    is_of_one_fact: ClassVar[bool] = False
    is_read_again: ClassVar[bool] = True
    is_pooled: ClassVar[bool] = True
    fewest_answers: ClassVar[int] = 1

    def materials(self, corpus: "Corpus") -> list[Material]:
        """Everything in the corpus that such a question can be asked of."""
        raise NotImplementedError(f"{type(self).__name__} declares no materials")

    def read(self, reply: Any, inputs: Mapping[str, Any]) -> tuple[str, list[str], str]:
        """Return the question, its answers, and by their words why they are of no use ("" for nothing)."""
        question, answers = question_of(reply), answers_in(reply)
        return question, answers, self.fault(question, answers, texts_of(inputs))

    def hidden(self, material: Material) -> tuple[str, ...]:
        """Names that the question must not give away."""
        return ()

    def fault(self, question: str, answers: Sequence[str], texts: Sequence[str], hidden: Sequence[str] = ()) -> str:
        """Tell why question and answers are of no use, by their words alone; "" where nothing is wrong.

        `texts` are the passages that were asked about.
        """
        wrong_question = fault_in_question(question, answers, hidden, fewest_answers=self.fewest_answers)
        return wrong_question or self.fault_in_answers(question, answers, texts)

    def fault_in_answers(self, question: str, answers: Sequence[str], texts: Sequence[str]) -> str:
        """Tell what is wrong with answers to a question that is one; "" for nothing."""
        return fault_in_answers(question, answers, texts)

    def has_one_answer(self, question: AskedQuestion) -> bool:
        """Whether only its answers may answer this question."""
        return self.is_of_one_fact and not is_about_two(question.question)

    def is_source(self, question: AskedQuestion, chunk: Chunk) -> bool:
        """Whether a passage that was asked about is needed for the answer."""
        return True

    def answer_in(self, question: AskedQuestion, chunk: Chunk) -> str:
        """An answer that a pooled passage has; "" for none. Of a question about two names, its sentence about both."""
        if is_about_two(question.question):
            return said_of_names(question, chunk)
        return next((answer for answer in question.answers if says_answer(answer, chunk.passage)), "")

    def lacks_gold(self, passages: Sequence[GoldPassage]) -> str:
        """Tell why so many gold passages are not what such a question needs; "" where they are."""
        return ""

    def row(self, row: TestsetRow, question: AskedQuestion) -> TestsetRow:
        """Return the row with its answers and documents in the columns of its kind."""
        return row

    async def rows(
        self, run: "ExamRun", questions: Sequence[AskedQuestion], rows: Sequence[TestsetRow]
    ) -> list[tuple[TestsetRow, str]]:
        """Return the rows that become part of the set, each with the id of what it was asked of.

        `rows` are those of the questions, in the same order.
        """
        return [(row, run.gold.source_of(question)) for row, question in zip(rows, questions, strict=True)]


def said_of_names(question: AskedQuestion, chunk: Chunk) -> str:
    """The first sentence of a passage that has all names that the question asks about; "" for none."""
    names = [name for name in question.material.inputs["about"] if name in question.question]
    return says_all_names(names, chunk.passage)


def texts_of(inputs: Mapping[str, Any]) -> list[str]:
    """The passages among the inputs of a step."""
    texts: list[str] = []
    for name, value in inputs.items():
        if name.endswith("passage"):
            texts.append(value)
        elif name == "passages":
            texts += value
    return texts
