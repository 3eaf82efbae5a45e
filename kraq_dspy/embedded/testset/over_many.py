"""Asks what several passages answer together: a list of things of one kind, or how two things are related."""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence

from kraq_dspy.embedded.asking.templates import definition, is_person
from kraq_dspy.embedded.reading.reader import reader
from kraq_dspy.embedded.reading.together import groups_in
from kraq_dspy.embedded.testset.related import is_last_name, sentence_about
from kraq_dspy.embedded.testset.statements import VAGUE, first_definition, plain_kind, read_passage
from kraq_dspy.embedded.testset.whole_names import may_be_asked_about, with_article
from kraq_dspy.language.analysis import Analysis
from kraq_dspy.language.word_forms import plural

_MOST_NUGGETS = 6
"""Statements of a good answer."""


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
        title, parts, _, _ = read_passage(passage)
        defined = first_definition(parts[:2], title)
        if defined is None or shared not in defined.thing or shared in defined.name:
            continue
        kind = plain_kind(defined.kind)
        if not kind:
            continue
        before = defined.thing.partition(shared)[0].partition(kind)[2]
        link = _plain_link(before.split())
        if 0 < len(link.split()) <= 5 and "," not in before and not VAGUE.search(link):
            links_by_kind[kind.split()[-1].lower()].setdefault(title or defined.name, link)

    kind = max(links_by_kind, key=lambda kind: (len(links_by_kind[kind]), kind), default="")
    links = links_by_kind[kind]
    if len(links) < 2:
        return nothing
    commonest = Counter(links.values()).most_common(1)[0][0]
    return {"question": f"Which {plural(kind)} are {commonest} {shared}?", "items": list(links)}


def question_for_many(passages: Sequence[str], about: Collection[str]) -> dict[str, object]:
    """Ask what statements of several passages tell together of these names, each statement a nugget.

    In English that takes two passages whose parse says something of one kind, or one that says what a name stands for;
    nothing is asked of others, nor in other languages.
    """
    analyses = {
        str(place): analysis for place, passage in enumerate(passages) if (analysis := reader().analysis(passage))
    }
    if analyses:
        return _asked_of_statements(analyses, about) or _asked_what_it_is(passages, about)
    return {"question": "", "nuggets": []}


def _asked_of_statements(analyses: Mapping[str, Analysis], about: Collection[str]) -> dict[str, object]:
    """The most particular question that the statements about these names answer; empty for none."""
    names = {name.casefold() for name in about}
    for group in groups_in(analyses):
        if all(name.casefold() in names for name in group.names):
            return {"question": group.question, "nuggets": list(group.told.values())[:_MOST_NUGGETS]}
    return {}


def _asked_what_it_is(passages: Sequence[str], about: Collection[str]) -> dict[str, object]:
    """Ask who or what a name is that one passage defines and others tell of."""
    name = next(iter(about), "")
    if len(about) != 1 or not _asks_what_it_is(passages, name):
        return {"question": "", "nuggets": []}
    return _asked_of_one(passages, name)


def _asked_of_one(passages: Sequence[str], name: str) -> dict[str, object]:
    """Ask who or what a thing is if a sentence says that, else what is known about it, with a sentence of each passage.

    Nothing is asked of what the passages write small, too, since such a name is a common word that began a heading.
    """
    nothing: dict[str, object] = {"question": "", "nuggets": []}
    text = "\n".join(passages)
    if not may_be_asked_about(name, text) or is_last_name(name, text):
        return nothing

    sentences_about = []
    for passage in passages:
        sentence = sentence_about(passage, [name])
        if sentence and sentence not in sentences_about and not _only_says_where(sentence, name):
            sentences_about.append(sentence)
    if len(sentences_about) < 2:
        return nothing

    asked = with_article(name, text)
    question = f"What is known about {asked}?"
    asks_what_it_is = _asks_what_it_is(passages, name)
    if asks_what_it_is:
        question = f"{asks_what_it_is} {asked}?"
    return {"question": question, "nuggets": sentences_about[:_MOST_NUGGETS]}


def _only_says_where(sentence: str, name: str) -> bool:
    """Whether a sentence has the name only to say where another place is: "Brisbane, Queensland"."""
    return len(re.findall(rf"[A-Z][\w’']{{1,60}}, {re.escape(name)}\b", sentence)) == sentence.count(name)


def _asks_what_it_is(passages: Sequence[str], name: str) -> str:
    """Return "Who is" or "What was", as a passage that says what the name is puts it; "" for none."""
    for passage in passages:
        sentence = sentence_about(passage, [name])
        defined = definition(sentence, [name]) if sentence else None
        if defined and defined.name.removeprefix("the ") == name.removeprefix("The "):
            who = is_person(plain_kind(defined.kind) or defined.kind, sentence, name)
            return f"{'Who' if who else 'What'} {defined.verb}"
    return ""


def _plain_link(words: Sequence[str]) -> str:
    """The words between a kind and a name as they stand after "are": "located in the"."""
    return " ".join(word for word in words if word.lower() not in ("that", "which", "is", "was", "are", "were"))
