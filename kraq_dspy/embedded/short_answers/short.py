"""Gives the short answer that a sentence has for a question, or none: a sentence alone is never false.

A value is given if it is of the kind that is asked for, its clause has every word of the question that bears meaning,
and no condition of the question ("last", "after", "not") is missing in the sentence.
"""

import re
from collections.abc import Sequence

from kraq_dspy.embedded.names import PERSON, kind_of, names_in
from kraq_dspy.embedded.short_answers.clauses import chosen
from kraq_dspy.embedded.short_answers.meaning import Word, is_in, keys_of, vocabulary_of, words_of
from kraq_dspy.embedded.short_answers.question import Asked, counts, says_not
from kraq_dspy.embedded.short_answers.sense import sense_of
from kraq_dspy.embedded.short_answers.values import YEAR, Value, enumerated, values_in
from kraq_dspy.language.vocabulary import NO_NAMES, PEOPLE

BRACKETED = re.compile(r" \([^()]*\)$")
"""What tells two titles of one name apart."""
_ORDERS = frozenset(("before", "after", "until", "till", "since", "except", "without", "not", "last", "total"))
"""Conditions that two sentences have to have as well; "first" and "another" tell of which thing a question is."""
_MANY_WORDS = 4  # of a question of two steps, which a value that stands alone answers
_NEAR = 3  # words from a number to what it counts
_SMALL_BEHIND = re.compile(r"\s*(?:$|[,;.)]|(?:in|at|on|for|of them|by|to|from|and|but|or|were|was|are|is)\b)")
_NAMED_AS = re.compile(r"[.,;:!?]")
_HINTS = re.compile(
    r"\b(?:about|around|nearly|almost|over|under|up to|at least|at most|more than|less than|fewer than|between)\s*$",
    re.IGNORECASE,
)
_BEFORE_OR_AFTER = re.compile(
    r"\b(?:(?:shortly|just|soon|long|well|some time) )?(?:before|after|by|between)\s*$", re.IGNORECASE
)
"""What stands before a date that is not the date itself."""
_APART = re.compile(r"\b(?:minute|hour|day|week|month|year|decade|centur(?:y|ie))s? (?:before|after)\s*$")
"""What counts from a date: "two days after 3 May"."""


def short_answer_in(asked: Asked, sentence: str, above: str, title: str) -> str:
    """The short answer of a sentence, whole with its unit; "" if the sentence does not plainly say it.

    `above` is what the sentence goes on from: its title, its heading, the sentence before.
    """
    if not asked.kinds or not _meets(asked, sentence, above):
        return ""

    values = _values(asked, sentence, title)
    if not values:
        return ""
    own = vocabulary_of(sentence)
    held = [word.keys for word in words_of(f"· {above}") if not is_in(word.keys, own)]
    held += [word.keys for word in words_of(f"· {title}")]
    value = chosen(sentence, values, _needed(asked, sentence), held, of_person="person" in asked.kinds)
    if value is None:
        return ""
    before = sentence[: value.start]
    bound = _BEFORE_OR_AFTER.search(before) if value.kind in ("date", "clock") else None
    if _APART.search(before) or (bound is not None and "year" in asked.kinds):
        return ""
    if "year" in asked.kinds:
        years = YEAR.findall(value.text)
        return years[0] if len(years) == 1 else ""
    hint = bound or _HINTS.search(before)
    return f"{hint[0].strip()} {value.text}" if hint else value.text


def only_value(asked: Asked, chain: Sequence[tuple[str, str]]) -> str:
    """The only value of the asked kinds that sentences, each with its title, have together; "" for none and several."""
    if not asked.kinds or len(asked.words) < _MANY_WORDS or any(says_not(sentence) for sentence, _ in chain):
        return ""
    lowered = " ".join(f"{title} {sentence}" for sentence, title in chain).lower()
    if any(not re.search(rf"\b{limit}\b", lowered) for limit in asked.limits & _ORDERS):
        return ""

    texts = _texts_of_values(asked, chain)
    if "year" in asked.kinds:
        texts = list(dict.fromkeys(year for text in texts for year in YEAR.findall(text)))
    return texts[0] if len(texts) == 1 else ""


def _texts_of_values(asked: Asked, chain: Sequence[tuple[str, str]]) -> list[str]:
    """The values of the asked kinds, each once in any case. A title that is a name is one of a person."""
    texts: dict[str, str] = {}
    for sentence, title in chain:
        texts.update({value.text.lower(): value.text for value in _values(asked, sentence, title)})
        is_person = "person" in asked.kinds and PERSON.fullmatch(title) is not None
        if is_person and title.lower() not in asked.question.lower():
            texts[title.lower()] = title
    return list(texts.values())


def _meets(asked: Asked, sentence: str, above: str) -> bool:
    """Whether the sentence has the conditions of the question, and denies nothing that the question does not."""
    lowered = f"{above} {sentence}".lower()
    limits = asked.limits - {"not"}
    if any(not re.search(rf"\b{limit}\b", lowered) for limit in limits):
        return False
    if says_not(sentence) != ("not" in asked.limits):
        return False
    return all(name.lower() in lowered or _is_told(name, lowered) for name in asked.names)


def _is_told(name: str, lowered: str) -> bool:
    """Whether a word of a name is there, or half of its words where it has three or more."""
    words = re.findall(r"\w+", name.lower())
    n_told = sum(re.search(rf"\b{word}\b", lowered) is not None for word in words)
    return n_told >= (len(words) / 2 if len(words) > 2 else 1)


def _needed(asked: Asked, sentence: str) -> list[Word]:
    """The words of the question that a clause has to have, without those that a value says by itself."""
    said, sense = vocabulary_of(sentence), sense_of(sentence)
    return [word for word in asked.words if is_in(word.keys, said) or not is_in(word.keys, sense)]


def _values(asked: Asked, sentence: str, title: str) -> list[Value]:
    """The values of the asked kinds in order, those of the question left out, listed ones as one."""
    if "person" in asked.kinds or "place" in asked.kinds:
        return enumerated(sentence, _named(asked, sentence, title))

    every = values_in(sentence)
    if "year" in asked.kinds:
        return [
            value
            for value in every
            if value.kind == "date" and YEAR.search(value.text) and value.text not in asked.question
        ]
    if "number" in asked.kinds and asked.thing:
        return _counted(asked, sentence, every)

    own = [value for value in every if value.kind in asked.kinds and value.text not in asked.question]
    if asked.thing and asked.kinds != ("power",):
        own = [value for value in own if _is_of(asked.thing, sentence, value)]
    return enumerated(sentence, own)


def _counted(asked: Asked, sentence: str, every: Sequence[Value]) -> list[Value]:
    """Numbers of the things that are counted, and those behind them that leave the thing out: "and 65 in Emden"."""
    numbers = [value for value in every if value.kind == "number" and value.text not in asked.question]
    if asked.thing == "population":
        return numbers
    plain = [value for value in numbers if counts_here(asked.thing, sentence, value)]
    if not plain:
        return []
    others = [
        value
        for value in numbers
        if value not in plain and value.start > plain[0].start and _SMALL_BEHIND.match(sentence, value.end)
    ]
    return sorted([*plain, *others], key=lambda value: value.start)


def counts_here(thing: str, sentence: str, value: Value) -> bool:
    """Whether the thing stands behind the number, with no mark between them."""
    behind = _NAMED_AS.split(sentence[value.end :])[0].split()[:_NEAR]
    words = [word.strip("“”\"'’()").lower() for word in behind]
    for word in words:
        if word in ("and", "or", "in", "at", "on", "from", "to", "by", "for", "with"):
            return False
        if counts(thing, word):
            return True
    return False


def _is_of(thing: str, sentence: str, value: Value) -> bool:
    """Whether a quantity is one of the thing: "250g of barley", "barley: 250g"."""
    keys = keys_of(thing)
    behind = re.split(r"[,;.]", sentence[value.end :])[0].split()[:_NEAR]
    for word in behind:
        if word.lower() in ("and", "or", "in", "at", "for", "with", "to"):
            break
        if not keys.isdisjoint(keys_of(word.lower())):
            return True
    before = re.findall(r"[\w’'-]+", sentence[: value.start])[-1:]
    return bool(before) and not keys.isdisjoint(keys_of(before[0].lower()))


def _named(asked: Asked, sentence: str, title: str) -> list[Value]:
    """The people or the places that the sentence names and the question does not."""
    kind = "person" if "person" in asked.kinds else "place"
    lowered = asked.question.lower()
    found: list[Value] = []
    place = 0
    for name in names_in(sentence, frozenset((title,)) if title else frozenset()):
        start = sentence.find(name, place)
        start = start if start >= 0 else sentence.find(name)
        if start < 0:
            continue
        place = start
        if kind == "person" and (office := _TITLED.search(sentence[:start])):
            name = f"{office[0]}{name}"
            start -= len(office[0])
        bare_name = BRACKETED.sub("", name)
        is_asked = bare_name.lower() in lowered or not NO_NAMES.isdisjoint(re.split(r"[\s-]", bare_name))
        if not is_asked and _is_of_kind(kind, bare_name, sentence):
            found.append(Value(kind, name, start, start + len(name)))
    return found


_TITLED = re.compile(r"(?:^|(?<=\W))(?:Mr|Mrs|Ms|Dr|Prof|Sir|Lady|Lord|Miss|Rev|Capt|Col|Gen)\b\.? $")
_BEGINS_TITLED = re.compile(r"(?:Mr|Mrs|Ms|Dr|Prof|Sir|Lady|Lord|Miss|Rev|Capt|Col|Gen)\b\.? ")


def _is_of_kind(kind: str, name: str, sentence: str) -> bool:
    first, _, others = name.partition(" ")
    bare = others if first.lower() in PEOPLE else name
    if kind == "person" and _BEGINS_TITLED.match(name):
        return True
    return kind_of(bare, sentence) == kind and (kind == "place" or " " in name)


def sizes_in(kind: str, name: str, question: str, sentence: str) -> list[float]:
    """The sizes of the values of a kind that a sentence tells of a name: years of dates, base units of measures."""
    every = [value for value in values_in(sentence) if value.kind == kind and value.size is not None]
    if kind == "date":
        return [value.size for value in every if value.size is not None and value.size >= 1000]
    if len(every) > 1:
        asked = words_of(f"· {name}")
        conditions = [word for word in words_of(question) if is_in(word.keys, vocabulary_of(sentence))]
        one = chosen(sentence, every, [*asked, *conditions], [])
        every = [one] if one else []
    return [value.size for value in every if value.size is not None]
