"""Takes the question out of a model's reply, and says whether somebody could ask it who does not see the text."""

import re

from kraq_dspy.programs.kraq.element_list import plain_words

MARKS = ("?", "？", "؟", ";")
"""What a question ends in, the Greek one among them."""
ECHO = 5
"""Words of the instructions in a row that make a question a repetition of its task."""

_UP_TO_MARK = re.compile(r".*[?？؟]")
_LATIN = re.compile(r"[a-z]", re.IGNORECASE)
_ABOUT_TEXT = re.compile(
    r"\bthe (?:\w+ )?summar(?:y|ies)\b|\b(?:this|the given) (?:text|article|passage|summary)\b", re.IGNORECASE
)


def question_in(reply: str) -> str:
    """The first line that ends in a question mark, of any script; else the first that goes on after one, up to it; else
    the first line."""
    lines = [line for raw in reply.splitlines() if (line := raw.strip(" \t\"'*-"))]
    questions = [line for line in lines if line.endswith(MARKS)]
    begun = [begin[0] for line in lines if (begin := _UP_TO_MARK.match(line))]
    return (questions or begun or lines or [""])[0]


def stands_alone(question: str, instructions: str) -> bool:
    """Whether it has a question mark, where its script has one, and neither speaks of "the summary" nor repeats its
    instructions."""
    words, task = plain_words(question), plain_words(instructions).split()
    repeats_task = any(f" {' '.join(task[at : at + ECHO])} " in words for at in range(len(task) - ECHO + 1))
    lacks_mark = _LATIN.search(question) is not None and not question.endswith(MARKS)
    return bool(words.strip()) and not (repeats_task or lacks_mark or _ABOUT_TEXT.search(question))
