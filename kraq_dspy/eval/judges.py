"""Lets language models judge answers. A reply that is no verdict is a failure with a reason, never a silent 0.

Two judges compare with gold answers. Four are RAGAS's (Es et al., 2024): groundedness, its faithfulness, is the share
of the answer's statements that the passages support; context recall that of the gold answer's; context precision says
how far in front useful passages stand, and answer relevancy how near the answer stays to the question.
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import dspy
from dspy.utils.exceptions import AdapterParseError, LMError

from kraq_dspy._internal.both_ways import call
from kraq_dspy._internal.step import Step
from kraq_dspy.errors import EvaluationError
from kraq_dspy.eval.metrics.for_dspy import answer_of, evidence_of, gold_of
from kraq_dspy.eval.metrics.rag import is_refused
from kraq_dspy.language.text import content_words, words
from kraq_dspy.models.lms.adapter import KraqAdapter
from kraq_dspy.ports import Embedder
from kraq_dspy.programs.kraq.question_text import MARKS
from kraq_dspy.signatures.judging import (
    AttributedStatement,
    AttributeReference,
    GradeAnswer,
    JudgeAnswer,
    JudgedStatement,
    JudgeListAnswer,
    JudgeSupport,
)
from kraq_dspy.signatures.testset import AskFact
from kraq_dspy.state import SavableModule

RIGHT_GRADE = 4
"""Grades from 4 to 5 count as right (QA search paper, section 5)."""
_Judged = TypeVar("_Judged", JudgedStatement, AttributedStatement)


class JudgedMetric(SavableModule):
    """A score in [0, 1] that a model gives an answered question.

    Called as a metric of DSPy is, it returns a prediction with `score`. With `needs_gold` it compares with gold ones.
    """

    needs_gold = True
    embedder: Embedder | None = None  # of those that compare meanings

    def score(self, example: Any, prediction: Any) -> float:
        """Score one question, 0.0 if there is nothing to judge: a blank answer, or no passage.

        Raises EvaluationError if the judge could not be asked or read.
        """
        if self.is_empty(example, prediction):
            return 0.0

        try:
            with dspy.context(adapter=KraqAdapter()):
                return float(self(example, prediction).score)
        except AdapterParseError as error:
            text = str(getattr(error, "lm_response", "") or error)
            raise EvaluationError(f"the judge's reply is no verdict: {text[:200]!r}") from error
        except LMError as error:
            raise EvaluationError(f"the judge could not be asked: {error}") from error

    def is_empty(self, example: Any, prediction: Any) -> bool:
        return not answer_of(prediction).strip()

    def is_defined(self, example: Any) -> bool:
        """Whether there is anything to judge."""
        return bool(example.answers) or not self.needs_gold


class BinaryJudge(JudgedMetric):
    """1.0 if the answer means the same as a gold one (or, for a list, covers most items), else 0.0.

    >>> with dspy.context(lm=lm):  # doctest: +SKIP
    ...     BinaryJudge()(dspy.Example(question="Which city?", answer="Oslo"), dspy.Prediction(answer="In Oslo.")).score
    1.0
    """

    def __init__(self) -> None:
        super().__init__()
        self.judge = Step(JudgeAnswer)
        self.judge_list = Step(JudgeListAnswer)

    async def aforward(self, example: Any, prediction: Any) -> dspy.Prediction:
        exchange = {"question": example.question, "answer": answer_of(prediction)}
        if items := getattr(example, "answer_items", None):
            reply = await call(self.judge_list, **exchange, reference_items=[list(synonyms) for synonyms in items])
        else:
            reply = await call(self.judge, **exchange, reference_answers=list(gold_of(example)))
        return dspy.Prediction(score=float(reply.correct))


class RubricJudge(JudgedMetric):
    """Grades 1 to 5; the score is 1.0 from grade 4 on, else 0.0. The prediction has `grade` and `feedback`, too.

    >>> with dspy.context(lm=lm):  # doctest: +SKIP
    ...     RubricJudge()(dspy.Example(question="Which city?", answer="Oslo"), dspy.Prediction(answer="In Oslo.")).grade
    5
    """

    def __init__(self) -> None:
        super().__init__()
        self.grade = Step(GradeAnswer)

    async def aforward(self, example: Any, prediction: Any) -> dspy.Prediction:
        gold, answer = list(gold_of(example)), answer_of(prediction)
        reply = await call(self.grade, question=example.question, reference_answers=gold, answer=answer)
        score = float(reply.grade >= RIGHT_GRADE)
        return dspy.Prediction(score=score, grade=reply.grade, feedback=reply.feedback)


class Groundedness(JudgedMetric):
    """Share of the answer's statements that the retrieved passages support.

    >>> example = dspy.Example(question="Which city?", passages=["Oslo is in Norway."])
    >>> with dspy.context(lm=lm):  # doctest: +SKIP
    ...     Groundedness()(example, dspy.Prediction(answer="Oslo, in Norway.")).score
    1.0
    """

    needs_gold = False

    def __init__(self) -> None:
        super().__init__()
        self.judge = Step(JudgeSupport)

    async def aforward(self, example: Any, prediction: Any) -> dspy.Prediction:
        passages, answer = evidence_of(example, prediction), answer_of(prediction)
        reply = await call(self.judge, question=example.question, passages=passages, answer=answer)
        statements = _without_the_question(reply.statements, example.question, answer)
        return _share_that_holds([bool(each.supported) for each in statements], "answer")


class _JudgedEvidence(JudgedMetric):
    """What attributes the gold answer's statements to passages; without a passage there is nothing to judge."""

    def __init__(self) -> None:
        super().__init__()
        self.judge = Step(AttributeReference)

    def is_empty(self, example: Any, prediction: Any) -> bool:
        return not evidence_of(example, prediction)

    async def attributed(self, example: Any, passages: Sequence[str]) -> list[bool]:
        """Whether each statement of the gold answer can be attributed to the passages."""
        reference = _reference(example)
        reply = await call(self.judge, question=example.question, passages=passages, reference_answer=reference)
        statements = _without_the_question(reply.statements, example.question, reference)
        return [bool(each.attributed) for each in statements]


class ContextRecall(_JudgedEvidence):
    """Share of the gold answer's statements that can be attributed to the retrieved passages (RAGAS's context recall).

    It judges what was found, not what was answered, so it scores retrievers too. Of several gold answers the first
    counts, of a list all of its items.

    >>> example = dspy.Example(question="Which city?", answer="Oslo", passages=["The city is Oslo."])
    >>> with dspy.context(lm=lm):  # doctest: +SKIP
    ...     ContextRecall()(example, dspy.Prediction()).score
    1.0
    """

    async def aforward(self, example: Any, prediction: Any) -> dspy.Prediction:
        verdicts = await self.attributed(example, evidence_of(example, prediction))
        return _share_that_holds(verdicts, "gold answer")


class ContextPrecision(_JudgedEvidence):
    """How far in front the passages stand that hold the gold answer (RAGAS's context precision), in [0, 1].

    The mean of precision@k over the places k of useful passages: sum_k(precision@k * v_k) / sum_k(v_k), and 0.0 without
    a useful one. RAGAS asks of each passage whether it was useful (LLMContextPrecisionWithReference). Here v_k is 1 if
    a statement of the gold answer can be attributed to the passage alone, which takes a call for each passage. It
    judges what was found, so it scores retrievers too.

    >>> example = dspy.Example(question="Which city?", answer="Oslo", passages=["The city is Oslo."])
    >>> with dspy.context(lm=lm):  # doctest: +SKIP
    ...     ContextPrecision()(example, dspy.Prediction()).score
    1.0
    """

    async def aforward(self, example: Any, prediction: Any) -> dspy.Prediction:
        useful = [any(await self.attributed(example, [passage])) for passage in evidence_of(example, prediction)]
        return dspy.Prediction(score=average_precision_of(useful))


class AnswerRelevancy(JudgedMetric):
    """How near the questions that an answer would answer are to the one that was asked (RAGAS's answer relevancy).

    The cosine of the question with one that a model asks of the answer alone, in [0, 1]; 0.0 for a refusal. RAGAS
    averages three such questions (its `strictness`); here it is one, since a model at temperature 0 asks the same
    again. It needs no gold answer, and says nothing of whether the answer is right. A name alone scores low, since
    little can be asked of it. Figures of different encoders must not be compared. Raises EvaluationError without an
    encoder.
    """

    needs_gold = False

    def __init__(self) -> None:
        super().__init__()
        self.ask = Step(AskFact)

    async def aforward(self, example: Any, prediction: Any) -> dspy.Prediction:
        if self.embedder is None:
            raise EvaluationError("answer_relevancy compares meanings, and has no encoder")
        answer = answer_of(prediction)
        if is_refused(prediction, answer):
            return dspy.Prediction(score=0.0)

        reply = await call(self.ask, passage=answer, about=[])
        if not str(reply.question or "").strip():
            raise EvaluationError("the judge asked no question that the answer would answer")
        asked, would_be_asked = self.embedder.encode_queries([example.question, reply.question]).astype(float)
        return dspy.Prediction(score=min(1.0, max(0.0, float(asked @ would_be_asked))), question=reply.question)


def average_precision_of(useful: Sequence[bool]) -> float:
    """The mean of precision@k over the places of what is useful; 0.0 if nothing is.

    >>> average_precision_of([True, False, True])
    0.8333333333333333
    """
    n_useful, total = 0, 0.0
    for place, is_useful in enumerate(useful, start=1):
        if is_useful:
            n_useful += 1
            total += n_useful / place
    return total / n_useful if n_useful else 0.0


def repeats_question(statement: str, question: str, stated: str) -> bool:
    """Whether a statement that a judge took from `stated` only says the question again.

    Small judges give back "Who built the mill?", or "The mill was built", as something that the answer "Ida" states,
    and find it in any passage about the mill. Where an answer says yes or no, or chooses from the question's own words,
    a statement in these words is the answer's.

    >>> repeats_question("The mill was built.", "Who built the mill?", "Ida")
    True
    >>> repeats_question("The mill is old.", "Is the mill old?", "Yes")
    False
    """
    if statement.rstrip().endswith(MARKS):
        return not stated.rstrip().endswith(MARKS)

    asked, said, words_stated = (content_words(text) for text in (question, statement, stated))
    if not said or words(stated)[:1] in (["yes"], ["no"]):
        return False
    return set(said) <= set(asked) and not set(words_stated) <= set(asked)


def _without_the_question(statements: Sequence[_Judged], question: str, stated: str) -> list[_Judged]:
    return [each for each in statements if not repeats_question(each.statement, question, stated)]


def _share_that_holds(verdicts: Sequence[bool], judged: str) -> dspy.Prediction:
    if not verdicts:
        raise EvaluationError(f"the judge found no statement in the {judged}")
    return dspy.Prediction(score=sum(verdicts) / len(verdicts))


def _reference(example: Any) -> str:
    items = getattr(example, "answer_items", None)
    return "; ".join(synonyms[0] for synonyms in items) if items else str(gold_of(example)[0])


CONTEXT_RECALL, CONTEXT_PRECISION, ANSWER_RELEVANCY = "context_recall", "context_precision", "answer_relevancy"
JUDGED: Mapping[str, type[JudgedMetric]] = {
    "judge": BinaryJudge,
    "rubric": RubricJudge,
    "right": RubricJudge,
    "groundedness": Groundedness,
    "faithfulness": Groundedness,
    CONTEXT_RECALL: ContextRecall,
    CONTEXT_PRECISION: ContextPrecision,
    ANSWER_RELEVANCY: AnswerRelevancy,
}
""" Metrics of the role judge by name. "right" is a rubric's 4 or 5, or, where an answer was prepared, that it is the
question's own (QA search paper); "faithfulness" is RAGAS's name for groundedness."""
SPLITS_STATEMENTS = frozenset(("groundedness", "faithfulness", CONTEXT_RECALL, CONTEXT_PRECISION, ANSWER_RELEVANCY))
"""Those that only a language model can judge: they take an answer apart, or ask what it would answer."""
