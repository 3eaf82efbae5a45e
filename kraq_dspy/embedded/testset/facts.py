"""Asks questions whose answers stand in the text: of sentences from which one part can be taken out.

"Tim Burton directed Ed Wood." asks "Who directed Ed Wood?", since a question for the subject keeps the order of the
words. Where a form of "to be" follows the subject, dates, places and who did it are asked for as well. Questions of two
steps put what one passage says of a name in the place of that name. Other languages than English
are asked nothing: that takes a language model.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass

from kraq_dspy.embedded.asking.templates import definition, is_person
from kraq_dspy.embedded.names import names_in
from kraq_dspy.embedded.reading.reader import reader
from kraq_dspy.embedded.reading.titles import speaker_of
from kraq_dspy.embedded.testset.statements import (
    BE,
    PREPOSITIONS,
    VERB,
    Statement,
    is_plain_kind,
    is_somebody,
    plain_kind,
    points_back,
    read_passage,
    statement_in,
)
from kraq_dspy.embedded.value import DATE
from kraq_dspy.language.analysis import Asked, Sentence
from kraq_dspy.language.text import content_words, with_another_name
from kraq_dspy.language.vocabulary import STOP
from kraq_dspy.language.word_forms import base_of
from kraq_dspy.records import content_id

_PASSIVE = re.compile(rf"(?P<be>{BE}) (?P<done>(?:\w+ly )?(?:[a-z]+ed|born|built|held|made|set|won|written|known)\b.*)")
_ADDS = re.compile(
    r" (?:during|(?:in|on|at|after|before|until|since|near|within)"
    r"(?= (?:(?:the|early|late|mid|about|around) )*[A-Z0-9])) "
)
"""Where a place or a time is added that a sentence stays whole without."""
_CALLS_FOR_MORE = re.compile(r" (?:[a-z]+ed|born|made|held|known|set|contribute|[a-z]+ing|as|one|first)$")
"""Endings which show that a phrase was cut in the middle: "is a disease caused"."""
_IS_A_KIND = re.compile(r"(?:is|are|was|were) (?:an?|the|one of) ")
_DEFINED = re.compile(r"(?P<be>is|are|was|were) (?:an?|one of the) (?P<thing>.+)")
_TELLS_APART = re.compile(
    rf"(?P<kind>[^,]+?) (?:(?:that|which|who) (?P<clause>(?:{VERB}|[a-z]+s) .+)"
    r"|(?P<rest>(?:(?:[a-z]+ed|born|built|held|made|set|won|written|known)(?: (?:and|or) [a-z]+ed)?"
    r" (?:in|at|on|by|from|for|near|as|to|with|of) |(?:in|at|from|by|near|on|for) ).*))"
)
"""A kind of thing, and what tells one of them from others."""
_LASTING = frozenset(("based", "headquartered", "known", "located", "named", "owned", "situated", "used"))
_SEVERAL = re.compile(r"(?:are|were|have) ")
TELLS_WHICH = re.compile(
    r" (?:in|of|at|from|by|for|on|near|between|to|with|that|which|as) .{0,400}[A-Z0-9]| \d{4} |[\"“]"
)
"""What tells one of a kind from others: a name or a number behind a preposition, or a year."""
_FEWEST_WITH_NAME, _FEWEST, MOST_WORDS = 3, 5, 16
"""Content words of what is said of a subject, with a name or a number among them and without; and words in all."""
_LONGEST_ANSWER = 8  # words
_WORTH_OF_WHAT = {"what": 0.8, "which": 0.9}  # beside a question for who, when, where, why or how many
_AS_GOOD = 0.75  # share of the highest worth from which on one question is as good as another
_LEAST_WEIGHT = 0.42  # of a parsed question: a name and a rarer thing
_SUPPOSES = re.compile(r"(?:What|Who|Which \w+|What kind of \w+) (?P<deed>(?:may|might|could|can|should) [a-z]+)\b")
_OF_A_STUDY = re.compile(
    r"\b(?:(?:control|intervention|treatment|standard|experimental|study) (?:groups?|arms?|population|samples?)"
    r"|participants|cohort|baseline|this study|our)\b"
)
_OF_A_SITE = re.compile(
    r"\b(?:cookies?|newsletters?|subscribe|sign(?:ed)? (?:up|in)|log(?:ged)? in|click|browser settings|affiliate"
    r"|commission (?:on|from|if)|all rights reserved|JavaScript|reCAPTCHA|inbox|unsubscribe|podcasts?|comments?)\b",
    re.IGNORECASE,
)
"""What the frame of a web page speaks of; of a policy it is the matter."""
_POLICY = re.compile(r"\b(?:privacy|polic(?:y|ies)|terms)\b", re.IGNORECASE)
_SMALL = re.compile(r"\b[a-z]\w{3,}")
_OPEN = re.compile(r"\b(?:of|the|an?|for|with|to|between|and)$")
"""Ends of what stands before a date that is a part of it: "during the crisis of 1929"."""
_DANGLING = re.compile(r"(?:,| in| on| at| since| around| about| from| until| by){1,20}$")


@dataclass(frozen=True, slots=True)
class Fact:
    """A question that a sentence answers. `asked_of` is the name that the question is about; "" if that name is the
    answer. `said` is what the text says of an answer that is the subject; "" if something else is asked for. `worth`
    from 0 to 1 ranks the questions of a passage."""

    question: str
    answer: str
    asked_of: str = ""
    said: str = ""
    worth: float = 0.0


def fact_about(passage: str, about: Collection[str] = ()) -> dict[str, str]:
    """One question that the passage answers, of one of the names if it can be; empty texts if it has none.

    It is one of those that tell most of what they ask about, who, when, where, why or how many rather than what. Which
    of several depends on the passage's text and these names alone.

    >>> fact_about("Tarnvik\\nJonas Berg has kept the light of Tarnvik since 1998.")["answer"]
    '1998'
    """
    facts = parsed_facts(passage)
    named = [fact for fact in facts if any(name in fact.question or name == fact.answer for name in about)]
    most = max((fact.worth for fact in named or facts), default=0.0)
    best = [fact for fact in named or facts if fact.worth >= _AS_GOOD * most]
    chosen = min(best, key=lambda fact: content_id(passage, fact.question), default=Fact("", ""))
    return {"question": chosen.question, "answer": chosen.answer}


def parsed_facts(passage: str) -> list[Fact]:
    """Every question that a parsed sentence of the passage answers and that tells enough to stand alone.

    Empty for a passage that is not in English.
    """
    analysis = reader().analysis(passage)
    if analysis is None:
        return []
    is_policy = bool(speaker_of(analysis.title) or _POLICY.search(analysis.title))
    facts = []
    for sentence, asked in analysis.asked():
        is_of_frame = not is_policy and _OF_A_SITE.search(sentence.text) is not None
        if asked.weight >= _LEAST_WEIGHT and not is_of_frame and _may_be_shown(asked, sentence):
            question = _with_capitals(asked.question, passage)
            facts.append(Fact(question, asked.answer, worth=asked.weight * _WORTH_OF_WHAT.get(asked.word, 1.0)))
    return facts


def question_for(statement: str, answer: str) -> str:
    """How the parse asks for this part of a statement; "" where it asks for none that is the same.

    >>> question_for("Jonas Berg has kept the light of Tarnvik since 1998.", "Jonas Berg")
    'Who has kept the light of Tarnvik since 1998?'
    """
    return next((fact.question for fact in parsed_facts(statement) if fact.answer == answer), "")


def _may_be_shown(asked: Asked, sentence: Sentence) -> bool:
    """Whether an editor would show the question: it asks for nothing that may be so, and of no group of a study."""
    supposes = _SUPPOSES.match(asked.question)
    is_of_subject = supposes is not None and supposes["deed"] in sentence.text  # "What may hinder growth?"
    return not is_of_subject and _OF_A_STUDY.search(asked.question) is None


def _with_capitals(question: str, passage: str) -> str:
    """The question with the capitals of names that it lost where they began a sentence, if the passage has them within
    another one.

    >>> _with_capitals("What can chromebook owners find?", "Chromebook owners find it. Get a Chromebook.")
    'What can Chromebook owners find?'
    """
    for word in _SMALL.findall(question):
        name = f"{word[0].upper()}{word[1:]}"
        stands_within = re.search(rf"[a-z,] {name}\b", passage) is not None
        if stands_within and re.search(rf"\b{word}\b", passage) is None:
            question = re.sub(rf"\b{word}\b", name, question)
    return question


def facts_in(passage: str) -> list[Fact]:
    """Every question that one of the passage's sentences answers, in their order."""
    title, parts, kind, is_who = read_passage(passage)
    facts: list[Fact] = []
    for sentence in parts:
        statement = statement_in(sentence, title, points_to_title=bool(kind))
        if statement is None:
            continue

        is_of_title = statement.subject == title
        who = is_who if is_of_title else is_somebody(statement.subject, " ".join(parts))
        if defined := definition(f"{statement.subject} {statement.phrase}", [statement.subject]):
            who = is_person(plain_kind(defined.kind) or defined.kind, sentence, statement.subject)

        is_kind_said = bool(kind) and kind.split()[-1] in statement.phrase.split()
        facts += _asked_for_values(statement if is_of_title else _begun_small(statement))
        for phrase in _from_long_to_short(statement):
            question = which_question(kind if is_of_title and not is_kind_said else "", who, phrase)
            if question:
                facts.append(Fact(question, statement.subject, said=phrase))
    return facts


def asked_of_another(question: str, name: str, other: str) -> str:
    """The question with another name in the place of one of its own; "" if it does not have that name as a whole word.

    >>> asked_of_another("Who met Ada?", "Ada", "Bo"), asked_of_another("Who met Adams?", "Ada", "Bo")
    ('Who met Bo?', '')
    """
    question_of_other = with_another_name(question, name, other)
    return "" if question_of_other == question else question_of_other


def _from_long_to_short(statement: Statement) -> list[str]:
    """Return what is said of the subject, and its beginnings up to a preposition, as far as they
    tell enough: people ask with fewer words than texts tell with."""
    if statement.subject in statement.phrase:
        return []
    ends = [match.start() for match in _ADDS.finditer(statement.phrase)]
    cut = [statement.phrase[:end] for end in reversed(ends)]
    whole = [phrase for phrase in cut if not _CALLS_FOR_MORE.search(phrase)]
    return [phrase for phrase in [statement.phrase, *whole] if _tells_enough(statement.subject, phrase)]


def _tells_enough(subject: str, phrase: str) -> bool:
    words = phrase.split()
    told_words = set(content_words(phrase)) - set(content_words(subject))
    fewest = _FEWEST_WITH_NAME if re.search(r"[A-Z0-9]", phrase) else _FEWEST
    if _IS_A_KIND.match(phrase) and not TELLS_WHICH.search(phrase):
        return False  # "is a Canadian actress" is said of many
    return len(words) <= MOST_WORDS and len(told_words) >= fewest and words[-1].lower() not in PREPOSITIONS | STOP


def which_question(kind: str, is_who: bool, phrase: str) -> str:
    """Ask for the subject of which the phrase is said; "" where nobody would ask so.

    >>> which_question("", False, "is a film directed by Tim Burton")
    'Which film was directed by Tim Burton?'
    >>> which_question("film", False, "was directed by Tim Burton"), which_question("", False, "are elaborate")
    ('Which film was directed by Tim Burton?', '')
    """
    if points_back(phrase):
        return ""
    defined = _DEFINED.fullmatch(phrase)
    if defined is not None:
        return _which_of_a_kind(defined["be"], defined["thing"])
    if not kind and _SEVERAL.match(phrase):
        return ""
    asked_thing = f"Which {kind}" if kind else "Who" if is_who else "What"
    return f"{asked_thing} {phrase}?"


def _begun_small(statement: Statement) -> Statement:
    """Return the statement with the article as it stands within a question: "When was the museum opened?"."""
    article, _, rest = statement.subject.partition(" ")
    return Statement(f"the {rest}", statement.phrase) if article == "The" else statement


def _which_of_a_kind(be: str, thing: str) -> str:
    """Ask for one of a kind by what tells it from others; "" where that is not plain.

    >>> _which_of_a_kind("is", "town in Ohio that won a prize"), _which_of_a_kind("is", "member of the band")
    ('Which town is in Ohio that won a prize?', '')
    >>> _which_of_a_kind("was", "novel that won the Booker Prize")
    'Which novel won the Booker Prize?'
    """
    description = _TELLS_APART.fullmatch(thing)
    if description is None or not is_plain_kind(description["kind"]):
        return ""
    if description["clause"]:
        return f"Which {description['kind']} {description['clause']}?"

    first_word = description["rest"].split()[0]
    is_done = first_word not in PREPOSITIONS and first_word not in _LASTING
    verb = {"is": "was", "are": "were"}.get(be, be) if is_done else be
    return f"Which {description['kind']} {verb} {description['rest']}?"


def _asked_for_values(statement: Statement) -> list[Fact]:
    """When, where and by whom something was done to the subject."""
    if len(statement.phrase.split()) > MOST_WORDS or points_back(statement.phrase):
        return []
    if re.fullmatch(r"[A-Z][a-z]+(?: [^A-Z]*)", statement.subject):
        return []  # its capital may be the sentence's
    passive = _PASSIVE.fullmatch(statement.phrase)
    if passive is None:
        return _asked_with_did(statement)

    be, done, subject = passive["be"], passive["done"], statement.subject
    facts = [_asked_when(be, done, subject), _asked_by_whom(be, done, subject)]
    facts.append(_asked_where(be, done, subject))
    return [fact for fact in facts if fact is not None]


def _asked_when(be: str, done: str, subject: str) -> Fact | None:
    dates = list(DATE.finditer(done))
    if len(dates) != 1:
        return None

    before, after = done[: dates[0].start()].strip(), done[dates[0].end() :].strip()
    deed = f"{_DANGLING.sub('', f' {before}').strip()} {after}".strip()
    if not deed or _OPEN.search(before) or after.startswith(("to ", "and ", "-", "–")):
        return None
    return Fact(f"When {be} {subject} {deed}?", dates[0][0], subject)


def _asked_by_whom(be: str, done: str, subject: str) -> Fact | None:
    by = re.fullmatch(r"(?P<deed>[a-z ]+?) by (?:the )?(?P<rest>[A-Z\"“].*)", done)
    if by is None:
        return None

    doer = next(iter(names_in(f"· {by['rest']}")), "")
    is_short = 0 < len(doer.split()) <= _LONGEST_ANSWER
    if not is_short or not by["rest"].lstrip('"“').startswith(doer):
        return None
    return Fact(f"Who {be} {subject} {by['deed']} by?", doer, subject)


def _asked_where(be: str, done: str, subject: str) -> Fact | None:
    place_told = re.fullmatch(r"(?P<deed>[a-z ]+?) (?:in|at|near) (?:the )?(?P<place>[A-Z][^,;]*)", done)
    if place_told is None:
        return None

    place = place_told["place"]
    if DATE.search(place) or names_in(f"· {place}") != [place]:
        return None
    return Fact(f"Where {be} {subject} {place_told['deed']}?", place, subject)


def _asked_with_did(statement: Statement) -> list[Fact]:
    """Ask when something was done, with "did", and for the size of a population.

    "moved to Burbank in 1958" makes "When did ... move to Burbank?".
    """
    subject = statement.subject
    people = re.match(r"(?:has|had) a population of (?:about )?(?P<number>[\d,]*\d)", statement.phrase)
    if people:
        return [Fact(f"What is the population of {subject}?", people["number"], subject)]

    verb, _, rest = statement.phrase.partition(" ")
    base = base_of(verb)
    dates = list(DATE.finditer(rest))
    if not base or len(dates) != 1:
        return []

    before, after = rest[: dates[0].start()], rest[dates[0].end() :].strip()
    middle = _DANGLING.sub("", f" {before.strip()}").strip()
    if after or not middle or _OPEN.search(before.strip()):
        return []
    return [Fact(f"When did {subject} {base} {middle}?", dates[0][0], subject)]
