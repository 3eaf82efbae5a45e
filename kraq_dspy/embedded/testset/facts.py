"""Asks questions whose answers stand in a passage: those that its parsed sentences answer, in English alone.

Other languages are asked nothing: that takes a language model.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass

from kraq_dspy.embedded.reading.reader import reader
from kraq_dspy.language.analysis import Asked, Sentence
from kraq_dspy.language.text import with_another_name
from kraq_dspy.records import content_id

_WORTH_OF_WHAT = {"what": 0.8, "which": 0.9}  # beside a question for who, when, where, why or how many
_AS_GOOD = 0.75  # share of the highest worth from which on one question is as good as another
_LEAST_WEIGHT = 0.42  # of a parsed question: a name and a rarer thing
_SUPPOSES = re.compile(r"(?:What|Who|Which \w+|What kind of \w+) (?P<deed>(?:may|might|could|can|should) [a-z]+)\b")
_SMALL = re.compile(r"\b[a-z]\w{3,}")


@dataclass(frozen=True, slots=True)
class Fact:
    """A question that a sentence answers. `worth` from 0 to 1 ranks the questions of a passage."""

    question: str
    answer: str
    worth: float = 0.0


def fact_about(passage: str, about: Collection[str] = ()) -> dict[str, str]:
    """One question that the passage answers, of one of the names if it can be; empty texts if it has none.

    It is one of those that tell most of what they ask about, who, when, where, why or how many rather than what. Which
    of several depends on the passage's text and these names alone.

    >>> fact_about("Tarnvik\\nJonas Berg has kept the light of Tarnvik since 1998.")["answer"]
    '1998'
    """
    facts = parsed_facts(passage)
    named = [fact for fact in facts if any(name in fact.question or name == fact.answer for name in about)]
    most = max((fact.worth for fact in named or facts), default=0.0)
    best = [fact for fact in named or facts if fact.worth >= _AS_GOOD * most]
    chosen = min(best, key=lambda fact: content_id(passage, fact.question), default=Fact("", ""))
    return {"question": chosen.question, "answer": chosen.answer}


def parsed_facts(passage: str) -> list[Fact]:
    """Every question that a parsed sentence of the passage answers and that tells enough to stand alone.

    Empty for a passage that is not in English.
    """
    analysis = reader().analysis(passage)
    if analysis is None:
        return []
    facts = []
    for sentence, asked in analysis.asked():
        if asked.weight >= _LEAST_WEIGHT and _may_be_shown(asked, sentence):
            question = _with_capitals(asked.question, passage)
            facts.append(Fact(question, asked.answer, worth=asked.weight * _WORTH_OF_WHAT.get(asked.word, 1.0)))
    return facts


def question_for(statement: str, answer: str) -> str:
    """How the parse asks for this part of a statement; "" where it asks for none that is the same.

    >>> question_for("Jonas Berg has kept the light of Tarnvik since 1998.", "Jonas Berg")
    'Who has kept the light of Tarnvik since 1998?'
    """
    return next((fact.question for fact in parsed_facts(statement) if fact.answer == answer), "")


def _may_be_shown(asked: Asked, sentence: Sentence) -> bool:
    """Whether an editor would show the question: it does not ask what may be so."""
    supposes = _SUPPOSES.match(asked.question)
    return supposes is None or supposes["deed"] not in sentence.text  # "What may hinder growth?"


def _with_capitals(question: str, passage: str) -> str:
    """The question with the capitals of names that it lost where they began a sentence, if the passage has them within
    another one.

    >>> _with_capitals("What can chromebook owners find?", "Chromebook owners find it. Get a Chromebook.")
    'What can Chromebook owners find?'
    """
    for word in _SMALL.findall(question):
        name = f"{word[0].upper()}{word[1:]}"
        stands_within = re.search(rf"[a-z,] {name}\b", passage) is not None
        if stands_within and re.search(rf"\b{word}\b", passage) is None:
            question = re.sub(rf"\b{word}\b", name, question)
    return question


def asked_of_another(question: str, name: str, other: str) -> str:
    """The question with another name in the place of one of its own; "" if it does not have that name as a whole word.

    >>> asked_of_another("Who met Ada?", "Ada", "Bo"), asked_of_another("Who met Adams?", "Ada", "Bo")
    ('Who met Bo?', '')
    """
    question_of_other = with_another_name(question, name, other)
    return "" if question_of_other == question else question_of_other
