"""Asks questions whose answers stand in the text: of sentences from which one part can be taken out.

"Tim Burton directed Ed Wood." asks "Who directed Ed Wood?", since a question for the subject keeps the order of the
words. Where a form of "to be" follows the subject, dates, places and who did it are asked for as well. Questions of two
steps put what one passage says of a name in the place of that name. English alone; other languages are asked nothing.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import combinations

from kraq_dspy.language.names import PERSON, REFERENCE, is_name, kind_of, names_in
from kraq_dspy.language.templates import Definition, definition, is_person, without_asides
from kraq_dspy.language.text import content_words, parted, sentences
from kraq_dspy.language.told import language_of
from kraq_dspy.language.vocabulary import DOES, STOP
from kraq_dspy.models.lms.engines.rule_based.answer import BRACKETED, DATE, POINTS_BACK, YEAR
from kraq_dspy.models.lms.engines.rule_based.judge import agreement, same_thing, support
from kraq_dspy.records import content_id

_PAST = (
    "won|wrote|made|led|held|built|began|became|beat|took|gave|got|sold|bought|ran|met|sang|went|came|lost|left|drew"
    "|grew|shot|saw|found|taught|brought|chose|fell|flew|kept|knew|rose|sent|set|spent|spoke|stood|told|thought|wore"
)
_BASE_OF_PAST = (
    "win|write|make|lead|hold|build|begin|become|beat|take|give|get|sell|buy|run|meet|sing|go|come|lose|leave|draw|grow"
    "|shoot|see|find|teach|bring|choose|fall|fly|keep|know|rise|send|set|spend|speak|stand|tell|think|wear"
)
_IRREGULAR = dict(zip(_PAST.split("|"), _BASE_OF_PAST.split("|"), strict=True))
_BASES = frozenset(DOES.values())
_ENDS_IN_E = re.compile(
    r"(?:[vzcu]|[^s]s|[^n]g|[aei]ng|[^aeiouy]l|[iau]r|or|at|ut|[iuo]d|um|nam|fil|nit|vit|bin|remier|plet|mot)$"
)
_NO_E = re.compile(
    r"(?:(?<!cr)ea[rt]|oa[rt]|air|onor|avor|sor|thor|itor|chor|debut|our|og|eed|ood|ound|oid|belong|ing|star)$"
)
"""Of verbs without their -ed: which have an e before it, and which of these do not."""
_BE = r"(?:is|are|was|were)"
_VERB = rf"(?:{_BE}|has|have|had|can|may|must|will|{'|'.join(DOES)}|{_PAST}|[a-z]{{2,}}ed)"
_STATES = re.compile(
    rf"(?P<subject>[A-Z][^,;:—–\"“”?!\[\]]{{0,80}}?) (?P<phrase>(?:also |then |first |later )?{_VERB} .+)"
)
_PASSIVE = re.compile(
    rf"(?P<be>{_BE}) (?P<done>(?:\w+ly )?(?:[a-z]+ed|born|built|held|made|set|won|written|known)\b.*)"
)
_BEGINS = re.compile(
    r"(?:However|Therefore|Thus|Moreover|Furthermore|In addition|Additionally|Also|Indeed|Overall)[, ] ?"
)
_CUT = re.compile(
    r"[,;:].*$| (?:which|where|although|though|while|whereas|because|as well as|so that|since|but|despite|who)\b.*$"
)
_ADDS = re.compile(r" (?:in|on|at|by|for|from|with|during|due to|after|before|until|since|to|as|through|under|and) ")
_CALLS_FOR_MORE = re.compile(r" (?:[a-z]+ed|born|made|held|known|set|contribute|[a-z]+ing|as|one|first)$")
"""How what is said does not end, if it was cut off: "is a disease caused"."""
_IS_A_KIND = re.compile(r"(?:is|are|was|were) (?:an?|the|one of) ")
_TELLS_WHICH = re.compile(r" (?:in|of|at|from|by|for|on|near|between|to|with|that|which|as) .*[A-Z0-9]| \d{4} |[\"“]")
"""What tells one of a kind from others: a name or a number behind a preposition, or a year."""
_ASIDE_WORD = re.compile(r"^(?:also|then|first|later) ")
_VAGUE = re.compile(
    r"\b(?:who|he|she|they|this|these|those|such|it|his|her|their|them|him|we|our|us|i|my|you|your|above|below|following"
    r"|former|latter|there)\b",
    re.IGNORECASE,
)
_TWO_VERBS = re.compile(rf"[a-z]+ed (?:as|by|from)\b|[a-z]+ed\b.* {_BE}\b")
_VERB_INSIDE = re.compile(rf"\b(?:{'|'.join(DOES)}|shows?|displays?|that|[a-z]{{2,}}ed)\b")
_FEWEST_WITH_NAME, _FEWEST, _MOST = 3, 4, 16
"""Content words of what is said of a subject, with a name or a number among them and without; and words in all."""
_LONGEST_SUBJECT = 7  # words
_LONGEST_ANSWER = 8  # words
_LONGEST_SENTENCE = 25  # words of one that is an answer as a whole
_KIND_WORDS = 3
_MOST_ABOUT, _MOST_NUGGETS = 6, 6
"""Names of which pairs are looked at, and statements of a good answer."""
_PREPOSITIONS = frozenset(
    "in on at by of for from with to near into through under over and or the a an".split()  # noqa: SIM905
)
_DANGLING = re.compile(r"(?:,| in| on| at| since| around| about| from| until| by)+$")
_PEOPLE_KINDS = {"person": "person", "place": "place", "organisation": "organisation", "work": "work"}


@dataclass(frozen=True, slots=True)
class Fact:
    """A question that a sentence answers. `asked_of` is the name that the question is about, "" where the answer is."""

    question: str
    answer: str
    asked_of: str = ""


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence in two parts: who or what it is about, and what it says of it."""

    subject: str
    phrase: str


def fact_about(passage: str, about: Collection[str] = ()) -> dict[str, str]:
    """One question that the passage answers, of one of the names where it can be; empty texts where it has none.

    Which of several it is depends on the passage's text alone.

    >>> fact_about("Ed Wood\\nEd Wood is a film. It was directed by Tim Burton in 1994.")["answer"]
    'Tim Burton'
    """
    facts = facts_in(passage) or related_in(passage, about)
    named = [fact for fact in facts if any(name in fact.question or name == fact.answer for name in about)]
    chosen = min(named or facts, key=lambda fact: content_id(passage, fact.question), default=Fact("", ""))
    return {"question": chosen.question, "answer": chosen.answer}


def facts_in(passage: str) -> list[Fact]:
    """Every question that one of the passage's sentences answers, in their order."""
    title, parts, kind, is_who = _read(passage)
    facts: list[Fact] = []
    for sentence in parts:
        statement = _statement(sentence, title, points_to_title=bool(kind))
        if statement is None:
            continue
        is_of_title = statement.subject == title
        who = is_who if is_of_title else _is_somebody(statement.subject, " ".join(parts))
        if defined := definition(f"{statement.subject} {statement.phrase}", [statement.subject]):
            who = is_person(_plain_kind(defined.kind) or defined.kind, sentence, statement.subject)
        is_kind_said = bool(kind) and kind.split()[-1] in statement.phrase
        facts += _asked_for_values(statement)
        for phrase in _from_long_to_short(statement):
            asked = _which(kind if is_of_title and not is_kind_said else "", who, phrase)
            facts.append(Fact(asked, statement.subject))
    return facts


def related_in(passage: str, about: Collection[str]) -> list[Fact]:
    """Ask how any two of the names are related that one short sentence of the passage tells of: the sentence answers.

    >>> related_in("Ada\\nShe met Charles Babbage in 1833.", ["Ada", "Charles Babbage"])[0].question
    'How is Ada related to Charles Babbage?'
    """
    facts = []
    for pair in combinations(list(about)[:_MOST_ABOUT], 2):
        sentence = sentence_about(passage, pair)
        if 4 <= len(sentence.split()) <= _LONGEST_SENTENCE and _are_two_things(*pair):
            facts.append(Fact(_related(pair), sentence.rstrip(".")))
    return facts


def question_over_two(first: str, second: str, link: str) -> dict[str, str]:
    """A question of two steps: what the second passage says of `link`, which is named by what the first says of it.

    >>> wood = "Ed Wood\\nEd Wood was directed by Tim Burton."
    >>> burton = "Tim Burton\\nTim Burton is an American director. He was born in Burbank in 1958."
    >>> question_over_two(wood, burton, "Tim Burton")["question"]
    'When was the American director that Ed Wood was directed by born in Burbank?'
    """
    title, parts, kind, is_who = _read(first)
    own, _, link_kind, link_is_who = _read(second)
    leading = _leading_to(link, title, parts, points_to_title=bool(kind))
    nothing = {"question": "", "answer": ""}
    if leading is None or not own or BRACKETED.sub("", own) not in (link, BRACKETED.sub("", link)):
        return nothing

    described = link_kind or _PEOPLE_KINDS.get(kind_of(link, second), "thing")
    facts = _facts_of(own, second, without=leading.subject)
    facts.sort(key=lambda fact: content_id(first, fact.question))
    for fact in facts:
        if fact.asked_of:
            named = f"the {described} that {leading.subject} {leading.phrase}"
            return {"question": fact.question.replace(own, named, 1), "answer": fact.answer}

    is_of_title = leading.subject == title
    who_leads = is_who if is_of_title else _is_somebody(leading.subject, " ".join(parts))
    is_kind_said = bool(kind) and kind.split()[-1] in leading.phrase
    leading_kind = kind if is_of_title and not is_kind_said else ""
    for fact in facts:
        said = _said_of_subject(fact.question)
        if said and _TELLS_WHICH.search(said):
            named = _in_place_of_name(said, described, is_who=link_is_who)
            question = _which(leading_kind, who_leads, f"{leading.phrase} {named}")
            return {"question": question, "answer": leading.subject}
    return nothing


def _facts_of(name: str, passage: str, *, without: str) -> list[Fact]:
    """The questions of the passage about the name, or that it answers, which do not say `without`."""
    facts = []
    for fact in facts_in(passage):
        is_of_name = name in (fact.asked_of, fact.answer)
        if is_of_name and without not in f"{fact.question} {fact.answer}":
            facts.append(fact)
    return facts


def question_for_list(passages: Sequence[str], shared: str) -> dict[str, object]:
    """Ask which things of one kind the passages define by the shared name, as an item of each that
    does.

    >>> lakes = ["Loon Lake\\nLoon Lake is a lake in Ontario.", "Elk Lake\\nElk Lake is a lake in Ontario."]
    >>> question_for_list(lakes, "Ontario")
    {'question': 'Which lakes are in Ontario?', 'items': ['Loon Lake', 'Elk Lake']}
    """
    nothing: dict[str, object] = {"question": "", "items": []}
    if not shared.strip():
        return nothing

    links_by_kind: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for passage in passages:
        title, parts, _, _ = _read(passage)
        defined = _first_definition(parts[:2], title)
        if defined is None or shared not in defined.thing or shared in defined.name:
            continue
        kind = _plain_kind(defined.kind)
        if not kind:
            continue
        before = defined.thing.partition(shared)[0].partition(kind)[2]
        link = _plain_link(before.split())
        if 0 < len(link.split()) <= 5 and "," not in before and not _VAGUE.search(link):
            links_by_kind[kind.split()[-1].lower()].setdefault(title or defined.name, link)

    kind = max(links_by_kind, key=lambda kind: (len(links_by_kind[kind]), kind), default="")
    links = links_by_kind[kind]
    if len(links) < 2:
        return nothing
    commonest = Counter(links.values()).most_common(1)[0][0]
    return {"question": f"Which {_plural(kind)} are {commonest} {shared}?", "items": list(links)}


def _first_definition(parts: Sequence[str], title: str) -> Definition | None:
    titles = [title] if title else []
    for part in parts:
        defined = definition(part, titles)
        if defined is not None:
            return defined
    return None


def comparison(first: str, second: str, names: Sequence[str]) -> dict[str, str]:
    """Ask which of two was born or made first, or whether both are of the one kind that both are
    said to be.

    >>> one, two = "Loon Lake\\nLoon Lake is a lake.", "Elk Lake\\nElk Lake is a lake."
    >>> comparison(one, two, ["Loon Lake", "Elk Lake"])
    {'question': 'Are Loon Lake and Elk Lake both lakes?', 'answer': 'yes'}
    """
    nothing = {"question": "", "answer": ""}
    if len(names) != 2:
        return nothing

    events = [_dated(passage) for passage in (first, second)]
    shared = sorted(events[0].keys() & events[1].keys())
    for done in shared:
        years = events[0][done], events[1][done]
        if years[0] != years[1]:
            earlier = names[0] if years[0] < years[1] else names[1]
            return {"question": f"Which was {done} first, {names[0]} or {names[1]}?", "answer": earlier}

    heads = [_read(passage)[2].split()[-1:] for passage in (first, second)]
    if heads[0] and heads[0] == heads[1]:
        return {"question": f"Are {names[0]} and {names[1]} both {_plural(heads[0][0])}?", "answer": "yes"}
    return nothing


def question_for_many(passages: Sequence[str], about: Collection[str]) -> dict[str, object]:
    """Ask how two things are related, of those that most passages have a sentence about both of.

    Nuggets are these sentences, one of each passage. Nothing is asked where fewer than two passages have one.

    >>> rivers = ["The Rhine flows through Cologne.", "Cologne lies on the Rhine.", "The Rhine is long."]
    >>> question_for_many(rivers, ["Rhine", "Cologne"])["nuggets"]
    ['The Rhine flows through Cologne.', 'Cologne lies on the Rhine.']
    """
    if len(about) == 1:
        return _asked_of_one(passages, next(iter(about)))
    best: tuple[str, str] = ("", "")
    nuggets: list[str] = []
    for pair in combinations(list(about)[:_MOST_ABOUT], 2):
        if not _are_two_things(*pair):
            continue
        said = [sentence for passage in passages if (sentence := sentence_about(passage, pair))]
        if len(said) > max(1, len(nuggets)):
            best, nuggets = pair, said

    if not nuggets:
        return {"question": "", "nuggets": []}
    return {"question": _related(best), "nuggets": nuggets[:_MOST_NUGGETS]}


def _asked_of_one(passages: Sequence[str], name: str) -> dict[str, object]:
    """Ask who or what a thing is, with a sentence about it of each passage."""
    said = [sentence for passage in passages if (sentence := sentence_about(passage, [name]))]
    if len(said) < 2:
        return {"question": "", "nuggets": []}
    asked = "Who" if _is_somebody(name, "\n".join(passages)) else "What"
    return {"question": f"{asked} is {name}?", "nuggets": said[:_MOST_NUGGETS]}


def _are_two_things(name: str, other: str) -> bool:
    """Tell whether the names are of two things, not a long and a short name of one: "United States" and "U.S."."""
    letters, of_other = (re.sub(r"[^\w ]", "", one) for one in (name, other))
    return not (name in other or other in name or same_thing(letters, of_other))


def _related(names: Sequence[str]) -> str:
    return f"How is {names[0]} related to {names[1]}?"


def sentence_about(passage: str, names: Collection[str]) -> str:
    """Return the first sentence that has all of the names, where the title counts for what a
    sentence leaves out; "" for none.

    >>> sentence_about("Ada Lovelace\\nShe was a poet's child. She met Charles Babbage.", ["Ada Lovelace", "Babbage"])
    'She met Charles Babbage.'
    """
    title, body = parted(passage)
    for sentence in sentences(body):
        named = f"{title} {sentence}"
        if all(name in named for name in names) and any(name in sentence for name in names):
            return sentence
    return ""


def asked_of_another(question: str, name: str, other: str) -> str:
    """The question with another name in the place of one of its own; "" where it does not have that name."""
    return question.replace(name, other) if name and name in question else ""


def is_answered(question: str, answer: str, passage: str) -> bool:
    """Whether the passage has the answer, and one of its sentences most of what the question says beside it."""
    title, body = parted(passage)
    if not answer or agreement_in(answer, passage) < 1:
        return False
    asked = " ".join(word for word in content_words(question) if word not in content_words(answer))
    return not asked or max((support(asked, f"{title} {part}") for part in sentences(body)), default=0.0) >= 0.6


def agreement_in(answer: str, passage: str) -> float:
    """Share of the answer's words that the passage has."""
    wanted, present = set(_words(answer)), set(_words(passage))
    return len(wanted & present) / len(wanted) if wanted else 0.0


def says_the_same(first: str, second: str) -> bool:
    """Whether two answers share most of their words."""
    return agreement(first, [second]) >= 0.6


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def _read(passage: str) -> tuple[str, list[str], str, bool]:
    """Title, sentences, what kind of thing the title is said to be ("" unknown), and whether it is
    somebody."""
    title, body = parted(passage)
    if language_of(body) != "en":
        return "", [], "", False

    body = re.sub(r" (?=[,.;:?!’'](?:\s|$|s\b))", "", body)
    title = title if title and is_name(title) else ""
    bare = BRACKETED.sub("", title)
    parts = sentences(body)
    defined = _first_definition(parts[:2], bare) if bare else None
    if defined is None or bare not in defined.name:
        return bare, parts, "", bool(bare) and _is_somebody(bare, body)

    kind = _plain_kind(defined.kind)
    return bare, parts, kind, is_person(kind, parts[0], bare)


def _plain_kind(kind: str) -> str:
    """The last words of a kind that can follow "which": "English poet" of "famous and English poet born"."""
    words = re.split(r" (?:[a-z]+ed|born|made|built|held|set|written|known)\b", kind)[0].split()[-_KIND_WORDS:]
    while words and (words[0].lower() in STOP or words[0].endswith("est") or not words[0][0].isalpha()):
        words = words[1:]
    is_plain = bool(words) and not words[-1][0].isupper() and not re.search(r"[\"“”()\d]", " ".join(words))
    return " ".join(words) if is_plain else ""


def _is_somebody(name: str, text: str) -> bool:
    """Whether a full name is a person's, or a last name is that of a person whom the text names in full."""
    if PERSON.fullmatch(name):
        return kind_of(name, text) == "person"
    full = next((full_name for full_name in PERSON.findall(text) if full_name.endswith(f" {name}")), "")
    return bool(full) and kind_of(full, text) == "person"


def _statement(sentence: str, title: str, *, points_to_title: bool) -> Statement | None:
    """Read a statement; None for a sentence that has no subject which says what it is, or that
    points to others.

    With `points_to_title`, he, she and it are what the title names.
    """
    plain = without_asides(_BEGINS.sub("", sentence, count=1)).strip().rstrip(".")
    stated = _STATES.fullmatch(plain)
    if stated is None or REFERENCE.search(plain) or plain.endswith(("?", "!", ":")):
        return None

    subject = stated["subject"].strip()
    if title:
        subject = _subject_by_title(subject, title, points_to_title=points_to_title)
    if not subject or (subject != title and not _says_what_it_is(subject)):
        return None
    phrase = _ASIDE_WORD.sub("", _CUT.sub("", stated["phrase"]).strip())
    return Statement(subject, phrase) if _is_whole(phrase) else None


def _subject_by_title(subject: str, title: str, *, points_to_title: bool) -> str:
    """The title where the subject stands for it, "" where it points to something else."""
    if len(subject.split()) == 1 and POINTS_BACK.match(f"{subject} "):
        return title if points_to_title and subject in ("He", "She", "It") else ""
    return title if subject in (f"The {title}", f"the {title}") else subject


def _is_whole(phrase: str) -> bool:
    """Whether what is said of a subject neither points to another sentence nor breaks off."""
    if not phrase or '"' in phrase or _VAGUE.search(phrase) or _TWO_VERBS.match(phrase):
        return False
    last = phrase.split()[-1].lower()
    return len(last) > 1 and last not in _PREPOSITIONS | STOP


def _says_what_it_is(subject: str) -> bool:
    words = subject.split()
    first = words[0].lower() if words else ""
    if not words or len(words) > _LONGEST_SUBJECT or _VAGUE.search(subject) or _VERB_INSIDE.search(subject):
        return False
    if re.match(r"[A-Z][a-z]+ed\b", subject) or "_" in subject:
        return False
    if first in STOP - {"the", "a", "an"} or first in ("the", "a", "an", "another", "some", "most", "many"):
        return first == "the" and bool(names_in(f"· {subject[4:]}"))
    return len(words) > 1 or bool(names_in(f"· {subject}"))


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
    said = set(content_words(phrase)) - set(content_words(subject))
    fewest = _FEWEST_WITH_NAME if re.search(r"[A-Z0-9]", phrase) else _FEWEST
    if _IS_A_KIND.match(phrase) and not _TELLS_WHICH.search(phrase):
        return False  # "is a Canadian actress" is said of many
    return len(words) <= _MOST and len(said) >= fewest and words[-1].lower() not in _PREPOSITIONS | STOP


def _which(kind: str, is_who: bool, phrase: str) -> str:
    asked = f"Which {kind}" if kind else "Who" if is_who else "What"
    return f"{asked} {phrase}?"


def _said_of_subject(question: str) -> str:
    """Return what a question for the subject says of it: "wrote Don Juan" of "Which poet wrote Don
    Juan?"; "" for others."""
    asked = re.match(rf"(?:Who|What|Which (?:[\w-]+ ){{1,{_KIND_WORDS}}}?)\s?(?P<said>{_VERB} .+)\?$", question)
    return asked["said"] if asked else ""


def _in_place_of_name(said: str, kind: str, *, is_who: bool) -> str:
    """A name put in other words: "the rock band from Atlanta", or "the person who wrote Don Juan"."""
    defined = re.fullmatch(rf"{_BE} (?:an?|the) (?P<thing>.+)", said)
    return f"the {defined['thing']}" if defined else f"the {kind} {'who' if is_who else 'that'} {said}"


def _asked_for_values(statement: Statement) -> list[Fact]:
    """When, where and by whom something was done to the subject."""
    if len(statement.phrase.split()) > _MOST:
        return []
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
    if not deed or after.startswith(("to ", "and ", "-", "–")):
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
    told = re.fullmatch(r"(?P<deed>[a-z ]+?) (?:in|at|near) (?:the )?(?P<place>[A-Z][^,;]*)", done)
    if told is None:
        return None

    place = told["place"]
    if DATE.search(place) or names_in(f"· {place}") != [place]:
        return None
    return Fact(f"Where {be} {subject} {told['deed']}?", place, subject)


def _asked_with_did(statement: Statement) -> list[Fact]:
    """When, where, or how many: "moved to Burbank in 1958" asks "When did ... move to Burbank?"."""
    subject = statement.subject
    people = re.match(r"(?:has|had) a population of (?:about )?(?P<number>[\d,]*\d)", statement.phrase)
    if people:
        return [Fact(f"What is the population of {subject}?", people["number"], subject)]

    verb, _, rest = statement.phrase.partition(" ")
    base = _base_of(verb)
    dates = list(DATE.finditer(rest))
    if not base or len(dates) != 1:
        return []

    before, after = rest[: dates[0].start()], rest[dates[0].end() :].strip()
    kept = _DANGLING.sub("", f" {before.strip()}").strip()
    if after or len(kept.split()) < 1:
        return []
    return [Fact(f"When did {subject} {base} {kept}?", dates[0][0], subject)]


def _base_of(verb: str) -> str:
    """ "move" of "moved", "write" of "wrote"; "" where it is no past."""
    if verb in _IRREGULAR:
        return _IRREGULAR[verb]
    if not re.fullmatch(r"[a-z]{2,}ed", verb):
        return ""

    stem = verb.removesuffix("ed")
    if stem in _BASES:
        return stem
    if f"{stem}e" in _BASES or stem in ("di", "li", "ti") or (_ENDS_IN_E.search(stem) and not _NO_E.search(stem)):
        return f"{stem}e"
    if stem.endswith("i"):
        return f"{stem[:-1]}y"
    return stem[:-1] if re.search(r"([bdgmnprt])\1$", stem) else stem


def _leading_to(link: str, title: str, parts: Sequence[str], *, points_to_title: bool) -> Statement | None:
    """Return what the first passage says up to `link`, and of whom: "was directed by" before "Tim
    Burton"."""
    bare = BRACKETED.sub("", link)
    if not bare.strip():
        return None

    for sentence in parts:
        plain = without_asides(sentence)
        before, named, _ = plain.partition(bare)
        if not named or REFERENCE.search(before):
            continue
        leading = _without_subject(before, title, points_to_title=points_to_title)
        if leading is None or bare in leading.subject:
            continue
        phrase = _up_to_preposition(leading.phrase.strip(' ,"“'))
        words = phrase.split()
        if 0 < len(words) <= _MOST and not _VAGUE.search(phrase) and words[-1] not in ("and", "or", "that", "than"):
            return Statement(leading.subject, phrase)
    return None


def _without_subject(before: str, title: str, *, points_to_title: bool) -> Statement | None:
    """The beginning of a sentence in two: its subject, and what follows, an aside between commas
    left out."""
    plain = _BEGINS.sub("", before, count=1)
    for name in _names_for_title(title, points_to_title=points_to_title):
        if plain.startswith((f"{name} ", f"{name},")):
            rest = re.sub(r"^,[^,]{3,80}, ?", "", plain[len(name) :]).strip()
            return Statement(title, rest) if re.match(rf"(?:also |later )?{_VERB}\b", rest) else None

    stated = _STATES.match(plain)
    if stated is None or not _says_what_it_is(stated["subject"].strip()):
        return None
    return Statement(stated["subject"].strip(), stated["phrase"])


def _names_for_title(title: str, *, points_to_title: bool) -> list[str]:
    """The words that stand for what the title names, when they begin a sentence."""
    if not title:
        return []
    pronouns = ["He", "She", "It"] if points_to_title else []
    return [f"The {title}", title, *pronouns]


def _up_to_preposition(phrase: str) -> str:
    """Leave out what says of the next name what it is: "by French composer" as "by"."""
    ends = [
        match.end()
        for match in re.finditer(r"\b(?:in|on|at|by|of|for|from|with|to|near|as|after|under) ", f"{phrase} ")
    ]
    cut = f"{phrase} "[: ends[-1]].strip() if ends else ""
    rest = phrase[len(cut) :].split()
    return cut if cut and len(rest) <= 4 else re.sub(r"\b(?:the|an?)$", "", phrase).strip()


def _plain_link(words: Sequence[str]) -> str:
    """The words between a kind and a name as they stand after "are": "located in the"."""
    return " ".join(word for word in words if word.lower() not in ("that", "which", "is", "was", "are", "were"))


def _plural(kind: str) -> str:
    if re.search(r"[^aeiou]y$", kind):
        return f"{kind[:-1]}ies"
    if kind.endswith("s") and not kind.endswith("ss"):
        return kind
    return f"{kind}es" if re.search(r"(?:s|x|ch|sh)$", kind) else f"{kind}s"


def _dated(passage: str) -> dict[str, int]:
    """The years of what was done to the title's thing, by the word for it: {"born": 1958}."""
    title, parts, _, _ = _read(passage)
    years: dict[str, int] = {}
    for fact in facts_in(passage) if title else ():
        asked = re.match(rf"When {_BE} {re.escape(title)} (?P<done>[a-z]+)", fact.question)
        if asked and (year := YEAR.search(fact.answer)):
            years.setdefault(asked["done"], int(year[0]))

    lived = (
        re.search(r"\(born [^()]*?(\d{4})|\((?:[^()\d]*\d{1,2}[^()\d]*)(\d{4})\)? ?[–-]", parts[0]) if parts else None
    )
    if title and lived:
        years.setdefault("born", int(lived[1] or lived[2]))
    return years
