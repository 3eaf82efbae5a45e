"""Asks questions of German statements: the part that answers is taken out, and the verb follows the word that asks.

In a German main clause the finite verb is the second part, whatever the first one is. So "Der Hafen wurde 1904 in Ulm
gebaut." is asked as "Wann wurde der Hafen in Ulm gebaut?", without a word being bent.
"""

import re
from collections.abc import Iterator, Sequence

from kraq_dspy.embedded.asking.clozes.cloze import (
    DEFINITION,
    YEAR,
    Cloze,
    any_of,
    has_another_year,
    is_person,
    joined,
    without,
    words_of,
)
from kraq_dspy.embedded.asking.clozes.german_clause import (
    ABOUT,
    ARTICLES,
    DETERMINERS,
    IS_NAME,
    POINTS,
    PREPOSITIONS,
    STATES,
    Clause,
    clause_in,
    ends_like_participle,
    in_sentence,
)

_POSSESSIVE, _PARTITIVE = words_of("de", "possessive"), words_of("de", "partitive")
_OF_THINGS, _LOCATED = words_of("de", "of_things"), words_of("de", "located")
_PLACES = words_of("de", "places")
_PASSIVE = frozenset(("wurde", "wurden", "wird", "werden"))
_NAME = r"[A-ZÄÖÜ][\w’'-]{0,40}"
_BARE_SUPERLATIVE = re.compile(r"\b(?:der|die|das|den|dem) [a-zäöüß]{1,30}ste[nrs]?(?= [a-zäöü]|$)")
_LONGEST_DEFINED = 5  # words
_LENGTH = range(3, 24)  # words of a question
_MONTH = any_of(words_of("de", "months"))
_DAY = rf"\d{{1,2}}\. (?:{_MONTH})(?: {YEAR})?"
_DATE = re.compile(
    rf"(?<![\w.])(?P<span>[Zz]wischen {YEAR} und {YEAR}|[Vv]on {YEAR} bis {YEAR})"
    r"|(?<![\w.])(?:(?P<lead>[Ss]eit|[Bb]is|[Aa]b|[Aa]m|[Ii]m|[Uu]m) (?:zum |dem )?)?(?:Jahre? )?"
    rf"(?P<date>(?:(?:Anfang|Mitte|Ende) )?(?:{_DAY}|(?:(?:{_MONTH}) )?{YEAR}))(?![\w.–-]|er\b)"
)
_ASKS_WHEN = {"seit": "Seit wann", "bis": "Bis wann", "ab": "Ab wann"}
_NAMED_BEFORE = re.compile(rf"{_NAME} $")
_UNIT = any_of(words_of("de", "units"))
_NUMBER = re.compile(
    r"(?<![\w.,:–-])(?:(?P<preposition>mit|aus|bei|nach|von|in|auf|für|über|durch|gegen|um) )?"
    rf"(?:(?P<about>(?i:{ABOUT})) )?"
    rf"(?P<number>(?:\d{{1,3}}(?:[. ]\d{{3}}){{1,4}}|\d{{1,9}}(?:,\d{{1,4}})?|{any_of(words_of('de', 'numbers'))})"
    r"(?: Millionen| Milliarden)?)"
    rf"(?P<counted> (?:{_UNIT})(?![\w-])|(?: [a-zäöüß]{{1,30}}en?)? [A-ZÄÖÜ][a-zäöüß-]{{1,40}}(?:n|e|er|s|el)\b)"
)
_WITH_DATIVE = frozenset(("mit", "aus", "bei", "nach", "von", "in", "auf"))
_IS_PART = re.compile(r" (?:und|bis|oder|von|der|des|eines|einer|lang|alt|[A-ZÄÖÜ]|×)")
"""What follows a number of which it is only a part."""
_LED_UP = re.compile(rf"(?:\b(?:alle|[a-zäöüß]{{1,30}}en)|\b{_NAME}|\d (?:und|oder)|\d [–-]) $")
"""What stands before a number that is no count of its own: "alle fünf Jahre", "Level 3", "zwischen 2 und"."""
_UNCLEAR = re.compile(r"±")
_DENIES = re.compile(r"\b(?:nicht|nie|niemals|weder|keine?[nrms]?)\b")
_DAY_BEFORE = re.compile(r"\d\.? ?(?:und |oder |bis |[–/-] ?)?$")
"""What stands before the second of two days: "vom 3. bis 5. Mai"."""
_PREDICATE = re.compile(r"(?P<what>(?:ein|eine|einer|das|die|der) .+)")
_ONE_OF_SEVERAL = re.compile(
    r"(?P<article>Der|Die|Das) (?:(?P<kind>[a-zäöüß-]{1,30}e) )?(?P<noun>[A-ZÄÖÜ][\w-]{1,40})"
    rf" (?:(?:der|des|von|für|in|im|am|an|aus|zur|zum|gegen|über|mit|auf) .+|(?P<named>{_NAME} [A-ZÄÖÜ].+))"
)
_FEWEST_TOLD = 3  # words
_BEGIN_TIME_OR_PLACE = frozenset(("Im", "In", "Am", "Beim", "Nach", "Vor", "Bei", "Während", "Ab", "Seit", "Um"))
_LONGEST_NAMED = 5  # words of a thing that a description is said to be
_SOMEBODY = re.compile(
    rf"(?:der |die )?(?:[a-zäöüß]{{1,30}}e )?(?:[A-ZÄÖÜ][\w-]{{1,40}} )?"
    rf"(?P<name>{_NAME} (?:(?:von|van|de|der) )?{_NAME})(?= [a-zäöü])"
)
_SECOND_NOUN = re.compile(rf"{_NAME} (?:ein|eine|einer|der|die|das)\b")
_OF_DOING = re.compile(r"(?:ung|heit|keit|schaft|tion|tät|ismus|ik|tum|ment)$")
"""Endings of nouns that name no person and no one of several things."""
_IN = re.compile(rf" (?:in|bei|nahe) (?P<place>{_NAME})(?![\w-]| [A-ZÄÖÜ]| und | oder | a[amn]n? | de |,)")
_SECOND_PLACE = re.compile(r"(?<!\w)(?:und|oder|später|dann|danach|zuletzt|schließlich)$")
"""What stands before a place that follows another one."""
_PLACE_ENDING = re.compile(rf"^[A-ZÄÖÜ]\w{{2,40}}(?:{any_of(words_of('de', 'place_endings'))})$")
_BY = re.compile(rf" (?:von|durch) (?P<name>{_NAME}(?: (?:von|van|de|der|zu)| {_NAME}){{1,3}})(?= |$)")
_BY_A_NAMED = re.compile(
    rf" (?:von|durch) (?P<name>(?:der|dem|den) (?:[a-zäöü]{{1,30}}en )?{_NAME}(?: {_NAME}){{0,3}})"
    r"(?= [a-zäöüß]{3,30}(?:t|en)$)"
)
"""Who did something, right before the participle."""
_CALLED = re.compile(rf"(?:als )?(?P<name>{_NAME}(?: {_NAME}){{0,3}}) (?P<done>genannt|bezeichnet)")
_WHERE = re.compile(
    r"(?P<reflexive>sich )?"
    r"(?P<place>(?:in|im|an|am|auf|bei|nahe|neben|zwischen|unter|über|vor|südlich|nördlich|östlich|westlich) [^,;]+)"
)
_LONGEST_PLACE = 9  # words
_THING = re.compile(
    rf"(?P<thing>(?:(?:eine|ein|das|die|den|einen) )?(?:[a-zäöüß]{{1,30}}e[nrs]? )?{_NAME}"
    r"(?: (?:der|des|von|für) [^,;]+)?)"
)
_TOLD_APART = re.compile(
    rf"{_NAME} {_NAME}|\b{YEAR}\b|[„“\"»]|\b[A-ZÄÖÜ]\w{{0,30}}[A-ZÄÖÜ]|\b[A-ZÄÖÜ][a-zäöüß-]{{9,40}}|\b\d{{3}}"
    r"|\b(?:von|in|auf|nach|aus|bei|gegen|für) [A-ZÄÖÜ]\w{3}"
)
"""What tells one thing from others of its kind: two words with capitals, a year, a quotation, a long compound."""
_PRONOUN = re.compile(r"^(?:Er|Sie|Es)(?= [a-zäöü]{1,30}[te]\b)")


def asked_of(sentence: str, title: str = "") -> list[Cloze]:
    """The questions that a German sentence answers; none for one that points to others.

    With a `title`, "er", "sie" or "es" at its beginning is what the title names.

    >>> [cloze.question for cloze in asked_of("Der Fährbetrieb wurde am 5. Mai 1934 eingestellt.")]
    ['Wann wurde der Fährbetrieb eingestellt?']
    """
    clause = clause_in(_PRONOUN.sub(title, sentence) if title else sentence)
    if clause is None or _points_by_possessive(clause) or _DENIES.search(f"{clause.first} {clause.rest}"):
        return []
    clozes: list[Cloze] = []
    for asking in (_when, _how_many, _where, _located, _by_whom, _called, _object, _which, _defined, _who, _what):
        clozes += asking(clause)
    return [cloze for cloze in clozes if _stands_alone(cloze, is_named=clause.is_named)]


def _points_by_possessive(clause: Clause) -> bool:
    """Whether "sein" or "ihr" belongs to somebody whom another sentence names."""
    has_subject = clause.is_named or clause.first.startswith(tuple(ARTICLES))
    is_in_first = not _POSSESSIVE.isdisjoint(clause.first.lower().split())
    return is_in_first or (not has_subject and not _POSSESSIVE.isdisjoint(clause.rest.split()))


def _when(clause: Clause) -> Iterator[Cloze]:
    dates = list(_DATE.finditer(clause.first)) + [
        match for match in _DATE.finditer(clause.rest) if not _is_of_name(clause.rest, match)
    ]
    dates = [match for match in dates if not _follows_article(match.string, match)]
    if len(dates) != 1 or has_another_year(f"{clause.first} {clause.rest}", dates[0][0]):
        return
    match = dates[0]
    if _DAY_BEFORE.search(match.string[: match.start()]):
        return
    asks = _ASKS_WHEN.get((match["lead"] or "").lower(), "Wann")
    is_first = match.string == clause.first
    if is_first and match[0] != clause.first:
        return
    rest = clause.rest if is_first else without(match)
    about = match["lead"] if (match["lead"] or "").lower() == "um" else ""
    answer = joined(about.lower(), match["date"] or match["span"])
    yield Cloze(f"{joined(asks, clause.inverted(rest, first=not is_first))}?", answer, "when")


def _is_of_name(text: str, match: re.Match[str]) -> bool:
    """Whether a bare year belongs to the name before it: "Olympia 1936"."""
    is_bare = match["lead"] is None and re.fullmatch(YEAR, match[0]) is not None
    return is_bare and _NAMED_BEFORE.search(text[: match.start()]) is not None


def _how_many(clause: Clause) -> Iterator[Cloze]:
    begun = _NUMBER.match(clause.first)
    if begun is not None and not _is_year(begun) and not begun["preposition"]:
        yield _counted_first(begun, clause)
        return
    numbers = [match for match in _NUMBER.finditer(clause.rest) if not _is_year(match)]
    if len(numbers) != 1 or _NUMBER.search(clause.first):
        return
    match = numbers[0]
    is_led_up = _follows_article(clause.rest, match) or _LED_UP.search(clause.rest[: match.start()])
    if is_led_up or _IS_PART.match(clause.rest, match.end()) or _UNCLEAR.search(clause.rest):
        return

    counted = match["counted"].strip().replace("%", "Prozent")
    is_unit = re.fullmatch(_UNIT, match["counted"].strip()) is not None
    many = "vielen" if match["preposition"] in _WITH_DATIVE else "viele"
    asks = f"wie viel {counted}" if is_unit else f"wie {many} {counted}"
    asks = f"{match['preposition']} {asks}" if match["preposition"] else asks
    inverted = clause.inverted(without(match))
    question = joined(f"{asks[0].upper()}{asks[1:]}", inverted)
    yield Cloze(f"{question}?", _answer(match), "how many")


def _counted_first(match: re.Match[str], clause: Clause) -> Cloze:
    """Ask how many of them did something, where the number begins the statement."""
    is_unit = re.fullmatch(_UNIT, match["counted"].strip()) is not None
    counted = joined("Wie viel" if is_unit else "Wie viele", match["counted"].replace("%", "Prozent"))
    rest_of_first = clause.first[match.end() :]
    return Cloze(f"{joined(counted, rest_of_first, clause.verb, clause.rest)}?", _answer(match), "how many")


def _answer(match: re.Match[str]) -> str:
    about = "" if (match["about"] or "").lower() == "nur" else match["about"] or ""
    return joined(about, match["number"])


def _follows_article(text: str, match: re.Match[str]) -> bool:
    """Whether a word before a number or a date belongs to it: "des 27. Januar", "die drei Söhne"."""
    before = text[: match.start()].split()[-1:]
    return bool(before) and (before[0].lower() in DETERMINERS | PREPOSITIONS or before[0].endswith(","))


def _is_year(match: re.Match[str]) -> bool:
    return re.fullmatch(YEAR, match["number"]) is not None


def _where(clause: Clause) -> Iterator[Cloze]:
    places = [match for match in _IN.finditer(f" {clause.rest}") if _is_place(match["place"])]
    is_state = clause.verb in STATES and not ends_like_participle(clause.rest)
    if len(places) != 1 or is_state or clause.first.startswith(("In ", "Im ", "Bei ")):
        return
    if _SECOND_PLACE.search(places[0].string[: places[0].start()]):
        return
    yield Cloze(f"{joined('Wo', clause.inverted(without(places[0])))}?", places[0]["place"], "where")


def _located(clause: Clause) -> Iterator[Cloze]:
    """Ask where a thing is of which the clause says nothing else."""
    place = _WHERE.fullmatch(clause.rest) if clause.verb in _LOCATED else None
    if place is not None and not _DATE.search(place["place"]) and len(place["place"].split()) <= _LONGEST_PLACE:
        reflexive = "sich " if place["reflexive"] else ""
        yield Cloze(f"{joined('Wo', clause.inverted(reflexive))}?", place["place"], "where")


def _is_place(name: str) -> bool:
    return name in _PLACES or _PLACE_ENDING.match(name) is not None


def _by_whom(clause: Clause) -> Iterator[Cloze]:
    if clause.verb not in _PASSIVE:
        return
    doers = [match for match in _BY.finditer(f" {clause.rest}") if is_person(match["name"].split())]
    doers = doers or list(_BY_A_NAMED.finditer(f" {clause.rest}"))
    if len(doers) == 1:
        rest = without(doers[0])
        yield Cloze(f"{joined('Von wem', clause.inverted(rest))}?", doers[0]["name"], "who")


def _called(clause: Clause) -> Iterator[Cloze]:
    """Ask how a thing is called."""
    called = _CALLED.fullmatch(clause.rest) if clause.verb in _PASSIVE else None
    if called is not None:
        yield Cloze(f"{joined('Wie', clause.verb, in_sentence(clause.first), called['done'])}?", called["name"], "what")
    if clause.verb in ("heißt", "heißen", "hieß") and IS_NAME.fullmatch(clause.rest):
        yield Cloze(f"{joined('Wie', clause.verb, in_sentence(clause.first))}?", clause.rest, "what")


def _object(clause: Clause) -> Iterator[Cloze]:
    """Ask what somebody made or what a thing contains."""
    thing = _THING.fullmatch(clause.rest)
    is_subject = clause.is_named or clause.first.startswith(("Der ", "Die ", "Das ", "Ein ", "Eine "))
    if thing is not None and clause.verb in _OF_THINGS and is_subject and not _DATE.search(clause.rest):
        yield Cloze(f"{joined('Was', clause.verb, in_sentence(clause.first))}?", thing["thing"], "what")


def _is_somebody(clause: Clause) -> bool:
    """Whether the first part is a person, or ends with one's name: "Die Sängerin Lena Berg"."""
    words = clause.first.split()
    return is_person(words) or (words[:1] in (["Der"], ["Die"]) and is_person(words[-2:]))


def _defined(clause: Clause) -> Iterator[Cloze]:
    """Ask who or what something is, which the clause defines or describes."""
    predicate = _PREDICATE.fullmatch(clause.rest) if clause.verb in ("ist", "war") else None
    if predicate is None or ends_like_participle(clause.rest) or _BARE_SUPERLATIVE.search(clause.rest):
        return
    is_who = _is_somebody(clause)
    if _is_defined(clause, is_who=is_who) or (not is_who and _is_described(clause)):
        asks, word = ("Wer", "who") if is_who else ("Was", "what")
        yield Cloze(f"{joined(asks, clause.verb, in_sentence(clause.first))}?", clause.rest, word)


def _is_defined(clause: Clause, *, is_who: bool) -> bool:
    """Whether the first part is a short name, of which the rest says in some words what it is."""
    words = clause.first.split()
    is_adverb = len(words) == 1 and _SECOND_NOUN.search(clause.rest) is not None
    is_name = is_who or _is_thing(words) or IS_NAME.fullmatch(clause.first) is not None
    is_of_length = len(words) <= _LONGEST_DEFINED and len(clause.rest.split()) in DEFINITION
    return is_name and is_of_length and not is_adverb


def _is_described(clause: Clause) -> bool:
    """Whether the first part describes at length what the rest names."""
    words = clause.first.split()
    is_long = len(words) > _LONGEST_DEFINED and words[0] in ARTICLES
    return is_long and len(clause.rest.split()) <= _LONGEST_NAMED


def _is_predicate(clause: Clause) -> bool:
    """Whether the clause says what something is, or was."""
    return clause.verb in ("ist", "war") and _PREDICATE.fullmatch(clause.rest) is not None


def _who(clause: Clause) -> Iterator[Cloze]:
    """Ask who did it: somebody before the verb, or behind it where a time or a place comes first."""
    words = clause.first.split()
    if _is_somebody(clause) and not _is_predicate(clause):
        name = clause.first if is_person(words) else " ".join(words[-2:])
        yield Cloze(f"{joined('Wer', clause.verb, clause.rest)}?", name, "who")
    behind = _SOMEBODY.match(clause.rest)
    is_singular = not clause.verb.endswith("en") and words[:1] and words[0] in _BEGIN_TIME_OR_PLACE
    if behind is not None and is_singular and is_person(behind["name"].split()):
        rest = joined(in_sentence(clause.first), clause.rest[behind.end() :])
        yield Cloze(f"{joined('Wer', clause.verb, rest)}?", behind["name"], "who")


def _what(clause: Clause) -> Iterator[Cloze]:
    """Ask what something was done to, or what is as the clause says."""
    is_thing = _is_thing(clause.first.split()) and _TOLD_APART.search(clause.first) is not None
    is_asked = clause.verb in ("ist", "war", "wird", "wurde") and not _is_predicate(clause)
    if is_thing and is_asked and not _BARE_SUPERLATIVE.search(clause.rest):
        yield Cloze(f"{joined('Was', clause.verb, clause.rest)}?", clause.first, "what")


def _which(clause: Clause) -> Iterator[Cloze]:
    """Ask which of several things it is that its genitive or its preposition tells apart."""
    match = _ONE_OF_SEVERAL.fullmatch(clause.first)
    if match is None or match["noun"] in _PARTITIVE or _OF_DOING.search(match["noun"]):
        return
    is_plural = clause.verb.endswith("en") or clause.verb == "sind"
    if " und " in clause.first or (is_plural and match["article"] != "Die"):
        return
    is_told = _TOLD_APART.search(f"· {clause.rest}") is not None and len(clause.rest.split()) >= _FEWEST_TOLD
    if match["named"] and not is_person(match["named"].split()):
        return
    if is_told and clause.verb not in STATES:
        asks = {"Der": "Welcher", "Die": "Welche", "Das": "Welches"}[match["article"]]
        thing = joined(match["kind"] or "", match["noun"])
        yield Cloze(f"{joined(asks, thing, clause.verb, clause.rest)}?", clause.first, "what")


def _is_thing(words: Sequence[str]) -> bool:
    """Whether the first part is surely no person: a neuter noun, or one of doing or being."""
    if not 2 <= len(words) <= 6 or words[0] not in ("Das", "Die", "Der"):
        return False
    noun = next((word for word in words[1:] if word[:1].isupper()), "")
    is_neuter = words[0] == "Das" and noun not in ("Kind", "Mädchen", "Team", "Mitglied", "Paar", "Opfer", "Volk")
    return bool(noun) and (is_neuter or _OF_DOING.search(noun) is not None)


def _stands_alone(cloze: Cloze, *, is_named: bool) -> bool:
    """Whether a question says what it is about, by a name without an article or by what tells it from others, and its
    answer points to no other sentence ("diesen Typ")."""
    words = re.findall(r"[\w-]+", cloze.question)
    answer = re.findall(r"[\w-]+", cloze.answer)
    if len(words) not in _LENGTH or not POINTS.isdisjoint(word.lower() for word in (*words[1:], *answer)):
        return False
    return is_named or _TOLD_APART.search(cloze.question.partition(" ")[2]) is not None
