"""Withdraws prepared answers whose documents are gone, and names those that may still tell what these said."""

import re
import shlex
from collections.abc import Collection, Iterator, Set
from typing import TypeAlias

from kraq_dspy.asset.store.index import Index
from kraq_dspy.errors import counted
from kraq_dspy.indexing.faq.sources import opened_faq
from kraq_dspy.records import Document, FaqEntry

Phrase: TypeAlias = tuple[str, ...]
"""Words in a row, without case."""

_WORDS = 5  # in a row that a removed text and an entry have in common, for that entry to be named
_SHOWN = 10  # numbers of entries that a message lists


def phrases_of(text: str) -> Iterator[Phrase]:
    words = re.findall(r"\w+", text.casefold())
    for start in range(len(words) - _WORDS + 1):
        yield tuple(words[start : start + _WORDS])


def withdraw(index: Index, gone: Collection[str], phrases: Set[Phrase]) -> list[str]:
    """Withdraw the answers that models made of the documents `gone`, whose texts had these `phrases` (`phrases_of`).

    Returns what a user should know: which answers went, and which stay although they quote such a text.
    """
    if not gone:
        return []
    with opened_faq(index.path, write=True) as faq:
        if faq is None:
            return []
        withdrawal = faq.withdraw(gone)
        quoting = [entry.number for entry in faq.entries() if _quotes(entry, phrases)]

    problems = []
    if withdrawal.withdrawn:
        problems.append(
            f"{counted(len(withdrawal.withdrawn), 'answer')} of the FAQ cache that models made of removed documents "
            f"went with them: {_listed(withdrawal.withdrawn)}."
        )
    staying = sorted({*withdrawal.kept, *quoting})
    if staying:
        problems.append(
            f"{counted(len(staying), 'answer')} of the FAQ cache may still tell what removed documents said: "
            f"{_listed(staying)}. They stay because somebody wrote them, or they rest on other documents too. To take "
            f"them out: kraq faq remove {shlex.quote(str(index.path))} NUMBERS"
        )
    return problems


def orphaned_answers(index: Index) -> set[str]:
    """Numbers of the FAQ cache's entries whose every document is gone."""
    with opened_faq(index.path) as faq:
        entries = faq.entries() if faq else []
    named = {source.document_id for entry in entries for source in entry.sources}
    gone = named - index.known(Document, named)

    orphaned = set()
    for entry in entries:
        if entry.sources and all(source.document_id in gone for source in entry.sources):
            orphaned.add(str(entry.number))
    return orphaned


def _quotes(entry: FaqEntry, phrases: Set[Phrase]) -> bool:
    texts = (entry.question, entry.answer, entry.given, *(passage.text for passage in entry.evidence))
    return any(not phrases.isdisjoint(phrases_of(text)) for text in texts)


def _listed(numbers: Collection[int]) -> str:
    shown = ", ".join(map(str, list(numbers)[:_SHOWN]))
    return f"no. {shown}" + (", ..." if len(numbers) > _SHOWN else "")
