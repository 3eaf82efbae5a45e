"""Finds the one value that a question asks for in a sentence: who, which, when, where, how many or how much; a yes or a
no.

A value is given only if the sentence has every word of the question and one value of its kind. Whatever is asked
otherwise is answered by the sentence alone.
"""

import re
from collections.abc import Collection, Iterator

from kraq_dspy.embedded.meaning import Keys, is_in, is_light, vocabulary_of, words_of
from kraq_dspy.embedded.names import DEFINITION, PERSON, kind_of, names_in
from kraq_dspy.language.vocabulary import MONTH, NO_NAMES

DATE = re.compile(
    rf"\b(?:\d{{1,2}} )?{MONTH}(?: \d{{1,2}})?(?:,? \d{{4}})?\b|\b\d{{4}}-\d\d-\d\d\b|\b(?:1[0-9]|20)\d\d\b"
)
YEAR = re.compile(r"\b(?:1[0-9]|20)\d\d\b")
BRACKETED = re.compile(r" \([^()]*\)$")
"""What tells two titles of one name apart."""
CLOSED = re.compile(
    r"(?:is|are|was|were|do|does|did|has|have|had|can|could|will|would|may|might|must|should)\b", re.IGNORECASE
)
"""How a question begins that wants a yes or a no."""
FEW, MOST = 3, 0.6
"""Words of a question that a sentence has to have all; of more, the share that it has."""

_NUMBER = re.compile(
    r"(?:(?<![\w.,–-])\d{1,3}(?:,\d{3})+(?![\d,])|(?<![\w.,–-])\d++(?:\.\d+)?+(?![\w.,–-]\d|%))"
    r"(?: [mb]illion)?"
    r"|\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty|forty|fifty)\b(?!-)"
)
_NEAR = 4  # words from a number to what it counts
_KINDS = {
    "year": (r"\b(?:what|which) year\b", YEAR),
    "date": (r"(?:^|[,;] )when\b|\b(?:what|which) (?:date|day|month)\b", DATE),
    "number": (r"\bhow many (?P<thing>[\w-]+)", _NUMBER),
    "age": (r"\bhow old\b", re.compile(r"(?<=\bage )\d+\b|(?<=\baged )\d+\b|\b\d+(?=[ -]years?[ -]old\b)")),
    "share": (r"\bpercent", re.compile(r"(?<![\w.,])\d[\d.,]*(?:%| per ?cent\b)")),
    "price": (
        r"(?<!by )\bhow much\b|\b(?:cost|price|fee)\b",
        re.compile(r"[$€£]\d[\d.,]*(?: [mb]illion)?|(?<![\w.,])\d[\d.,]* (?:euros?|dollars|pounds|crowns)\b"),
    ),
    "person": (r"(?:^|[,;] )who(?:m|se)?\b", None),
    "place": (r"(?:^|[,;] )where\b", None),
    "thing": (r"\b(?:what|which)(?: (?:is|was) the name of the)? (?P<thing>(?:[\w'-]+ ){1,5})", None),
}
"""How each kind is asked for, and what its values look like; names are no pattern. The first that fits counts."""
DATED = frozenset(("year", "date"))
_BESIDE = DATED | {"person", "place"}
"""Of several values, the one beside a word of the question is meant."""
_ASKING = frozenset(
    ("year", "date", "day", "month", "many", "temperature", "cost", "costs", "price", "fee", "earn", "weigh")
)
"""What only asks for a value: the value says it."""
_HOW = re.compile(r"\bhow (?:many|much|long|far|large|big|old)\b", re.IGNORECASE)
_LIMIT = re.compile(
    r"\b(?:first|second|third|last|next|before|after|until|since|except|without|only|total|all|another|other|if|again"
    r"|to be)\b",
    re.IGNORECASE,
)
"""What a sentence has to say as well if the question does."""
_BETWEEN = frozenset(("by", "in", "on", "at", "to", "the", "is", "was", "as", "has", "had", "first", "also", "since"))
"""Words that may stand between a value and the word of the question beside it."""
NOT = re.compile(r"\b(?:not|never|no|none|nobody|neither|nor|cannot|without)\b|n[’']t\b", re.IGNORECASE)
_LEADS_UP = re.compile(
    r"\b(?:before|after|by|between|until|since|about|over|under|than|nearly|almost) $", re.IGNORECASE
)
"""What stands before a value that is not the value itself."""
_OPEN = re.compile(
    r"[,;]|\b(?:if|unless|except|until|but|although|though|however|while|or|only|may|might|could|would|should|perhaps"
    r"|probably|likely|claim\w*|plan(?:s|ned)?|propos\w*|intend\w*|expect\w*|almost|nearly|some|once|formerly|said|says|believ\w*"
    r"|few|little|hardly|rather|instead|fail\w*|den(?:y|ies|ied)|refus\w*|ban(?:s|ned)?|forbid\w*|forbidden|prohibit\w*)\b",
    re.IGNORECASE,
)
"""What leaves open whether it is so, or for which part."""


def value_in(question: str, sentence: str, above: str = "", kinds: Collection[str] = _KINDS.keys()) -> str:
    """The only value that the sentence has of the kind that the question asks for; "" for none and for several.

    `above` is the title of the sentence's passage and what else it goes on from; `kinds` are those that may be given.

    >>> value_in("When did Ada Bell leave Orr?", "Ada Bell left Orr on 3 May 1911.")
    '3 May 1911'
    >>> value_in("Who left Orr?", "Ada Bell and Ida Berg left Orr.")
    ''
    >>> value_in("Which mill is on the Orr?", "Lind Mill is an old mill on the Orr.")
    'Lind Mill'
    """
    kind, thing = _asked_kind(question)
    if kind not in kinds or not _has_limits(question, f"{above} {sentence}") or not says_all(question, sentence, above):
        return ""
    if bool(NOT.search(sentence)) != bool(NOT.search(question)):
        return ""

    values = dict.fromkeys(_values(kind, thing, question, sentence, above))
    others = [value for value in values if not value or value.casefold() not in question.casefold()]
    if len(others) > 1 and kind in _BESIDE:
        beside = [value for value in others if value and _touches(value, question, sentence)]
        others = [] if any(_is_joined(one, other, sentence) for one in beside for other in others) else beside
    return others[0] if len(others) == 1 else ""


def verdict_in(question: str, sentence: str, above: str = "") -> str:
    """ "yes" if the sentence says all of the question, "no" if it says so with one "not"; "" if it leaves that open.

    >>> verdict_in("Does the ferry sail on Sunday?", "The ferry does not sail on Sunday.")
    'no'
    """
    if _OPEN.search(sentence) or _LIMIT.search(question) or not says_all(question, sentence, above):
        return ""
    names = names_in(f"· {question.partition(' ')[2]}")
    places = [sentence.find(name) for name in names]
    if places != sorted(places) or NOT.search(question):
        return ""  # who beat whom is not told by names alone
    n_told = len(NOT.findall(sentence))
    return {0: "yes", 1: "no"}.get(n_told, "")


def says_all(question: str, sentence: str, above: str = "") -> bool:
    """Whether a sentence and what stands above it have the telling words of the question: all of few, most of many."""
    own = vocabulary_of(sentence) | vocabulary_of(above)
    needed = needed_words(question)
    count = sum(is_in(keys, own) for keys in needed)
    return count == len(needed) > 0 if len(needed) <= FEW else count >= MOST * len(needed)


def needed_words(question: str) -> list[Keys]:
    """The keys of the words that say what a question is about."""
    return [
        word.keys
        for word in words_of(_HOW.sub("·", question))
        if word.text.lower() not in _ASKING and not (word.text.islower() and is_light(word.text))
    ]


def _touches(value: str, question: str, sentence: str) -> bool:
    """Whether a word of the question, which is no name, stands beside the value: "directed by Tim Burton"."""
    asked = [word.keys for word in words_of(question) if word.text.islower() and not is_light(word.text)]
    before, _, behind = sentence.partition(value)
    ahead = [word for word in re.findall(r"\w+", before.rpartition(",")[2]) if word not in _BETWEEN][-1:]
    after = [word for word in re.findall(r"\w+", behind.partition(",")[0]) if word not in _BETWEEN][:1]
    beside = [vocabulary_of(word) for word in (*ahead, *after)]
    return any(is_in(keys, own) for keys in asked for own in beside)


def _is_joined(one: str, other: str, sentence: str) -> bool:
    """Whether both are said at once: "Ada Bell and Ida Berg"."""
    pairs = ((one, other), (other, one)) if other else ()
    return any(f"{a}{by}{b}" in sentence for a, b in pairs for by in (" and ", " or ", ", and ", ", or "))


def _asked_kind(question: str) -> tuple[str, str]:
    """The kind of value that is asked for, and what is counted; empty for a question of another form."""
    for kind, (asked, _) in _KINDS.items():
        if match := re.search(asked, question, re.IGNORECASE):
            return kind, match.groupdict().get("thing") or ""
    return "", ""


def _has_limits(question: str, told: str) -> bool:
    limits = {limit.lower() for limit in _LIMIT.findall(question)}
    return limits <= {limit.lower() for limit in _LIMIT.findall(told)}


def _values(kind: str, thing: str, question: str, sentence: str, above: str) -> Iterator[str]:
    pattern = _KINDS[kind][1]
    if pattern is None:
        yield from _subject(thing, sentence, above) if kind == "thing" else _named(kind, sentence, above)
        return
    for match in pattern.finditer(sentence):
        before, behind = sentence[: match.start()], sentence[match.end() :]
        if kind == "number" and (YEAR.fullmatch(match[0]) or _counts_other(thing, behind)):
            continue
        leads_up = _LEADS_UP.search(before)
        is_it = leads_up is None or leads_up[0] in question
        yield match[0] if is_it and (kind != "number" or _counts(thing, behind)) else ""


def _counts_other(thing: str, behind: str) -> bool:
    """Whether a number counts something else: "49 miles", but not "65 in Emden"."""
    counted = re.match(r" [a-z]+", behind)
    return counted is not None and bool(vocabulary_of(counted[0])) and not _counts(thing, behind)


def _counts(thing: str, behind: str) -> bool:
    counted = vocabulary_of(" ".join(behind.split()[:_NEAR]))
    return all(is_in(word.keys, counted) for word in words_of(f"· {thing}"))


def _subject(thing: str, sentence: str, above: str) -> Iterator[str]:
    """What a sentence is about, if it says that this is a thing as the question asks for: "which church"."""
    names = [BRACKETED.sub("", above.partition("\n")[0]), *names_in(sentence)[:1]]
    subject = next((name for name in names if name and sentence.startswith(name.split()[0])), "")
    stated = DEFINITION.search(sentence[len(subject) :]) if subject else None
    kinds = [word.keys for word in words_of(thing) if word.text.islower() and not is_light(word.text)]
    if stated and any(is_in(kind, vocabulary_of(stated[1])) for kind in kinds):
        yield subject


def _named(kind: str, sentence: str, above: str) -> Iterator[str]:
    """The names of people or places in the sentence, and in its title what may be one of a person."""
    title = BRACKETED.sub("", above.partition("\n")[0])
    if kind == "person" and PERSON.fullmatch(title):
        yield title
    for name in names_in(sentence):
        bare = BRACKETED.sub("", name)
        is_nation = not NO_NAMES.isdisjoint(re.split(r"[\s-]", bare))
        if not is_nation and kind_of(bare, sentence) == kind and (kind == "place" or " " in bare):
            yield bare
