"""Answers English questions that want a yes or a no, and neither where the text does not plainly say it."""

import re
from collections.abc import Sequence, Set

from kraq_dspy.embedded.names import names_in
from kraq_dspy.language.text import content_words, parted, sentences
from kraq_dspy.language.vocabulary import NO_NAMES

_NEGATION = re.compile(
    r"\b(?:not|never|no|none|nobody|nothing|nowhere|neither|nor|cannot|without|no longer|non)\b|n[’']t\b"
    r"|\b(?:forbidden|forbid|forbids|forbade|prohibit(?:s|ed)?|ban(?:s|ned)?|den(?:y|ies|ied)|refus(?:e|es|ed)|reject(?:s|ed)?"
    r"|fail(?:s|ed)?|lack(?:s|ed)?|unable|impossible|illegal|false|untrue|wrong|myth|hoax|avoid(?:s|ed)?|absent|missing"
    r"|cancel+ed|abandoned|stopped|ceased|ended|closed|prevent(?:s|ed)?|declin(?:e|es|ed)|disproved?|except"
    r"|exclud(?:e|es|ed)|instead|rather than|far from|hardly|scarcely|barely|rarely|seldom|few|little)\b",
    re.IGNORECASE,
)
_PLAIN_NOT = re.compile(
    r"\b(?:not|never|cannot|no longer|forbidden|prohibited|banned)\b|n[’']t\b|^(?:.*: )?No\b", re.IGNORECASE
)
_NOT_ONLY = re.compile(r"\bnot (?:only|just|merely|all|every|always|necessarily|yet|until|un\w+)\b", re.IGNORECASE)
_OPEN = re.compile(
    r"\b(?:if|unless|except|until|till|but|although|though|however|while|whereas|or|only|may|might|could|would|should"
    r"|perhaps|possibly|probably|likely|allegedly|reportedly|rumou?red|claim(?:s|ed)?|plan(?:s|ned)?|propos(?:e|es|ed)"
    r"|intend(?:s|ed)?|expect(?:s|ed)?|hop(?:e|es|ed)|want(?:s|ed)?|almost|nearly|some|once|formerly|originally"
    r"|used to|whether|said|says|believ(?:e|es|ed)|thought|supposed(?:ly)?|ask(?:s|ed)?|tri(?:es|ed)|wish(?:es|ed)?)\b",
    re.IGNORECASE,
)
"""What leaves open whether it is so, or for which part."""
_CLAUSE_ENDS = re.compile(r"[;,](?=\s)|\s[–—]\s|\b(?:and|but|while|whereas|which|who|because|when|after|before)\b")
_BOTH = re.compile(r"\b(?:both|same|also|each)\b", re.IGNORECASE)
_NUMBER = re.compile(r"\d[\d.,]*\d|\d")
_ASKS_OPEN = re.compile(
    r"\b(?:only|always|all|every|never|any|ever|still|again|first|last|more|most|less)\b", re.IGNORECASE
)


def yes_or_no(question: str, passages: Sequence[str], sentence: str) -> tuple[str, tuple[str, ...]]:
    """("yes", "no" or "", and the sentences that say so, () for `sentence`), of the nearest `sentence` behind its
    title; or, where a question compares two things, of what is told of each.

    >>> yes_or_no("Does the ferry sail on Sunday?", [], "Alma: The ferry does not sail on Sunday.")
    ('no', ())
    """
    compared = _compared(question)
    accounts = [account for name in compared if (account := _told_of(name, passages))]
    if len(accounts) == 2:
        is_so = _of_both(question, compared, accounts)
        return {True: "yes", False: "no", None: ""}[is_so], tuple(account[0] for account in accounts)
    return _of_one(question, sentence), ()


def _of_one(question: str, sentence: str) -> str:
    """ "yes" or "no" where the sentence has every word of the question and leaves nothing open; "" else."""
    own = set(content_words(sentence))
    asked_words = set(content_words(question.partition(" ")[2]))
    states_all = asked_words and asked_words <= own and _names_and_numbers(question) <= _names_and_numbers(sentence)
    if not states_all or _OPEN.search(sentence) or _ASKS_OPEN.search(question):
        return ""
    if not _in_one_clause(asked_words, sentence) or _turned_round(question, sentence):
        return ""
    n_asked, n_told = len(_NEGATION.findall(question)), len(_NEGATION.findall(sentence))
    if n_asked == n_told == 0:
        return "yes"
    is_denied = n_told == 1 and n_asked == 0 and _PLAIN_NOT.search(sentence) and not _NOT_ONLY.search(sentence)
    return "no" if is_denied and "," not in sentence else ""


def _in_one_clause(asked_words: Set[str], sentence: str) -> bool:
    """Whether one clause has the words: "One to Vardo costs 140 kr, one to Mell 95." says nothing of Mell and 140."""
    title, _, own = sentence.rpartition(": ")
    above = set(content_words(title))
    clauses = _CLAUSE_ENDS.split(own)
    return any(asked_words <= above | set(content_words(clause)) for clause in clauses)


def _turned_round(question: str, sentence: str) -> bool:
    """Whether two names stand in the other order: who beat whom is not told by names alone."""
    names = names_in(f"· {question.partition(' ')[2]}")
    places = [sentence.rfind(name) for name in names]
    return len(names) > 1 and min(places) >= 0 and places != sorted(places)


def _names_and_numbers(text: str) -> set[str]:
    numbers = set(_NUMBER.findall(text))
    return numbers | {word.lower() for name in names_in(f"· {text}") for word in name.split()}


def _compared(question: str) -> list[str]:
    """The two names that a question compares; [] where it compares none."""
    names = names_in(question[question.find(" ") + 1 :])[:2]
    if len(names) < 2:
        return []
    between = question[question.find(names[0]) + len(names[0]) : question.find(names[1])]
    is_joined = re.fullmatch(r"[^\w]*(?:and|or)\s(?:the )?", between) is not None
    return names if is_joined or _BOTH.search(question) else []


def _of_both(question: str, names: Sequence[str], accounts: Sequence[Sequence[str]]) -> bool | None:
    """Whether both have what the question asks for, or have the same of it; None if an account denies something."""
    first, second = (" ".join(account) for account in accounts)
    if re.search(r"\b(nationality|country)\b", question):
        words_in_both = set(re.findall(r"\w+", first)) & set(re.findall(r"\w+", second))
        return not NO_NAMES.isdisjoint(words_in_both)
    if any(_NEGATION.search(text) for text in (first, second, question)):
        return None

    asked_words = set(content_words(question))
    for name in names:
        asked_words -= set(content_words(name))
    words_of_first = set(content_words(first))
    words_of_second = set(content_words(second))

    if re.search(r"\bsame\b", question):
        shared = (words_of_first & words_of_second) - asked_words
        return len(shared) >= 2

    half = len(asked_words) / 2
    return len(asked_words & words_of_first) > half and len(asked_words & words_of_second) > half


def _told_of(name: str, passages: Sequence[str]) -> list[str]:
    """The first two sentences of the passage that has the name in its title, or else of one that mentions it."""
    for passage in sorted(passages, key=lambda passage: (not parted(passage)[0].startswith(name), len(passage))):
        if name in passage:
            return sentences(parted(passage)[1])[:2]
    return []
