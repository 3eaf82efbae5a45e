"""Recognizes a reply that says that it does not know, in the words of models of any size."""

import re

LONGEST_SEARCHED = 400
"""Characters of a reply that are looked at: who declines does so at once."""

_DOES_NOT_KNOW = re.compile(
    r"\W{0,20}(?:i (?:do not|don['’]t) know|unknown|no answer|ich wei(?:ß|ss) (?:es )?nicht|je ne sais pas|no lo sé)\b",
    re.IGNORECASE,
)
_TEXTS = (
    r"(?:the|these|this|those|your|provided|given|retrieved|available) "
    r"(?:(?:provided|given|retrieved|available|above) )?(?:documents?|passages?|context|texts?|sources?|information)"
)
_NOT = r"(?:do(?:es)? not|don['’]t|doesn['’]t|did not|didn['’]t)"
_SAYS_THAT_NOTHING_ANSWERS = re.compile(
    rf"\W{{0,20}}(?:(?:sorry|unfortunately)\W{{1,3}})?(?:based on {_TEXTS}\W{{1,3}})?(?:"
    rf"{_TEXTS} {_NOT} (?:say|answer|tell|mention|specify|state|provide|include|indicate|(?:contain|have|hold|give) "
    r"(?:(?:any|enough|the|an?|sufficient|relevant) ){0,2}(?:information|answer))"
    r"|i (?:cannot|can['’]t|am unable to|am not able to|could not|couldn['’]t) (?:answer|say|tell|determine|find)"
    r"|(?:(?:there is|there['’]s) )?(?:not enough|no|insufficient) (?:relevant )?information"
    r"|(?:this|the|that) question (?:cannot|can['’]t) be answered"
    r"|it (?:is not (?:possible to (?:answer|say|tell|determine)|stated|mentioned|specified)|cannot be determined)"
    r"|(?:not|none) (?:stated|mentioned|specified|given|found|available|answerable)\b"
    r")",
    re.IGNORECASE,
)
_GOES_ON = re.compile(r"\b(?:but|however|although|nevertheless)\b", re.IGNORECASE)


def declines(reply: str) -> bool:
    """Whether a reply says that it does not know, or that the texts do not answer; an empty reply says no more.

    >>> declines("I don't know."), declines("The passages do not mention his birthplace.")
    (True, True)
    >>> declines("The passages do not mention the year, but he was born in Oslo.")
    False
    """
    reply = reply.strip()[:LONGEST_SEARCHED]
    if not reply or _DOES_NOT_KNOW.match(reply):
        return True
    return bool(_SAYS_THAT_NOTHING_ANSWERS.match(reply)) and not _GOES_ON.search(reply)
