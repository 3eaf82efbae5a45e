"""Names what a question describes: the subject of the sentence that says so of it.

"Which lamp was patented in 1780 by Aimé Argand?" is answered by "The Argand lamp, an oil lamp, was patented ...", but
only if one thing alone is told to be all that the question says.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from kraq_dspy.embedded.names import PERSON
from kraq_dspy.embedded.short_answers.meaning import Word, is_in, keys_of, vocabulary_of
from kraq_dspy.embedded.short_answers.question import Asked, says_not
from kraq_dspy.embedded.short_answers.sense import sense_of

LONGEST_SUBJECT = 8  # words
LEAST_WORDS = 3
"""Of a question: one with fewer describes nothing."""
_ASKS_WHICH = re.compile(r"\b(?:what|which|this) (?P<phrase>[\w’'-]+(?: [\w’'-]+){0,6})", re.IGNORECASE)
_ASKS_WHO = re.compile(r"(?:^|[,;:] )who(?:m)?\b", re.IGNORECASE)
_DEFINITION = re.compile(
    r"(?P<subject>[^,(:;]{2,80}?)(?P<aside> ?\([^()]*\))?(?P<more>,[^.;]{0,150}?,)?"
    r" (?:is|was|are|were) (?:an?|the|one of the) (?P<what>[^.;]+)"
)
_ENDS_NOUN = re.compile(
    r"[,(]| (?:who|whom|whose|that|which|where|when|in|of|for|from|by|with|on|at|as|to|born|based|located|headquartered"
    r"|known|founded|made|used|formed|written|directed|produced)\b"
)
_LEADS_ON = "of for in on at to by with from is are was were do does did has have had can must should that who which"
_ENDS_PHRASE = frozenset(_LEADS_ON.split())
_JOINED = re.compile(r" and |/")


@dataclass(frozen=True, slots=True)
class Telling:
    """A sentence, the title of its passage, and what it goes on from."""

    text: str
    title: str
    above: str = ""


def described_in(asked: Asked, sentences: Sequence[Telling]) -> tuple[str, int] | None:
    """The one thing that is told to be what the question describes, and the place of the sentence; None for none and
    for several."""
    if asked.limits or asked.is_closed or len(asked.words) < LEAST_WORDS or asked.kinds not in ((), ("person",)):
        return None

    places: dict[str, tuple[str, int]] = {}
    for place, sentence in enumerate(sentences):
        name = _subject(asked, sentence)
        if name and _is_told_of(name, asked, sentence, sentences):
            places.setdefault(_folded(name), (name, place))
    return next(iter(places.values())) if len(places) == 1 else None


def _subject(asked: Asked, sentence: Telling) -> str:
    """What the sentence defines as a thing of the asked kind, by its title if that is its name; "" for none."""
    match = _DEFINITION.match(sentence.text)
    if match is None or says_not(sentence.text):
        return ""
    subject = match["subject"].strip(' "“”')
    name = sentence.title if _is_name_of(sentence.title, subject) else subject
    is_asked = _folded(name) in _folded(asked.question) or _folded(subject) in _folded(asked.question)
    if is_asked or len(name.split()) > LONGEST_SUBJECT or not any(map(str.isupper, name)):
        return ""
    return name if _is_of_kind(asked.question, name, match["what"]) else ""


def _is_name_of(title: str, subject: str) -> bool:
    """Whether a title is a name of what a sentence begins with: "Mika Häkkinen" of "Mika Pauli Häkkinen"."""
    words = _folded(title).split()
    return bool(words) and "(" not in title and set(words) <= set(_folded(subject).split())


def _folded(name: str) -> str:
    return " ".join(re.findall(r"\w+", name.casefold().removeprefix("the ")))


def _is_of_kind(question: str, name: str, what: str) -> bool:
    """Whether the noun behind "which" is what the sentence says that it is; behind "who", whether it has a person's
    name."""
    nouns = [part.split()[-1] for part in _JOINED.split(_ENDS_NOUN.split(what)[0]) if part.split()]
    for match in _ASKS_WHICH.finditer(question):
        phrase = _phrase(match["phrase"].lower())
        if any(not keys_of(noun.lower()).isdisjoint(keys_of(word)) for noun in nouns for word in phrase):
            return True
    return _ASKS_WHO.search(question) is not None and PERSON.fullmatch(name) is not None


def _phrase(words: str) -> list[str]:
    phrase: list[str] = []
    for word in words.split():
        if word in _ENDS_PHRASE:
            break
        phrase.append(word)
    return phrase


def _is_told_of(name: str, asked: Asked, sentence: Telling, sentences: Sequence[Telling]) -> bool:
    """Whether the sentence has all words of the question, or another one that names the thing has those that it
    lacks."""
    missing = _missing(asked.words, sentence)
    if not missing:
        return True
    last_word = re.compile(rf"\b{re.escape(name.split()[-1])}\b")
    for other in sentences:
        is_of_it = other is not sentence and last_word.search(f"{other.title} {other.text}") is not None
        if is_of_it and not says_not(other.text) and not _missing(missing, other):
            return True
    return False


def _missing(words: Sequence[Word], sentence: Telling) -> list[Word]:
    senses = sense_of(sentence.text) | vocabulary_of(sentence.title) | vocabulary_of(sentence.above)
    return [word for word in words if not is_in(word.keys, senses)]
