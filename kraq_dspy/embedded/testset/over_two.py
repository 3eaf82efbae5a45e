"""Asks what takes two passages to answer: a question of two steps, and a comparison."""

import re

from kraq_dspy.embedded.names import kind_of
from kraq_dspy.embedded.reading.reader import reader
from kraq_dspy.embedded.testset.facts import Fact, parsed_facts
from kraq_dspy.embedded.testset.what_it_is import is_somebody, read_passage
from kraq_dspy.embedded.value import BRACKETED, YEAR
from kraq_dspy.language.word_forms import plural
from kraq_dspy.records import content_id

_OF_SUBJECT = re.compile(r"(?:Who|What|Which [^?]{1,40}?) (?P<rest>(?!(?:do|does|did)\b)[a-z].*)\?")
"""A question whose answer is its subject: its words stand as they do in a relative clause."""
_NAMED_KINDS = {"person": "person", "place": "place", "organisation": "organisation", "work": "work"}


def question_over_two(first: str, second: str, link: str) -> dict[str, str]:
    """A question of two steps: what the second passage says of `link`, which is named by what the first says of it.

    The description stands in the question already, so it is given empty.

    >>> wood = "Ed Wood\\nEd Wood was directed by Tim Burton."
    >>> burton = "Tim Burton\\nTim Burton is an American director. He was born in Burbank in 1958."
    >>> question_over_two(wood, burton, "Tim Burton")["question"]
    'When was the American director who directed Ed Wood born in Burbank?'
    """
    title, _, kind, is_who = read_passage(second)
    name = BRACKETED.sub("", link)
    leading = _leading_to(name, first) if name and name == BRACKETED.sub("", title) else ""
    if not leading:
        return {"description": "", "question": "", "answer": ""}

    described = kind or _NAMED_KINDS.get(kind_of(link, second), "thing")
    in_its_place = f"the {described} {'who' if is_who else 'that'} {leading}"
    whole_name = re.compile(rf"(?<!\w){re.escape(name)}(?![\w’']| [A-Z])")
    begun_with = read_passage(first)[0] or leading
    asked = [
        fact
        for fact in parsed_facts(second)
        if whole_name.search(fact.question)
        and begun_with not in f"{fact.question} {fact.answer}"
        and described.split()[-1] not in fact.answer
    ]
    chosen = min(asked, key=lambda fact: content_id(first, fact.question), default=Fact("", ""))
    question = whole_name.sub(lambda _: in_its_place, chosen.question, count=1)
    return {"description": "", "question": question, "answer": chosen.answer}


def _leading_to(name: str, passage: str) -> str:
    """What a passage says of a name, as a relative clause does: "directed Ed Wood", "Ed Wood was shot in"."""
    for fact in parsed_facts(passage):
        asks_for_it = _OF_SUBJECT.fullmatch(fact.question) if fact.answer == name else None
        if asks_for_it is not None:
            return asks_for_it["rest"]

    title = read_passage(passage)[0]
    analysis = reader().analysis(passage)
    links = [link for sentence in analysis.sentences for link in sentence.links] if analysis is not None else []
    leading = (f"{link.source} {link.predicate}" for link in links if link.target == name and link.source == title)
    return next(leading, "")


def comparison(first: str, second: str, names: list[str]) -> dict[str, str]:
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


def _dated(passage: str) -> dict[str, int]:
    """The years of what was done to the title's thing, by the word for it: {"born": 1958}."""
    title, parts, _, _ = read_passage(passage)
    years: dict[str, int] = {}
    for fact in parsed_facts(passage) if title else ():
        match = re.match(rf"When (?:was|were) {re.escape(title)} (?P<done>[a-z]+)", fact.question)
        if match and (year := YEAR.search(fact.answer)):
            years.setdefault(match["done"], int(year[0]))

    lived = (
        re.search(r"\(born [^()]*?(\d{4})|\((?:[^()\d]*\d{1,2}[^()\d]*)(\d{4})\)? ?[–-]", parts[0]) if parts else None
    )
    if title and lived:
        years.setdefault("born", int(lived[1] or lived[2]))
    return years
