"""Gathers what several calls say about one passage: entities, relationships and claims, without repeats."""

import logging
import re
import unicodedata
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any, TypeVar

import dspy
from dspy import ContextWindowExceededError
from dspy.utils.exceptions import AdapterParseError

from kraq_dspy._internal.both_ways import call
from kraq_dspy._internal.step import halves
from kraq_dspy.records import ExtractedClaim, ExtractedEntity, ExtractedRelationship

logger = logging.getLogger(__name__)

SHORTEST_HALVED = 400  # characters: a reply about less that does not end is no matter of length
QUOTES = ('""', "''", "“”", "„“", "”“", "‘’", "«»", "»«", "「」", "『』", "``")
STEM = 6  # letters by which two forms of a word are one

Element = TypeVar("Element", ExtractedEntity, ExtractedRelationship, ExtractedClaim)


class ElementList:
    """Entities, relationships and claims of all rounds so far, without repeats."""

    def __init__(self, passage: str | None) -> None:
        """Begin an empty list; only names that `passage` has are kept, if it is given."""
        self._words = None if passage is None else plain_words(passage)
        self.ungrounded = 0
        self.entities: dict[str, ExtractedEntity] = {}
        self.relationships: dict[tuple[str, str, str], ExtractedRelationship] = {}
        self.claims: dict[tuple[str, str], ExtractedClaim] = {}

    def add(self, answer: Any) -> bool:
        """Keep what is new and complete in an answer; return whether there was any."""
        before = self._count()

        for entity in answer.entities:
            self._add_entity(entity)
        for link in answer.relationships:
            self._add_relationship(link)
        for claim in answer.claims:
            self._add_claim(claim)

        return self._count() > before

    def _count(self) -> int:
        return len(self.entities) + len(self.relationships) + len(self.claims)

    def _add_entity(self, entity: ExtractedEntity) -> None:
        entity = _bare(entity, "name")
        if self._keeps(entity.name):
            self.entities.setdefault(entity.name.casefold(), entity)

    def _add_relationship(self, link: ExtractedRelationship) -> None:
        link = _bare(link, "source", "target")
        if self._keeps(link.source, link.target):
            key = _folded(link.source, link.target, link.predicate)
            self.relationships.setdefault(key, link)

    def _add_claim(self, claim: ExtractedClaim) -> None:
        claim = _bare(claim, "subject", "object")
        if not claim.statement.strip() or not self._keeps(claim.subject):
            return

        if claim.object and not self._has(claim.object):
            claim = replace(claim, object="")  # the fact holds without the invented name
        self.claims.setdefault(_folded(claim.subject, claim.statement), claim)

    def _keeps(self, *names: str) -> bool:
        """Whether none is empty or invented; those that are invented are counted."""
        if not all(name.strip() for name in names):
            return False
        if all(map(self._has, names)):
            return True
        self.ungrounded += 1
        return False

    def _has(self, name: str) -> bool:
        return self._words is None or is_named(name, self._words)

    def outline(self) -> str:
        """One line for each entity, with what it is linked to: all that the next round needs to know."""
        targets: dict[str, list[str]] = {entity.name: [] for entity in self.entities.values()}
        for link in self.relationships.values():
            targets.setdefault(link.source, []).append(link.target)
        return "\n".join(
            f"{name} > {', '.join(dict.fromkeys(linked))}" if linked else name for name, linked in targets.items()
        )

    def prediction(self) -> dspy.Prediction:
        return dspy.Prediction(
            entities=tuple(self.entities.values()),
            relationships=tuple(self.relationships.values()),
            claims=tuple(self.claims.values()),
            ungrounded=self.ungrounded,
        )


async def read_in_parts(
    program: dspy.Module, passage: str, grounded: bool, read: Callable[[ElementList], Awaitable[None]]
) -> dspy.Prediction:
    """Return what `read` puts into an empty list; where the passage is too long for that, what
    `program` finds in its halves.

    With `grounded`, names that the passage does not have are dropped.
    """
    elements = ElementList(passage if grounded else None)
    try:
        await read(elements)
    except (ContextWindowExceededError, AdapterParseError) as error:
        for half in _parts(passage, elements, error):
            part = await call(program, passage=half)
            elements.add(part)
            elements.ungrounded += part.ungrounded
    return elements.prediction()


def _parts(passage: str, elements: ElementList, error: Exception) -> tuple[str, ...]:
    """Return the texts to read again after a prompt was too long or a reply unreadable: none if
    a first reading exists, halves if length may be the reason."""
    if elements.entities:
        logger.info("continuing with the first reading alone: %s", str(error).partition("\n")[0])
        return ()

    ran_on = getattr(error, "ran_on", False)  # KraqAdapter tells
    if isinstance(error, AdapterParseError) and (not ran_on or len(passage) < SHORTEST_HALVED):
        raise error

    first, second = halves(passage)
    if not first:
        raise error
    return first, second


def bare_name(name: str) -> str:
    """The name without the quotation marks around all of it, which a model may write.

    >>> bare_name('"Mira Tolan"'), bare_name('"Heroes" (song)')
    ('Mira Tolan', '"Heroes" (song)')
    """
    name = name.strip()
    inside = name[1:-1]
    if len(inside) > 1 and name[0] + name[-1] in QUOTES and name[0] not in inside and name[-1] not in inside:
        return inside.strip()
    return name


def _bare(element: Element, *fields: str) -> Element:
    """The element with bare names in these fields."""
    names = {field: bare_name(getattr(element, field)) for field in fields}
    return (
        element if all(getattr(element, field) == name for field, name in names.items()) else replace(element, **names)
    )


@lru_cache(maxsize=1024)
def plain_words(text: str) -> str:
    """The text's words, folded, with a blank on either side."""
    if not text.isascii():
        decomposed = unicodedata.normalize("NFKD", text)
        text = "".join(letter for letter in decomposed if not unicodedata.combining(letter))
    words = " ".join(re.findall(r"\w+", text.casefold()))
    return f" {words} "


def is_named(name: str, words: str) -> bool:
    """Whether the passage has the name, or at least half of its words: endings, titles and order differ."""
    parts = plain_words(name).split()
    if not parts:
        return False
    return " ".join(parts) in words or sum(f" {part[:STEM]}" in words for part in parts) * 2 >= len(parts)


def _folded(*parts: str) -> Any:
    return tuple(part.strip().casefold() for part in parts)
