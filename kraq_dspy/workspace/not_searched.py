"""Answers what needs no search: thanks and greetings, and a question about somebody whom nobody named."""

import dspy

from kraq_dspy._internal.rag_prediction import RagPrediction
from kraq_dspy.language.follow_ups import pronoun_for_nobody
from kraq_dspy.language.social_turns import social_kind, social_reply

SOCIAL, ASKS_BACK = "social", "asks back"
"""The `source` of such predictions."""


def without_search(question: str) -> RagPrediction | None:
    """The reply to what asks nothing; None for a question.

    >>> without_search("ok great, thank you very much").answer
    'You are welcome.'
    """
    kind = social_kind(question)
    return _prediction(social_reply(kind), SOCIAL) if kind else None


def asked_for_name(complete: dspy.Prediction) -> RagPrediction | None:
    """What asks back where a completed question has a pronoun that stands for nobody; None for any other.

    >>> asked_for_name(dspy.Prediction(question="Where was he born?", asked="Where was he born?")).answer
    'Nobody was named whom "he" stands for: ask with the name.'
    """
    pronoun = pronoun_for_nobody(complete.question)
    if not pronoun:
        return None
    return _prediction(f'Nobody was named whom "{pronoun}" stands for: ask with the name.', ASKS_BACK)


def is_searched(prediction: dspy.Prediction) -> bool:
    """Whether the prediction is one of a program, or a refusal: whether it tells something of the documents.

    >>> is_searched(without_search("Thanks!"))
    False
    """
    return prediction.get("source") not in (SOCIAL, ASKS_BACK)


def _prediction(answer: str, source: str) -> RagPrediction:
    return RagPrediction(
        answer=answer, hits=[], source=source, answerable=None, answerable_score=None, next_questions=()
    )
