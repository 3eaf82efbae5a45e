"""KRAQ stage 1 as a program: read a passage, then look again for what was missed."""

from typing import Any, ClassVar

import dspy
from dspy import ContextWindowExceededError

from kraq_dspy.programs.both_ways import blocking, call
from kraq_dspy.programs.fit import halves
from kraq_dspy.records import ExtractedClaim, ExtractedEntity, ExtractedRelationship
from kraq_dspy.signatures import ExtractElements, FindMissedElements


class ExtractGraph(dspy.Module):
    """Entities, relationships and claims of one passage (KRAQ paper, section 2; "gleaning" as in GraphRAG).

    Each of up to `gleanings` further rounds sees the passage and the names and links found so far, not their
    descriptions, and adds what it finds; a round that finds nothing new ends the search. A passage that is too long for
    the model is read in two halves, each with its own rounds. The prediction has `entities`, `relationships` and
    `claims`: tuples of records without repeats, in the order found.
    """

    outputs: ClassVar[dict[str, Any]] = {
        "entities": tuple[ExtractedEntity, ...],
        "relationships": tuple[ExtractedRelationship, ...],
        "claims": tuple[ExtractedClaim, ...],
    }

    def __init__(self, gleanings: int = 1) -> None:
        super().__init__()
        self.gleanings = gleanings
        self.extract = dspy.Predict(ExtractElements)
        self.glean = dspy.Predict(FindMissedElements)

    async def aforward(self, passage: str) -> dspy.Prediction:
        elements = _Elements()
        try:
            elements.add(await call(self.extract, passage=passage))
            for _ in range(self.gleanings):
                if not elements.add(await call(self.glean, passage=passage, found=elements.outline())):
                    break
        except ContextWindowExceededError as error:
            for half in _parts(passage, elements, error):
                elements.add(await call(self, passage=half))
        return elements.prediction()

    forward = blocking(aforward)


class _Elements:
    """Entities, relationships and claims of all rounds so far, without repeats."""

    def __init__(self) -> None:
        self.entities: dict[str, ExtractedEntity] = {}
        self.relationships: dict[tuple[str, str, str], ExtractedRelationship] = {}
        self.claims: dict[tuple[str, str], ExtractedClaim] = {}

    def add(self, answer: Any) -> bool:
        """Keep what is new and complete; whether there was any."""
        before = len(self.entities) + len(self.relationships) + len(self.claims)
        for entity in answer.entities:
            if entity.name.strip():
                self.entities.setdefault(entity.name.strip().casefold(), entity)
        for link in answer.relationships:
            if link.source.strip() and link.target.strip():
                self.relationships.setdefault(_folded(link.source, link.target, link.predicate), link)
        for claim in answer.claims:
            if claim.subject.strip() and claim.statement.strip():
                self.claims.setdefault(_folded(claim.subject, claim.statement), claim)
        return len(self.entities) + len(self.relationships) + len(self.claims) > before

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
        )


def _parts(passage: str, elements: _Elements, error: ContextWindowExceededError) -> tuple[str, ...]:
    """What is still to be read after a prompt was too long: nothing where only the list of what was found was."""
    if elements.entities:
        return ()
    first, second = halves(passage)
    if not first:
        raise error
    return first, second


def _folded(*parts: str) -> Any:
    return tuple(part.strip().casefold() for part in parts)
