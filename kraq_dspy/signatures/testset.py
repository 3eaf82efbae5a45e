"""Holds the steps that make a test set: a question of each kind, and the checks that it passes."""

from typing import Annotated

import dspy
from pydantic import Field


# Asks what one passage answers (YourBench and DataMorgana ask so; the wording is ours).
class AskFact(dspy.Signature):
    """Ask one question that the passage answers with a name, a date, a number or a few words.

    Ask as somebody who has not seen the passage and wants to know: short, plain, about one thing that is named. Put it
    in other words than the passage where you can. The answer is copied from the passage.
    """

    passage: str = dspy.InputField()
    about: list[str] = dspy.InputField(desc="names that the passage tells of")
    question: str = dspy.OutputField()
    answer: Annotated[str, Field(max_length=200)] = dspy.OutputField(desc="copied, at most ten words")


# Asks for several things, each in a passage of its own.
class AskList(dspy.Signature):
    """Ask one question about `shared` that has several answers, one in each passage.

    Ask as somebody who has not seen the passages, and name `shared`. Items are copied from the passages, one from each,
    in their order.
    """

    passages: list[str] = dspy.InputField()
    shared: str = dspy.InputField(desc="a name that stands in all of them")
    question: str = dspy.OutputField()
    items: list[str] = dspy.OutputField(desc="copied, a few words each")


# Asks in two steps: the first passage leads to the second.
class AskBridge(dspy.Signature):
    """Ask one question about `link` that the second passage answers, and say by the first passage which one `link` is.

    Ask as somebody who has not seen the passages. Both tell of `link`. The question names it; the description is put in
    the place of the name later, so that it takes both passages to answer. The answer is copied from the second passage.
    """

    first_passage: str = dspy.InputField()
    second_passage: str = dspy.InputField()
    link: str = dspy.InputField()
    description: Annotated[str, Field(max_length=150)] = dspy.OutputField(
        desc='begins with "the", as in "the author of ...", and lacks the name; at most ten words'
    )
    question: str = dspy.OutputField(desc="short, with the name; not what the first passage tells")
    answer: Annotated[str, Field(max_length=200)] = dspy.OutputField(desc="copied, at most ten words")


# Compares two things that are told of in passages apart.
class AskComparison(dspy.Signature):
    """Ask one question that compares the two things by something that both passages tell: a date, a size, a place, a
    kind. Name both.

    Ask as somebody who has not seen the passages. The answer is one of the two names, or yes or no.
    """

    first_passage: str = dspy.InputField()
    second_passage: str = dspy.InputField()
    names: list[str] = dspy.InputField(desc="what the first and the second passage tell of")
    question: str = dspy.OutputField()
    answer: Annotated[str, Field(max_length=200)] = dspy.OutputField()


# Asks what many passages answer together, with what a good answer says (AutoNuggetizer's nuggets).
class AskBroad(dspy.Signature):
    """Ask one question about what the passages have in common, which takes most of them to answer well.

    Ask as somebody who has not seen the passages, and name the subject. Nuggets are the statements that a good answer
    makes, each one sentence from one passage that stands for itself, the most important first, at most six.
    """

    passages: list[str] = dspy.InputField()
    about: list[str] = dspy.InputField(desc="names that most passages tell of")
    question: str = dspy.OutputField()
    nuggets: list[str] = dspy.OutputField()


# Asks about something that is not so (CREPE: Yu et al., 2023; the wording is ours).
class AskFalsePremise(dspy.Signature):
    """Put the question so that it supposes the same of `other` as it does of `name`. Change nothing else."""

    question: str = dspy.InputField()
    name: str = dspy.InputField()
    other: str = dspy.InputField()
    changed: str = dspy.OutputField(desc="the question about `other`")


# Checks that a question can be understood by itself.
class CheckStandAlone(dspy.Signature):
    """Decide whether the question can be understood by somebody who sees nothing else.

    No if it speaks of "the passage" or "the text", or of he, it, this or the film without saying which.
    """

    question: str = dspy.InputField()
    stands_alone: bool = dspy.OutputField()


# Checks that a passage answers a question: what makes it gold.
class CheckAnswered(dspy.Signature):
    """Decide whether the passage alone tells a reader that this is the answer to the question."""

    question: str = dspy.InputField()
    answer: str = dspy.InputField()
    passage: str = dspy.InputField()
    answered: bool = dspy.OutputField()


# Checks that two answers say the same.
class CheckSameAnswer(dspy.Signature):
    """Decide whether both answers say the same in answer to the question. Spelling and detail do not matter."""

    question: str = dspy.InputField()
    first_answer: str = dspy.InputField()
    second_answer: str = dspy.InputField()
    same: bool = dspy.OutputField()


# Puts a question in words that its passages lack.
class ParaphraseQuestion(dspy.Signature):
    """Ask the same in other words, as short as before. Keep names, numbers and dates; put other words for `avoid`."""

    question: str = dspy.InputField()
    avoid: list[str] = dspy.InputField(desc="words to do without")
    paraphrase: str = dspy.OutputField()
