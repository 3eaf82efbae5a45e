"""Asks what takes two passages to answer: a question of two steps, and a comparison."""

import re
from collections.abc import Sequence

from kraq_dspy.embedded.asking.templates import without_asides
from kraq_dspy.embedded.names import REFERENCE, kind_of
from kraq_dspy.embedded.testset.facts import TELLS_WHICH, Fact, facts_in, which_question
from kraq_dspy.embedded.testset.statements import (
    BE,
    BEGINS,
    STATES,
    VAGUE,
    VERB,
    Statement,
    is_somebody,
    read_passage,
    says_what_it_is,
)
from kraq_dspy.embedded.value import BRACKETED, YEAR
from kraq_dspy.language.word_forms import PAST_OF_DONE, plural
from kraq_dspy.records import content_id

_MOST_LEADING = 9
"""Words that lead from one passage to the name of the other; who reads more has lost the thread."""
_DONE_BY = re.compile(rf"{BE} (?:also |later )?(?P<done>[a-z]+ed|{'|'.join(PAST_OF_DONE)}|made|built|held|won|set) by")
_PEOPLE_KINDS = {"person": "person", "place": "place", "organisation": "organisation", "work": "work"}


def question_over_two(first: str, second: str, link: str) -> dict[str, str]:
    """A question of two steps: what the second passage says of `link`, which is named by what the first says of it.

    The description stands in the question already, so it is given empty.

    >>> wood = "Ed Wood\\nEd Wood was directed by Tim Burton."
    >>> burton = "Tim Burton\\nTim Burton is an American director. He was born in Burbank in 1958."
    >>> question_over_two(wood, burton, "Tim Burton")["question"]
    'When was the American director who directed Ed Wood born in Burbank?'
    """
    title, parts, kind, is_who = read_passage(first)
    own, _, link_kind, link_is_who = read_passage(second)
    leading = _leading_to(link, title, parts, points_to_title=bool(kind))
    nothing = {"description": "", "question": "", "answer": ""}
    if leading is None or not own or BRACKETED.sub("", own) not in (link, BRACKETED.sub("", link)):
        return nothing

    described = link_kind or _PEOPLE_KINDS.get(kind_of(link, second), "thing")
    facts = _facts_of(own, second, without=leading.subject)
    facts.sort(key=lambda fact: content_id(first, fact.question))
    for fact in facts:
        if fact.asked_of:
            named = _led_to(described, leading, is_who=link_is_who)
            return {"description": "", "question": fact.question.replace(own, named, 1), "answer": fact.answer}

    is_of_title = leading.subject == title
    leading_is_who = is_who if is_of_title else is_somebody(leading.subject, " ".join(parts))
    names_given = [_in_place_of_name(said, described, is_who=link_is_who) for said in _telling_which(facts)]
    question = _which_is_led_to(leading, kind if is_of_title else "", leading_is_who, names_given)
    return {"description": "", "question": question, "answer": leading.subject} if question else nothing


def _telling_which(facts: Sequence[Fact]) -> list[str]:
    """What the facts say of a name that tells which one it is."""
    return [fact.said for fact in facts if fact.said and TELLS_WHICH.search(fact.said)]


def _which_is_led_to(leading: Statement, kind: str, is_who: bool, names_given: Sequence[str]) -> str:
    """Ask for the subject of the first passage by what leads from it to a name put in other words: "Which film was
    directed by the American producer from Burbank?"; "" if nothing says whom the question asks for."""
    if kind and kind.split()[-1] in leading.phrase:
        kind = ""
    if not (kind or is_who or re.match(rf"{BE} ", leading.phrase)):  # else "What signed the producer?"
        return ""
    questions = (which_question(kind, is_who, f"{leading.phrase} {named}") for named in names_given)
    return next(filter(None, questions), "")


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
            are_people = done == "born" and is_somebody(names[0], first) and is_somebody(names[1], second)
            pronoun = "Who" if are_people else "Which"
            return {"question": f"{pronoun} was {done} first, {names[0]} or {names[1]}?", "answer": earlier}

    heads = [read_passage(passage)[2].split()[-1:] for passage in (first, second)]
    if heads[0] and heads[0] == heads[1]:
        return {"question": f"Are {names[0]} and {names[1]} both {plural(heads[0][0])}?", "answer": "yes"}
    return nothing


def _facts_of(name: str, passage: str, *, without: str) -> list[Fact]:
    """The questions of the passage about the name, or that it answers, which do not say `without`."""
    facts = []
    for fact in facts_in(passage):
        is_of_name = name in (fact.asked_of, fact.answer)
        if is_of_name and without not in f"{fact.question} {fact.answer}":
            facts.append(fact)
    return facts


def _led_to(kind: str, leading: Statement, *, is_who: bool) -> str:
    """A name put by what leads to it, as an act of its bearer where it is one: "the director who directed Ed Wood"."""
    relative = "who" if is_who else "that"
    done = _DONE_BY.fullmatch(leading.phrase)
    if done is not None:
        return f"the {kind} {relative} {PAST_OF_DONE.get(done['done'], done['done'])} {leading.subject}"
    return f"the {kind} that {leading.subject} {leading.phrase}"


def _in_place_of_name(statement: str, kind: str, *, is_who: bool) -> str:
    """A name put in other words: "the rock band from Atlanta", or "the person who wrote Don Juan"."""
    defined = re.fullmatch(rf"{BE} (?:an?|the) (?P<thing>.+)", statement)
    return f"the {defined['thing']}" if defined else f"the {kind} {'who' if is_who else 'that'} {statement}"


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
        if (
            0 < len(words) <= _MOST_LEADING
            and not VAGUE.search(phrase)
            and words[-1] not in ("and", "or", "that", "than")
        ):
            return Statement(leading.subject, phrase)
    return None


def _without_subject(before: str, title: str, *, points_to_title: bool) -> Statement | None:
    """The beginning of a sentence in two: its subject, and what follows, an aside between commas
    left out."""
    plain = BEGINS.sub("", before, count=1)
    for name in _names_for_title(title, points_to_title=points_to_title):
        if plain.startswith((f"{name} ", f"{name},")):
            rest = re.sub(r"^,[^,]{3,80}, ?", "", plain[len(name) :]).strip()
            return Statement(title, rest) if re.match(rf"(?:also |later )?{VERB}\b", rest) else None

    stated = STATES.match(plain)
    if stated is None or not says_what_it_is(stated["subject"].strip()):
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


def _dated(passage: str) -> dict[str, int]:
    """The years of what was done to the title's thing, by the word for it: {"born": 1958}."""
    title, parts, _, _ = read_passage(passage)
    years: dict[str, int] = {}
    for fact in facts_in(passage) if title else ():
        match = re.match(rf"When {BE} {re.escape(title)} (?P<done>[a-z]+)", fact.question)
        if match and (year := YEAR.search(fact.answer)):
            years.setdefault(match["done"], int(year[0]))

    lived = (
        re.search(r"\(born [^()]*?(\d{4})|\((?:[^()\d]*\d{1,2}[^()\d]*)(\d{4})\)? ?[–-]", parts[0]) if parts else None
    )
    if title and lived:
        years.setdefault("born", int(lived[1] or lived[2]))
    return years
