"""Asks an English question again: of another thing, or with another question word.

The question is cut by its small words alone: what it begins with, its auxiliary, the verb at its end, and the phrases
between. "The Lind mill" takes the place of "the Tarn mill", since both are mills; "on Sunday" that of "on Saturday".
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from kraq_dspy.embedded.names import names_in
from kraq_dspy.embedded.word_forms import PAST, PAST_OF_DONE, base_of
from kraq_dspy.language.vocabulary import DOES

_BE = frozenset(("is", "are", "was", "were"))
_AUXILIARY = _BE | frozenset(
    ("do", "does", "did", "has", "have", "had", "can", "could", "will", "would", "should", "may", "must", "shall")
)
_PREPOSITION = frozenset(
    (
        "of",
        "in",
        "at",
        "for",
        "from",
        "by",
        "with",
        "on",
        "about",
        "to",
        "during",
        "near",
        "into",
        "under",
        "over",
        "after",
        "before",
        "between",
        "since",
        "until",
    )
)
_ARTICLE = frozenset(
    ("the", "a", "an", "my", "our", "your", "his", "her", "its", "their", "this", "that", "these", "those")
)
_OPENING = re.compile(r"(?:who|whom|whose|what|when|where|why|how|which)$", re.IGNORECASE)
_DONE = frozenset((*PAST.split("|"), *PAST_OF_DONE, "born", "known", "worn", "shown", "grown", "taken", "paid", "cut"))
_BEFORE_ADJECTIVES = frozenset(("stay", "remain", "become", "get", "look", "feel", "keep", "seem", "be", "taste"))
_ORDER = re.compile(
    r"\b(?:first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|last|next|latest|previous|current|former"
    r"|largest|smallest|biggest|oldest|newest|longest|shortest|highest|lowest|best|worst)\b"
)
_CALENDAR = re.compile(
    r"\b(?:on |in |at |for |from )?((?:mon|tues|wednes|thurs|fri|satur|sun)days?|january|february|march|april|may|june"
    r"|july|august|september|october|november|december|spring|summer|autumn|winter|weekends?|(?:19|20)\d\d)\b",
    re.IGNORECASE,
)
_WORD_ALONE = re.compile(
    r"(?:and |but |ok(?:ay)?,? |so )?(?P<asked>(?:since|until|till) when|when|where|why|how(?: (?:often|long|soon))?"
    r"|for how long|by whom|with whom|for whom|from where|where to)(?: exactly)?\s*[?.!]*",
    re.IGNORECASE,
)
_LONGEST_NAME = 5  # words of an answer that is a name
_JOINED = "\x00"  # within a name, so that it is one word


@dataclass(frozen=True, slots=True)
class Parts:
    """The words of a question: how it begins, its auxiliary ("" if it asks for its subject), and the rest, where
    the verb stands at `verb` (behind all others if there is none)."""

    opening: tuple[str, ...]
    auxiliary: str
    rest: tuple[str, ...]
    verb: int

    @property
    def has_verb(self) -> bool:
        return self.verb < len(self.rest)


@dataclass(frozen=True, slots=True)
class Phrase:
    """A stretch of the rest, from `begin` to `end`, without the preposition `after` which it stands."""

    begin: int
    end: int
    after: str


def asked_again(asked: str, earlier: str, answer: str) -> str:
    """The earlier question with the question word that stands alone in `asked`; "" if another form is asked.

    >>> asked_again("And why?", "When was the Tarn mill built?", "1804.")
    'Why was the Tarn mill built?'
    >>> asked_again("Since when?", "Who is the head of the office?", "Petra Lund.")
    'Since when is Petra Lund the head of the office?'
    """
    alone = _WORD_ALONE.fullmatch(asked.strip())
    parts = _parts_of(earlier) if alone else None
    if alone is None or parts is None:
        return ""
    word = alone["asked"][:1].upper() + alone["asked"][1:].lower()
    rest = " ".join(parts.rest).replace(_JOINED, " ")
    if parts.auxiliary and not _asks_who_is(parts):
        if parts.rest[-1] in _PREPOSITION:
            return ""
        return f"{' '.join((word, parts.auxiliary.lower(), rest, *_thing_asked_for(parts.opening)))}?"

    somebody = _name_in(answer)
    if not somebody:
        return ""
    if parts.auxiliary:
        return f"{word} {parts.auxiliary} {somebody} {rest}?"
    verb, _, things = rest.partition(" ")
    past = base_of(verb)
    does, base = ("did", past) if past else ("does", _base_of_present(verb))
    return f"{word} {does} {somebody} {base} {things}?" if base and things else ""


def asked_of(topic: str, place: str, earlier: str) -> str:
    """The earlier question with the topic in the place of what it is asked of, or of what stands after the preposition
    `place`; "" if that is not told.

    >>> asked_of("the Lind mill", "", "When was the Tarn mill built?")
    'When was the Lind mill built?'
    >>> asked_of("Sunday", "on", "When does the pool open on Saturday?")
    'When does the pool open on Sunday?'
    """
    parts = _parts_of(earlier)
    if parts is None or not topic:
        return ""
    again = _other_day(topic, place, earlier) or _other_in_order(topic, earlier)
    if again:
        return again
    words = topic.split()
    phrases = _phrases(parts)
    same_head = _with_same_head(words, phrases, parts)
    if same_head is not None:
        return _put(words, same_head, parts)
    if place:
        after_it = [phrase for phrase in phrases if phrase.after == place]
        if after_it:
            return _put(words, after_it[-1], parts)
        return f"{earlier.rstrip(' ?.!')} {place} {topic}?" if place in _PREPOSITION - {"of"} else ""
    phrase = _asked_about(words, phrases, parts, earlier)
    return _put(words, phrase, parts) if phrase is not None else ""


def shares_head(topic: str, earlier: str) -> bool:
    """Whether the topic is a thing of a kind that the earlier question names: "the Bergen office" where it names the
    Oslo office; or a day where it names one."""
    parts = _parts_of(earlier)
    if parts is None:
        return False
    is_day = _CALENDAR.fullmatch(topic) is not None and bool(_other_day(topic, "", earlier))
    return is_day or _with_same_head(topic.split(), _phrases(parts), parts) is not None


def _parts_of(question: str) -> Parts | None:
    """None for a text that is no question of English."""
    for name in names_in(question):
        question = question.replace(name, name.replace(" ", _JOINED))
    words = question.strip().rstrip("?!. ").split()
    if len(words) < 2:
        return None
    if words[0].lower() in _AUXILIARY:
        return Parts((), words[0], tuple(words[1:]), _place_of_verb((), words[0].lower(), words[1:]))
    if not (_OPENING.match(words[0]) or words[0].lower() in ("in", "on", "at", "by", "since", "for")):
        return None
    place = next((n for n, word in enumerate(words[1:5], 1) if word in _AUXILIARY), 0)
    if place and words[place] in ("have", "has", "had") and not any(map(_is_done, words[place + 1 :])):
        return Parts(tuple(words[:place]), "", tuple(words[place:]), 0)
    if place:
        rest = tuple(words[place + 1 :])
        opening = tuple(words[:place])
        return Parts(opening, words[place], rest, _place_of_verb(opening, words[place], rest))
    if words[0].lower() not in ("who", "what", "which") or len(words) < 3:
        return None
    verb = 2 if words[0].lower() == "which" else 1
    return Parts(tuple(words[:verb]), "", tuple(words[verb:]), 0)


def _thing_asked_for(opening: Sequence[str]) -> Sequence[str]:
    """What stands behind the verb if something else is asked: the beds of "how many beds"."""
    words = " ".join(opening[:2]).lower()
    if words in ("how many", "how much"):
        return opening[2:]
    return opening[1:] if words.startswith(("which", "what")) else ()


def _asks_who_is(parts: Parts) -> bool:
    return parts.opening[:1] in (("Who",), ("who",)) and parts.auxiliary in _BE and not parts.has_verb


def _place_of_verb(opening: Sequence[str], auxiliary: str, rest: Sequence[str]) -> int:
    """Where the verb stands in what follows the auxiliary: at the end, or before the last preposition's phrase."""
    if auxiliary in _BE:
        return next((n for n, word in enumerate(rest) if n and _is_done(word)), len(rest))
    if len(rest) > 2 and rest[-2] in _BEFORE_ADJECTIVES:
        return len(rest) - 2
    before = [n for n, word in enumerate(rest) if word in _PREPOSITION]
    if not rest or not before:
        return max(len(rest) - 1, 0)
    behind = [word for word in rest[before[-1] + 1 :] if word not in _ARTICLE]
    ends_in_verb = len(behind) > 1 and behind[-1].islower()
    return len(rest) - 1 if ends_in_verb else max(before[0] - 1, 0)


def _is_done(word: str) -> bool:
    """Whether the word may be a participle: "built", "closed"."""
    return word in _DONE or re.fullmatch(r"[a-z]{3,}ed", word) is not None


def _phrases(parts: Parts) -> list[Phrase]:
    """The phrases of the rest, cut at prepositions and at the verb."""
    phrases: list[Phrase] = []
    begin, after = 0, ""
    for place, word in enumerate((*parts.rest, "of")):
        is_cut = word in _PREPOSITION or place == parts.verb
        if is_cut and place > begin:
            phrases.append(Phrase(begin, place, after))
        if is_cut:
            begin, after = place + 1, word if word in _PREPOSITION else ""
    return phrases


def _head(words: Sequence[str]) -> str:
    """The noun of a phrase: its last word before a preposition."""
    end = next((n for n, word in enumerate(words) if n and word in _PREPOSITION), len(words))
    return words[end - 1].rpartition(_JOINED)[2]


def _with_same_head(topic: Sequence[str], phrases: Sequence[Phrase], parts: Parts) -> Phrase | None:
    """The phrase with the noun of the topic, and with what stands behind it after the topic's own preposition."""
    head = _head(topic)
    own = next((word for word in topic[1:] if word in _PREPOSITION), "")
    for number, phrase in enumerate(phrases):
        if len(topic) < 2 or _head(parts.rest[phrase.begin : phrase.end]) != head:
            continue
        following = phrases[number + 1 : number + 2]
        if own and following and following[0].after == own:
            return Phrase(phrase.begin, following[0].end, phrase.after)
        return phrase
    return None


def _asked_about(topic: Sequence[str], phrases: Sequence[Phrase], parts: Parts, earlier: str) -> Phrase | None:
    """The phrase that a question is about: with its last name, else of what it tells, else its subject. None if it asks
    for yes or no."""
    if not phrases or not parts.opening:
        return None
    if _says_what_it_is(phrases, parts) and topic[0].lower() == "the" and topic[-1].islower():
        return phrases[0]
    names = names_in(earlier)
    if names:
        return _last_with(names[-1].replace(" ", _JOINED), phrases, parts)
    if parts.auxiliary and parts.has_verb:
        subject = [phrase for phrase in phrases if phrase.end <= parts.verb]
        return Phrase(subject[0].begin, subject[-1].end, "") if subject else None
    return phrases[-1] if parts.auxiliary in _BE else phrases[0]


def _says_what_it_is(phrases: Sequence[Phrase], parts: Parts) -> bool:
    """Whether the question asks what something is to something without an article: "What is the mill made of oak?"."""
    has_bare_end = parts.rest[phrases[-1].begin].lower() not in _ARTICLE
    return parts.auxiliary in _BE and not parts.has_verb and len(phrases) > 1 and has_bare_end


def _last_with(name: str, phrases: Sequence[Phrase], parts: Parts) -> Phrase | None:
    named = [phrase for phrase in phrases if name in " ".join(parts.rest[phrase.begin : phrase.end])]
    return named[-1] if named else None


def _put(topic: Sequence[str], phrase: Phrase, parts: Parts) -> str:
    """The question with the topic in the place of the phrase. A name alone replaces the name of "the Oslo office"."""
    old = list(parts.rest[phrase.begin : phrase.end])
    has_article = old[0].lower() in _ARTICLE
    is_bare_name = topic[0].lower() not in _ARTICLE and all(word[:1].isupper() for word in topic)
    nouns = [word for word in old[1:] if word.islower()]
    name = next((n for n, word in enumerate(old) if word[:1].isupper()), None)
    if is_bare_name and nouns and name is not None:
        last = max(n for n, word in enumerate(old) if word[:1].isupper())
        new = [*old[:name], *topic, *old[last + 1 :]]
    elif has_article and (_is_plural(topic) or _is_modified(topic, old)) and topic[0].lower() not in _ARTICLE:
        new = [old[0], *topic]
    else:
        new = list(topic)
    rest = (*parts.rest[: phrase.begin], *new, *parts.rest[phrase.end :])
    words = (*parts.opening, parts.auxiliary, *rest) if parts.auxiliary else (*parts.opening, *rest)
    return f"{' '.join(words).replace(_JOINED, ' ')}?"


def _is_plural(topic: Sequence[str]) -> bool:
    word = topic[0]
    return len(topic) == 1 and word[:1].isupper() and word.endswith("s") and not word.endswith("ss")


def _is_modified(topic: Sequence[str], old: Sequence[str]) -> bool:
    return len(topic) > 1 and _head(topic) == _head(old)


def _other_day(topic: str, place: str, earlier: str) -> str:
    """The earlier question on another day, in another month or season, of one that names one of these; else ""."""
    day = _CALENDAR.fullmatch(f"{place} {topic}".strip())
    if day is None:
        return ""
    for match in _CALENDAR.finditer(earlier):
        if _sort_of_day(match[1]) == _sort_of_day(day[1]):
            return earlier[: match.start(1)] + day[1] + earlier[match.end(1) :]
    return ""


def _other_in_order(topic: str, earlier: str) -> str:
    """The earlier question with "the second" in the place of "the first"; "" if it names no place in an order."""
    other = _ORDER.fullmatch(topic.removeprefix("the ").removesuffix(" one"))
    return _ORDER.sub(other[0], earlier, count=1) if other and _ORDER.search(earlier) else ""


def _sort_of_day(word: str) -> str:
    word = word.lower()
    if word[0].isdigit():
        return "year"
    if word.rstrip("s").endswith("day") or word.startswith("weekend"):
        return "day"
    return "season" if word in ("spring", "summer", "autumn", "winter") else "month"


def _name_in(answer: str) -> str:
    """The name that an answer begins with, or all of which it is; "" if it is none."""
    first = re.split(r"[.;\n]", answer.strip(), maxsplit=1)[0].strip()
    is_name = 0 < len(first.split()) <= _LONGEST_NAME and all(
        word[:1].isupper() or word in ("of", "de", "van", "von", "the", "and") for word in first.split()
    )
    return first if is_name else ""


def _base_of_present(verb: str) -> str:
    """ "repair" of "repairs"; "" if it may be no verb of the third person."""
    if verb in DOES:
        return DOES[verb]
    if not re.fullmatch(r"[a-z]{2,}s", verb) or verb.endswith("ss"):
        return ""
    if verb.endswith("ies"):
        return f"{verb[:-3]}y"
    return re.sub(r"(?<=ss|sh|ch)es$|(?<=[xzo])es$|s$", "", verb)
