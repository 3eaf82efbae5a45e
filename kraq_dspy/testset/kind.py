"""Defines what a kind of question is: what it is asked of, how a reply is read, what is wrong with it by its words,
which passages answer, and its row."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import dspy

from kraq_dspy.programs.kraq.element_list import plain_words
from kraq_dspy.programs.kraq.question_text import MARKS, question_in, with_mark
from kraq_dspy.records import Chunk, GoldPassage, TestsetRow
from kraq_dspy.testset.corpus import AskedQuestion, Corpus, Material
from kraq_dspy.testset.gold_finder import says_answer

LONGEST_ANSWER = 25
"""Words of an answer, which is copied; nuggets are statements and may be longer."""
CLOSED = frozenset(("yes", "no"))
ARTICLES = frozenset(("the", "a", "an"))


def fault_in_question(
    question: str, answers: Sequence[str], hidden: Sequence[str] = (), *, fewest_answers: int = 1
) -> str:
    """Tell whether nothing was asked or answered, or a name was given away; "" where nothing is wrong.

    >>> fault_in_question("Where did Ada live?", [])
    'nothing was answered'
    """
    if not question.endswith(MARKS):
        return "nothing was asked"
    if len(answers) < fewest_answers:
        return "nothing was answered"
    if any(plain_words(name) in plain_words(question) for name in hidden):
        return "names what links the passages"
    return ""


def fault_in_answers(question: str, answers: Sequence[str], texts: Sequence[str], *, may_be_named: bool = False) -> str:
    """Tell what is wrong with answers that are to be copied from `texts`; "" for nothing.

    A question of which the answers `may_be_named` names them itself, as a comparison does.

    >>> fault_in_answers("Who was Ada?", ["a poet"], ["Ada was a mathematician."])
    'the answer is not in the passages'
    """
    text = "\n".join(texts)
    for answer in answers:
        words = answer.split()
        if len(words) > LONGEST_ANSWER:
            return "the answer is long"
        if ARTICLES.intersection(words[-1:]):  # something stood behind it
            return "the answer is cut off"
    for answer in answers:
        if not says_answer(answer, text) and answer.lower() not in CLOSED:
            return "the answer is not in the passages"
    if not may_be_named and any(says_answer(answer, question) for answer in answers):
        return "gives its answer away"
    return ""


def question_of(reply: Any) -> str:
    """The question of a reply, without what a model says around it."""
    return with_mark(question_in(reply.question or ""))


def answers_in(reply: Any) -> list[str]:
    """The answer, the items of a list, or the nuggets of a broad question."""
    given: str | Sequence[str] = next((reply[name] for name in ("answer", "items", "nuggets") if reply.get(name)), [])
    texts = [given] if isinstance(given, str) else list(given)
    return list(dict.fromkeys(text.strip().rstrip(".") for text in texts if text and text.strip(" .")))


class Kind:
    """A kind of question; `kinds` declares each, which overrides where it differs.

    `signature` is the step that asks, `shortened` are its inputs that are cut where they do not fit a model. `share` is
    its part of a set, if nothing else is said. `has_answer` is False if nothing in the corpus answers. `is_of_one_fact`
    says that no other passage may answer otherwise, `is_read_again` that a reader has to come to the same answer, and
    `is_pooled` that other passages than those that were asked about may answer, too. Of a question that `is_changed`
    one thing is put otherwise, so that nothing answers it. A kind `copies_answers` if these are words of the passages,
    and `names_answers` if its question has them itself, as a comparison does.
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
    is_changed: ClassVar[bool] = False
    copies_answers: ClassVar[bool] = True
    names_answers: ClassVar[bool] = False
    fewest_answers: ClassVar[int] = 1

    def materials(self, corpus: Corpus) -> list[Material]:
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
        fault = fault_in_question(question, answers, hidden, fewest_answers=self.fewest_answers)
        if fault or not self.copies_answers:
            return fault
        return fault_in_answers(question, answers, texts, may_be_named=self.names_answers)

    def is_source(self, question: AskedQuestion, chunk: Chunk) -> bool:
        """Whether a passage that was asked about is needed for the answer."""
        return True

    def answer_in(self, question: AskedQuestion, chunk: Chunk) -> str:
        """An answer that a pooled passage has; "" for none."""
        return next((answer for answer in question.answers if says_answer(answer, chunk.passage)), "")

    def lacks_gold(self, passages: Sequence[GoldPassage]) -> str:
        """Tell why so many gold passages are not what such a question needs; "" where they are."""
        return ""

    def row(self, row: TestsetRow, question: AskedQuestion) -> TestsetRow:
        """Return the row with its answers and documents in the columns of its kind."""
        return row


def texts_of(inputs: Mapping[str, Any]) -> list[str]:
    """The passages among the inputs of a step."""
    texts: list[str] = []
    for name, value in inputs.items():
        if name.endswith("passage"):
            texts.append(value)
        elif name == "passages":
            texts += value
    return texts
