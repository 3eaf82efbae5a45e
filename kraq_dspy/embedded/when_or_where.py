"""Answers a question for the time or the place of one named thing only from sentences that tell it of that thing."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from kraq_dspy.embedded.evidence import POINTS_BACK, Evidence
from kraq_dspy.embedded.names import names_in
from kraq_dspy.embedded.word_forms import base_of
from kraq_dspy.language.text import stem, words
from kraq_dspy.language.vocabulary import STOP

WHEN_OR_WHERE = re.compile(
    r"(?:(?:and|but|so) )?(?:when|where) (?:was|were|is|are|did|does|do|has|have|had|will) (?:the )?(?P<rest>.+)",
    re.IGNORECASE,
)
THING_OF = re.compile(r"(?P<thing>[a-z-]+) (?:of|in|at) (?:the )?")
"""What stands before the name in "the bridge of Brandvik"."""
MAY_BE_SOMEBODY = re.compile(r"(?:er|or|ist|ian|man|ess|wife|husband|son|child|friend|king|queen|pope|head|star|band)$")
"""Words for who is somebody else than the name behind it says: "the author of Don Juan"."""
SAME_DEED = {
    "birth": "born", "birthplace": "born", "native": "born",
    "death": "die", "dead": "die", "kill": "die",
    "home": "live", "resident": "live", "reside": "live", "residence": "live",
    "marriage": "marry", "wedding": "marry", "foundation": "found", "opening": "open",
}  # fmt: skip
"""Words for what was done that other words say as well."""
SAYS_LITTLE = frozenset(("locat", "situat", "happen", "occur", "take", "plac", "come", "first"))
"""Words for what was done, folded, that a sentence which tells the place or the time may do without."""


def telling_when_or_where(question: str, passages: Sequence[str], evidence: list[Evidence]) -> list[Evidence]:
    """The evidence, in another order where the time or the place of one thing is asked for; empty if none tells it."""
    asked = read_when_or_where(question) if evidence else None
    return evidence if asked is None else _with_those_first(asked, passages, evidence)


@dataclass(frozen=True, slots=True)
class WhenOrWhere:
    """What a question asks the time or the place of: of whom or what, and the words for what was done, folded."""

    subject: str
    deed: frozenset[str]


def read_when_or_where(question: str) -> WhenOrWhere | None:
    """Read a question for the time or the place of one named thing; None for any other, which may take two steps.

    >>> read_when_or_where("Where was Rick Ross born?")
    WhenOrWhere(subject='Rick Ross', deed=frozenset({'born'}))
    >>> read_when_or_where("Where was the author of Don Juan born?") is None
    True
    """
    asks = WHEN_OR_WHERE.match(question)
    names = names_in(question)
    if asks is None or len(names) != 1:
        return None

    before, _, after = asks["rest"].partition(names[0])
    is_thing_of = THING_OF.fullmatch(before)
    if before and (is_thing_of is None or MAY_BE_SOMEBODY.search(is_thing_of["thing"])):
        return None

    said_of_subject = re.sub(r"^[’']s\b", "", after)
    return WhenOrWhere(names[0], frozenset(_folded(said_of_subject) - SAYS_LITTLE))


def _with_those_first(asked: WhenOrWhere, passages: Sequence[str], evidence: Sequence[Evidence]) -> list[Evidence]:
    """Return the sentences, first those that tell what the question asks; none where none of them does.

    These are about the subject, by name or as he, she or it in a passage that names it, and have a word for the action.
    """
    words_of_subject = re.findall(r"\w+", asked.subject)
    last_word = re.compile(rf"\b{words_of_subject[-1]}\b", re.IGNORECASE)
    naming = {number for number, passage in enumerate(passages) if last_word.search(passage)}

    telling: list[Evidence] = []
    others: list[Evidence] = []
    for part in evidence:
        is_named = last_word.search(f"{part.title} {part.text}")
        is_pointed_at = part.passage in naming and POINTS_BACK.match(part.text)
        tells_deed = not asked.deed or not asked.deed.isdisjoint(_folded(part.text))
        tells = (is_named or is_pointed_at) and tells_deed
        (telling if tells else others).append(part)
    return [*telling, *others] if telling else []


def _folded(text: str) -> set[str]:
    """The content words of a text, so that "died", "dies" and "death" are one, as are "born" and "birthplace"."""
    folded = set()
    for word in words(text):
        if word not in STOP:
            base = base_of(word) or word
            folded.add(stem(SAME_DEED.get(base, base)))
    return folded
