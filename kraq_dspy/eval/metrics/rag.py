"""Scores one turn of a RAG program: is the answer right, was the evidence found, was refused rightly or wrongly?"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kraq_dspy._internal.rag_prediction import REFUSAL, REFUSED
from kraq_dspy.language.declining import declines

UNANSWERABLE = ("unanswerable", "null", "null_query", "impossible")
"""What a field `type` calls a question that the corpus does not answer; `answerable` false says so too."""
NO = ("false", "no", "0")
RIGHT = 0.8
"""Score of an answer from which on it is called right in words."""


@dataclass(frozen=True, slots=True)
class RagOutcome:
    """What a RAG program made of one question.

    `answer_score`, in [0, 1], says how right the answer is; it is not looked at if the program refused, or if the
    question is not answerable. `evidence`, in [0, 1], is the share of the evidence that was found; None if nothing
    tells it.

    >>> RagOutcome(answerable=True, refused=False, answer_score=1.0, evidence=0.0).score
    0.5
    >>> RagOutcome(answerable=False, refused=True).score
    1.0
    """

    answerable: bool
    refused: bool
    answer_score: float = 0.0
    evidence: float | None = None

    @property
    def score(self) -> float:
        """1.0 for a right refusal and 0.0 for a wrong one. For an answer to an answerable question its
        `answer_score`, which counts half where no evidence was found: it is right by luck."""
        if not self.answerable or self.refused:
            return float(self.refused and not self.answerable)
        found = 1.0 if self.evidence is None else self.evidence
        return self.answer_score * (1 + found) / 2

    def explained(
        self, answer: str, gold: Sequence[str], missing: Sequence[str] = (), ungrounded: Sequence[str] = ()
    ) -> str:
        """What happened and what to do about it, in sentences for a model that rewrites instructions.

        `missing` are documents with evidence that were not found, `ungrounded` words of the answer that no passage has.
        """
        if not self.answerable:
            if self.refused:
                return "This was refused, which is right: the documents do not answer it."
            said = f"{answer!r} was answered, but the documents do not answer this question."
            return f"{said}{_ungrounded_words(ungrounded)} Say that you do not know if no passage answers."

        expected = f"The right answer is {' or '.join(map(repr, gold[:3]))}."
        if self.refused:
            said = f"This was refused, which is wrong: the documents answer it. {expected}"
            return f"{said} {self._evidence(missing)}".rstrip()
        if self.answer_score >= RIGHT:
            return f"{answer!r} is right. {self._evidence(missing)}".rstrip()

        said = f"{answer!r} scores {self.answer_score:.2f}. {expected}{_ungrounded_words(ungrounded)}"
        return f"{said} {self._evidence(missing)}".rstrip()

    def _evidence(self, missing: Sequence[str]) -> str:
        if self.evidence is None:
            return ""
        if self.evidence >= 1:
            if self.answer_score >= RIGHT and not self.refused:
                return "The evidence was found."
            return "The evidence was found, so read the passages for exactly what is asked."
        if not missing:
            return "No passage that was found has the answer, so the search must ask for it in other words."
        return (
            f"Documents with the evidence were not found: {', '.join(missing)}. The search must ask for them in other "
            "words."
        )


def is_unanswerable(type_of_question: str, answerable: Any) -> bool:
    """Whether a question says of itself that the corpus does not answer it, by its type or its field `answerable`.

    >>> is_unanswerable("", False), is_unanswerable("null_query", None), is_unanswerable("fact", None)
    (True, True, False)
    """
    says = "" if answerable is None else str(answerable).strip().casefold()
    return type_of_question.casefold() in UNANSWERABLE or says in NO


def is_refused(prediction: Mapping[str, Any], answer: str) -> bool:
    """Whether a prediction refuses: by its own `refused`, by the index's threshold, or in the words of its answer.

    >>> is_refused({}, "I do not know"), is_refused({"refused": False}, "Unknown Mortal Orchestra")
    (True, False)
    """
    says = prediction.get("refused")
    if isinstance(says, bool):
        return says
    return prediction.get("source") == REFUSAL or answer.startswith(REFUSED) or declines(answer)


def _ungrounded_words(words: Sequence[str]) -> str:
    return f" No passage has these words of it: {', '.join(words)}." if words else ""
