"""Puts a question that was asked of a text in fewer words and by other names, as people put it who have not read it.

Nobody checks here whether the shorter question still tells which thing is meant: who uses it looks whether another
passage says as much of something else (`gold.says_it_of_another`).
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from kraq_dspy.language.text import content_words
from kraq_dspy.records import PHRASE, Entity

FEWEST = 3
"""Telling words that a question keeps."""
MOST_SHORTER = 2
_ADDS = re.compile(
    r" (?:in|on|at|during|after|before|until|since|near|within)"
    r" (?=(?:(?:the|early|late|mid|about|around) )*[A-Z0-9\"“])"
)
"""Where a place or a time is added that the question stays whole without."""
_ASKS_FOR_MORE = re.compile(
    r" (?:is|are|was|were|be|been|has|had|did|do|does|the|an?|of|born|made|held|known|set|based|due|as|first|one"
    r"|located|named|part|and|or|[a-z]+ed|[a-z]+ing|written|done|won|built)$",
    re.IGNORECASE,
)
"""How no question ends, if something was cut off behind it."""


def shorter(question: str) -> list[str]:
    """Return the question without what its last prepositions add, at most twice; empty if nothing can be left out.

    >>> shorter("Who was employed by the Hogarth Press in Richmond since 1917?")
    ['Who was employed by the Hogarth Press in Richmond?', 'Who was employed by the Hogarth Press?']
    """
    bare = question.rstrip("? ")
    shorter_ones: list[str] = []
    for match in reversed(list(_ADDS.finditer(bare))):
        cut = bare[: match.start()]
        if len(set(content_words(cut))) < FEWEST or len(shorter_ones) == MOST_SHORTER:
            break
        if not _ASKS_FOR_MORE.search(cut):
            shorter_ones.append(f"{cut}?")
    return shorter_ones


def other_names(entities: Iterable[Entity]) -> dict[str, str]:
    """Return, for a name, another one of the same thing that nothing else in the corpus has: what a
    text calls it elsewhere. One that is only a piece of the name does not say which thing is meant.

    >>> ada = Entity("e1", "Ada Lovelace", "person", "", ("Ada Lovelace", "Countess of Lovelace"), ())
    >>> other_names([ada, Entity("e2", "Ann Byron", "person", "", ("Ann Byron", "Byron"), ())])
    {'Ada Lovelace': 'Countess of Lovelace'}
    """
    known = [entity for entity in entities if entity.type != PHRASE]  # a phrase is no name, however it is written
    holders: defaultdict[str, set[str]] = defaultdict(set)
    for entity in known:
        for name in entity.names:
            holders[name.casefold()].add(entity.id)

    others: dict[str, str] = {}
    for entity in known:
        for name in entity.names:
            is_its_own = holders[name.casefold()] == {entity.id}
            if is_its_own and name.casefold() not in entity.name.casefold():
                others.setdefault(entity.name, name)
    return others


def by_other_names(question: str, names: Sequence[str], others: Mapping[str, str]) -> str:
    """Return the question with other names for those of `names` that have one; "" if none has.

    >>> by_other_names("Where did Ann Byron live?", ["Ann Byron"], {"Ann Byron": "Byron"})
    'Where did Byron live?'
    """
    changed = question
    for name in sorted(names, key=len, reverse=True):
        is_date = name[:1].isdigit()  # "25. Februar" is no other name of February
        if not is_date and name in others and name in changed and others[name] not in changed.replace(name, ""):
            changed = changed.replace(name, others[name])
    return changed if changed != question else ""
