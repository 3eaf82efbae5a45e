"""Asks what several passages answer together: a list of things of one kind, or how two things are related."""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Sequence

from kraq_dspy.embedded.reading.reader import reader
from kraq_dspy.embedded.reading.together import groups_in
from kraq_dspy.embedded.testset.what_it_is import first_definition, plain_kind, read_passage
from kraq_dspy.language.word_forms import plural

_VAGUE = re.compile(
    r"\b(?:who|he|she|they|this|these|those|such|it|his|her|their|them|him|we|our|us|i|my|you|your|above|below|following"
    r"|former|latter|there)\b",
    re.IGNORECASE,
)
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
        if 0 < len(link.split()) <= 5 and "," not in before and not _VAGUE.search(link):
            links_by_kind[kind.split()[-1].lower()].setdefault(title or defined.name, link)

    kind = max(links_by_kind, key=lambda kind: (len(links_by_kind[kind]), kind), default="")
    links = links_by_kind[kind]
    if len(links) < 2:
        return nothing
    commonest = Counter(links.values()).most_common(1)[0][0]
    return {"question": f"Which {plural(kind)} are {commonest} {shared}?", "items": list(links)}


def question_for_many(passages: Sequence[str], about: Collection[str]) -> dict[str, object]:
    """Ask the most particular question that statements of several passages answer together about these names, each
    statement a nugget.

    In English that takes two passages whose parse says something of one kind, or one that says what a name stands for;
    nothing is asked of others, nor in other languages.
    """
    analyses = {
        str(place): analysis for place, passage in enumerate(passages) if (analysis := reader().analysis(passage))
    }
    names = {name.casefold() for name in about}
    for group in groups_in(analyses):
        if all(name.casefold() in names for name in group.names):
            return {"question": group.question, "nuggets": list(group.told.values())[:_MOST_NUGGETS]}
    return {"question": "", "nuggets": []}


def _plain_link(words: Sequence[str]) -> str:
    """The words between a kind and a name as they stand after "are": "located in the"."""
    return " ".join(word for word in words if word.lower() not in ("that", "which", "is", "was", "are", "were"))
