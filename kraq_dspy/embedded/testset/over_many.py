"""Asks what statements of several passages answer together."""

from collections.abc import Collection, Sequence

from kraq_dspy.embedded.reading.reader import reader
from kraq_dspy.embedded.reading.together import groups_in

_MOST_NUGGETS = 6
"""Statements of a good answer."""


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
