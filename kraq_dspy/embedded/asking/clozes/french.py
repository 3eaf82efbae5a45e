"""Asks questions of French statements: "est-ce que" keeps the order of the words, so nothing is inverted or bent.

"Marie Curie est née à Varsovie en 1867." is asked as "Quand est-ce que Marie Curie est née à Varsovie ?".
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from kraq_dspy.embedded.asking.clozes.cloze import (
    DEFINITION,
    IN_BRACKETS,
    YEAR,
    Cloze,
    any_of,
    has_another_year,
    is_person,
    joined,
    without,
    words_of,
)

_POINTS, _OPENS = words_of("fr", "points"), words_of("fr", "opens")
_VERB = any_of(words_of("fr", "auxiliary") | words_of("fr", "finite"))
_CUT = re.compile(
    rf"; | [–—-] | : |, (?=(?:{any_of(words_of('fr', 'subordinate'))})\b)"
    r"|,? (?=(?:qui|dont|où|lorsque|tandis que|alors que)\b)"
    rf"| (?=et (?:{_VERB})\b)"
)
_STATES = re.compile(
    rf"(?P<subject>[^,]{{1,120}}?)(?: (?P<not>n['’e] ?))? ?(?<= )(?P<verb>(?:{_VERB})(?![\w'’-])) (?P<rest>.+)"
)
_MONTH = any_of(words_of("fr", "months"))
_DAY = rf"(?:1er|\d{{1,2}}) (?:{_MONTH})(?: {YEAR})?"
_DATE = re.compile(
    rf"(?<![\w'’])(?P<lead>[Dd]epuis|[Jj]usqu['’]en|[Ee]n|[Ll]e|[Dd]ès|[Ee]ntre) "
    rf"(?P<date>(?:{_DAY}|(?:(?:{_MONTH}) )?{YEAR})(?: et (?:{_DAY}|(?:(?:{_MONTH}) )?{YEAR}))?)(?![\w-])"
)
_ASKS_WHEN = {"depuis": "Depuis quand", "jusqu'en": "Jusqu'à quand", "jusqu’en": "Jusqu'à quand", "dès": "Dès quand"}
_NUMBER = re.compile(
    rf"(?<![\w.,'’-])(?:(?P<about>environ|près de|plus de|moins de|presque) )?"
    rf"(?P<number>\d{{1,3}}(?:[  .]\d{{3}}){{1,4}}|\d{{1,9}}(?:,\d{{1,4}})?|{any_of(words_of('fr', 'numbers'))})"
    r"(?: (?P<million>millions|milliards) de)?"
    r" (?P<counted>[a-zàâçéèêëîïôûùüœ]{3,30}s|kilomètres|mètres|ans|mois|euros)\b"
)
_PLACE = re.compile(
    r" (?:à (?P<place>[A-ZÀÉÈÎ][\w'’-]+)(?![\w'’-]| [A-ZÀÉÈÎ])"
    r"|dans (?P<area>(?:le|la|les) [^,]{0,60}[A-ZÀÉÈÎ][\w'’-]{1,40})$)"
)
_DONE = re.compile(
    r"\b(?:né|née|mort|morte|construite?|fondée?|située?|vécu|vit|installée?|inhumée?|fabriquée?|produite?|élevée?|signée?"
    r"|exposée?|conservée?|tournée?)\b"
)
"""What was done to somebody or something, of which the place may be asked."""
_ONE_OF_SEVERAL = re.compile(
    r"(?P<article>Le|La) (?P<noun>[a-zàâçéèêëîïôûùüœ-]+) (?:de|du|d['’]|des) ?(?P<name>[A-ZÀÉÈÎ].*)"
)
_NAME = r"[A-ZÉ][\w'’-]{1,40}"
_BY = re.compile(rf" par (?P<name>{_NAME}(?: (?:de|du|d['’]|la)| {_NAME}){{1,3}})(?= |$)")
_PREDICATE = re.compile(r"(?P<what>(?!l[ea]s? (?:plus|moins) )(?:un|une|le|la|l['’]|des) ?[^,;]+)")
_BEFORE_NUMBER = re.compile(r"(?:\b(?:les|des|ces|ses|de|aux|du|ans|chaque|en|à|par)|,) $")
_SMALL_INSIDE = re.compile(rf"^(?:(?:Le|La|Les|Un|Une|Des|(?i:{any_of(words_of('fr', 'numbers'))}))(?= )|L['’](?=\w))")
"""First words that have a capital only where they begin a sentence."""
_LENGTH = range(5, 26)
_LONGEST_SUBJECT = 8  # words
_TOLD_APART = re.compile(rf"(?<=.)\b[A-ZÀÉÈÎ][\w'’-]+|\b{YEAR}\b|«")


@dataclass(frozen=True, slots=True)
class _Clause:
    """A statement: its subject, and the verb with what follows; `before` is a date that begins the sentence."""

    subject: str
    verb: str
    rest: str

    @property
    def text(self) -> str:
        return joined(_small(self.subject), self.verb, self.rest)


def asked_of(sentence: str, title: str = "") -> list[Cloze]:
    """The questions that a French sentence answers; none for one that points to others.

    With a `title`, a subject "il" or "elle" is what the title names.

    >>> [cloze.question for cloze in asked_of("Le pont de Brandvik a été construit en 1904.")]
    ['Quand est-ce que le pont de Brandvik a été construit ?', 'Quel pont a été construit en 1904 ?']
    """
    clause = _clause_in(sentence, title)
    if clause is None:
        return []
    clozes: list[Cloze] = []
    for asking in (_when, _how_many, _where, _subject):
        clozes += asking(clause)
    clozes += _defined(clause, sentence)
    return [cloze for cloze in clozes if _stands_alone(cloze.question)]


def _clause_in(sentence: str, title: str) -> _Clause | None:
    plain = IN_BRACKETS.sub("", sentence.strip())
    if not plain.endswith(".") or '"' in plain or "http" in plain:
        return None
    text = _with_date_behind(plain.removesuffix("."))
    cut = _CUT.search(text)
    if cut is not None:
        text = text[: cut.start()]

    pronoun = re.match(r"(?:Il|Elle) ", text)
    if pronoun is not None and title:
        text = f"{title} {text[pronoun.end() :]}"
    stated = _STATES.fullmatch(text.replace(" ", " "))
    is_bound = stated is not None and re.search(r" (?:se|y|en|ne|lui|leur|me|te|nous|vous)$", stated["subject"])
    if stated is None or is_bound or stated["not"] or len(stated["subject"].split()) > _LONGEST_SUBJECT:
        return None
    if stated["subject"].split()[0] in (
        "Il",
        "Elle",
        "Ils",
        "Elles",
        "On",
        "Ce",
        "Cette",
        "Ces",
        "Cet",
        "C'est",
        "Qui",
    ):
        return None
    return _Clause(stated["subject"], stated["verb"], stated["rest"])


def _with_date_behind(text: str) -> str:
    """The sentence with a date that begins it at its end."""
    date = _DATE.match(text)
    if date is None or not text[date.end() :].startswith(", "):
        return text
    rest = text[date.end() + 2 :]
    return f"{rest[:1].upper()}{rest[1:]} {date[0][:1].lower()}{date[0][1:]}" if "," not in rest else ""


def _small(subject: str) -> str:
    return _SMALL_INSIDE.sub(lambda match: match[0].lower(), subject)


def _that(text: str) -> str:
    """ "est-ce que" before what follows."""
    is_vowel = re.match(r"[aeiouyâàéèêîôAEIOUÂÀÉÈÊÎÔ]", text) is not None
    return f"est-ce qu'{text}" if is_vowel else f"est-ce que {text}"


def _when(clause: _Clause) -> Iterator[Cloze]:
    dates = list(_DATE.finditer(clause.text))
    if len(dates) != 1 or has_another_year(clause.text, dates[0][0]):
        return
    date = dates[0]
    if re.search(r"\b(?:de|à|du|en|et) $", clause.text[: date.start()]):
        return
    asks = _ASKS_WHEN.get(date["lead"].lower(), "Quand")
    answer = date[0] if date["lead"].lower() == "entre" else date["date"]
    if " et " in answer and date["lead"].lower() != "entre":
        return
    yield Cloze(f"{asks} {_that(without(date))} ?", answer, "when")


def _how_many(clause: _Clause) -> Iterator[Cloze]:
    begun = _NUMBER.match(clause.subject[:1].lower() + clause.subject[1:])
    if begun is not None:
        counted = joined(begun["counted"], (clause.subject)[begun.end() :])
        number = clause.subject[: begun.end("number")]
        yield Cloze(f"Combien {_of(counted)} {clause.verb} {clause.rest} ?", number, "how many")
        return
    numbers = [match for match in _NUMBER.finditer(clause.rest) if not re.fullmatch(YEAR, match["number"])]
    if len(numbers) != 1 or _BEFORE_NUMBER.search(clause.rest[: numbers[0].start()]):
        return
    match = numbers[0]
    behind = re.match(r" (?:de|d['’]|du|des|et|par)\b ?", clause.rest[match.end() :])
    leads = re.search(r"\b(?P<lead>pendant|avec|sur|dans) $", clause.rest[: match.start()])
    if behind:
        return
    rest = without(match, start=leads.start() if leads else None)
    asks = f"{leads['lead'].capitalize()} combien" if leads else "Combien"
    counted = f"{match['million']} de {match['counted']}" if match["million"] else match["counted"]
    statement = joined(_small(clause.subject), clause.verb, rest)
    about = match["about"] or ""
    yield Cloze(f"{asks} {_of(counted)} {_that(statement)} ?", joined(about, match["number"]), "how many")


def _of(counted: str) -> str:
    return f"d'{counted}" if counted[:1] in "aeiouéèêhîôâ" else f"de {counted}"


def _where(clause: _Clause) -> Iterator[Cloze]:
    places = list(_PLACE.finditer(f" {clause.rest}"))
    if len(places) == 1 and _DONE.search(clause.rest):
        text = joined(_small(clause.subject), clause.verb, without(places[0]))
        yield Cloze(f"Où {_that(text)} ?", places[0]["place"] or places[0]["area"], "where")


def _subject(clause: _Clause) -> Iterator[Cloze]:
    if is_person(clause.subject.split()):
        yield Cloze(f"Qui {clause.verb} {clause.rest} ?", clause.subject, "who")
        return
    doers = [match for match in _BY.finditer(f" {clause.rest}") if is_person(match["name"].split())]
    if len(doers) == 1 and re.match(r"(?:été \w+é|\w+é|\w+i|\w+u)", clause.rest):
        text = joined(_small(clause.subject), clause.verb, without(doers[0]))
        yield Cloze(f"Par qui {_that(text)} ?", doers[0]["name"], "who")
    one = _ONE_OF_SEVERAL.fullmatch(clause.subject)
    if one is not None and _TOLD_APART.search(f"· {clause.rest}"):
        asks = {"Le": "Quel", "La": "Quelle"}[one["article"]]
        yield Cloze(f"{asks} {one['noun']} {clause.verb} {clause.rest} ?", clause.subject, "what")
        return
    is_thing = re.match(r"(?:Le |La |L['’])\w", clause.subject) is not None and _TOLD_APART.search(clause.rest)
    if is_thing and clause.verb not in ("est", "était", "a", "avait", "fut"):
        yield Cloze(f"Qu'est-ce qui {clause.verb} {clause.rest} ?", clause.subject, "what")


def _defined(clause: _Clause, sentence: str) -> Iterator[Cloze]:
    """Ask what a thing is that the sentence defines, with the clause that tells it apart."""
    _, _, rest = sentence.partition(f" {clause.verb} ")
    what = _PREDICATE.match(rest.removesuffix(".")) if clause.verb in ("est", "était") else None
    if what is not None and len(what["what"].split()) in DEFINITION:
        if is_person(clause.subject.split()):
            yield Cloze(f"Qui {clause.verb} {clause.subject} ?", what["what"], "who")
        else:
            yield Cloze(f"Qu'est-ce que {_small(clause.subject)} ?", what["what"], "what")


def _stands_alone(question: str) -> bool:
    words = re.findall(r"[\w'’-]+", question)
    bare = {re.sub(r"^(?:qu|[cdjlmns])['’]", "", word.lower()) for word in words[1:]} - {"est-ce", "ce"}
    is_definition = question.startswith(("Qu'est-ce que ", "Qui est ")) and len(words) > 2
    if (len(words) not in _LENGTH and not is_definition) or not _POINTS.isdisjoint(bare):
        return False
    return is_definition or _TOLD_APART.search(question.partition(" ")[2]) is not None
