"""Puts a question in other words: without its filler, as keywords, as a statement, in its parts."""

import re

from kraq_dspy.models.lms.engines.embedded.names import names_in
from kraq_dspy.models.lms.engines.embedded.text import WORD, words
from kraq_dspy.models.lms.engines.embedded.vocabulary import STOP

CLAUSE = re.compile(
    r"(?:,? and|;|,)\s+(?=(?:who|what|which|when|where|why|how|in what|in which)\b)|(?<=\?)\s+", re.IGNORECASE
)
EITHER = re.compile(
    r"^(?P<lead>.*?\b(?:who|which|what|whose)\b[^,:]*?)[,:] (?P<a>[A-Z0-9\"“][^,?]*?),? or (?P<b>[^?]+)\?$",
    re.IGNORECASE,
)
FILLER = re.compile(
    r"^(?:(?:hi|hello|please|well|so|ok(?:ay)?)\b[,!. ]*)*"
    r"(?:(?:can|could|would|will) you (?:please )?(?:tell|show|explain to) me |(?:please )?(?:tell|show) me |"
    r"do you know |i (?:would like|want|need) to know |i(?: am|'m) wondering )"
    r"(?:about |if |whether )?",
    re.IGNORECASE,
)
ASKING = re.compile(
    r"^(?:(?:in|on|at|of|from|to|by|for|with) )?"
    r"(?:who|whom|whose|what|which|when|where|why|how(?: (?:many|much|old|long))?)\b"
    r"(?: (?:is|are|was|were|do|does|did|has|have|had|can))?\s*|^(?:is|are|was|were|do|does|did|has|have|had|can)\s+",
    re.IGNORECASE,
)


def clearer(question: str) -> str:
    """The question without what is said out of politeness."""
    plain = FILLER.sub("", question.strip())
    return f"{plain[:1].upper()}{plain[1:]}" if plain else question.strip()


def keywords(question: str) -> list[str]:
    """Names in full, then the other words that carry meaning, in order."""
    names = names_in(question)
    named = {word for name in names for word in words(name)}
    rest = [word for word in WORD.findall(question) if word.lower() not in STOP and word.lower() not in named]
    return list(dict.fromkeys([*names, *rest]))


def statement(question: str) -> str:
    """What the answer would be told with: the question without its question word."""
    plain = ASKING.sub("", clearer(question)).strip(" ?") or question.strip(" ?")
    return f"{plain[:1].upper()}{plain[1:]}."


def core(question: str) -> str:
    """The names and the first words that carry meaning, six at most; commas' side remarks count last."""
    return " ".join(keywords(question)[:6])


def rephrased(question: str, count: int, most_characters: int = 0) -> list[str]:
    """Up to `count` other wordings of the question; with a limit, those are cut after the last word that fits."""
    plain = clearer(question).strip(" ?")
    as_statement = statement(question).rstrip(".")
    if most_characters:
        wordings = [
            _cut(text, most_characters) for text in (core(question), " ".join(keywords(question)), as_statement, plain)
        ]
    else:
        lowered = f"{plain[:1].lower()}{plain[1:]}"
        wordings = [
            f"Do you know {lowered}?",
            f"{' '.join(keywords(question))}?",
            f"{as_statement}?",
            f"{plain}, please?",
        ]
    return [text for text in dict.fromkeys(wordings) if text and text != question.strip()][:count]


def _cut(text: str, most_characters: int) -> str:
    if len(text) <= most_characters:
        return text
    return text[: most_characters + 1].rpartition(" ")[0] or text[:most_characters]


def sub_questions(question: str) -> list[str]:
    """The clauses that each ask something by name, or a choice of two as a question about each; else the question."""
    either = EITHER.match(question.strip())
    if either:
        return [f"{either['lead']}: {either[side].strip(' “”' + chr(34))}?" for side in ("a", "b")]
    parts = [part.strip(" ,;") for part in CLAUSE.split(question)]
    if len(parts) < 2 or not all(names_in(part.partition(" ")[2]) for part in parts):
        return [question.strip()]
    return [f"{part[:1].upper()}{part[1:].rstrip('?')}?" for part in parts]
