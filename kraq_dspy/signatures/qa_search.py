"""Holds the steps of QA search: the same question found, pairs written and rated, questions rephrased."""

from typing import Literal

import dspy


# Asks which prepared question means the same (QA search paper, Algorithm 1 and figure 7).
class FindSameQuestion(dspy.Signature):
    """Find the catalogue's question that asks exactly what the user asks, so that its answer answers the user.

    Other words, another language, a shorter or a longer form do not matter. Another name, number, date or place does,
    and so does asking for the opposite, or for another thing about the same topic: those are no match.
    """

    question: str = dspy.InputField(desc="the user's")
    catalogue: list[str] = dspy.InputField(desc="number: question")
    number: int = dspy.OutputField(desc="the number of that question; -1 if no question means the same")


# Asks whether the prepared answer is right for the question: QA search's second look.
class ConfirmSameQuestion(dspy.Signature):
    """Decide whether the two questions ask for the same thing.

    They do not if they are about different people, things, places, times or numbers, or ask for different or opposite
    facts about the same one.
    """

    # With fields called "asked" and "stored", and asked whether one answer is right for both, a model of 1.5 billion
    # parameters said yes to nearly every pair (benchmarks/results/qa-search.md).

    first_question: str = dspy.InputField()
    second_question: str = dspy.InputField()
    same: bool = dspy.OutputField()


# Writes a question that a passage answers, and its answer, for the catalogue (QA search paper, figure 8).
class WriteFactoidPair(dspy.Signature):
    """Write one question that the passage answers with a short fact, as somebody would type it into a search box, and
    that answer.

    The question says all that is needed to understand it, and speaks neither of a passage nor of a text.
    """

    passage: str = dspy.InputField()
    question: str = dspy.OutputField()
    answer: str = dspy.OutputField(desc="short, from the passage alone")


# Rates whether anybody would ask this: the second critic of synthetic pairs (QA search paper, figure 10).
class RateRelevance(dspy.Signature):
    """Rate how useful the answer to the question is to the audience.

    1: nobody among them would ask. 5: many of them need to know.
    """

    audience: str = dspy.InputField()
    question: str = dspy.InputField()
    evaluation: str = dspy.OutputField(desc="one or two sentences")
    relevance: Literal[1, 2, 3, 4, 5] = dspy.OutputField()


# Rates whether the passage answers the question: the first critic of synthetic pairs (QA search paper, figure 9).
class RateGroundedness(dspy.Signature):
    """Rate how well the passage alone answers the question, and whether the answer given is the one it has.

    1: the passage does not answer it, or says otherwise. 5: it answers it clearly, in one way only, as given.
    """

    question: str = dspy.InputField()
    answer: str = dspy.InputField()
    passage: str = dspy.InputField()
    evaluation: str = dspy.OutputField(desc="one or two sentences")
    groundedness: Literal[1, 2, 3, 4, 5] = dspy.OutputField()


# Rates whether a question is clear without its passage: the third critic of pairs (QA search paper, appendix).
class RateStandAlone(dspy.Signature):
    """Rate how well the question can be understood by somebody who sees nothing else.

    1: it points to something unseen: "the document", "he", "this model", a case only the passage knows. 5: it makes
    sense by itself. Technical words and abbreviations are no fault when one can look them up.
    """

    question: str = dspy.InputField()
    evaluation: str = dspy.OutputField(desc="one or two sentences")
    stand_alone: Literal[1, 2, 3, 4, 5] = dspy.OutputField()


# Asks a question in other ways: how QA search is tried (QA search paper, section 4).
class RephraseQuestion(dspy.Signature):
    """Ask the question in other words, in its own language, so that it means the same and has the same answer.

    Do not answer it. Each rephrasing is one that somebody might type, and differs from the question and from the
    others. With `most_characters` above 0, none is longer than that: keep the words that tell what is asked, leave out
    the rest.
    """

    question: str = dspy.InputField()
    count: int = dspy.InputField()
    most_characters: int = dspy.InputField(desc="0: any length")
    rephrasings: list[str] = dspy.OutputField(desc="as many as `count`")
