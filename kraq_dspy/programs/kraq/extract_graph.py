"""Reads a passage for its graph, then looks again for what was missed (KRAQ, stage 1)."""

from collections.abc import Mapping
from typing import Any, ClassVar

import dspy

from kraq_dspy._internal.both_ways import blocking, call
from kraq_dspy._internal.step import Step
from kraq_dspy.programs.kraq.element_list import ElementList, read_in_parts
from kraq_dspy.programs.shared.state import SavableModule
from kraq_dspy.programs.shared.steps import check_steps
from kraq_dspy.records import ExtractedClaim, ExtractedEntity, ExtractedRelationship
from kraq_dspy.signatures import ExtractElements, FindMissedElements


class ExtractGraph(SavableModule):
    """Entities, relationships and claims of one passage (KRAQ paper, section 2; "gleaning" as in GraphRAG).

    Each of up to `gleanings` further rounds sees the passage and the names and links found so far, not their
    descriptions, and adds what it finds; a round that finds nothing new ends the search. A passage that is too long for
    the model, or about which it wrote without an end, is read in two halves, each with its own rounds. With
    `grounded_names`, what is about a name that the passage does not have is dropped: small models invent some.

    The prediction has `entities`, `relationships` and `claims`: tuples of records without repeats, in the order found;
    and `ungrounded`, how many were dropped. A further output of a step of one's own is a list, one entry for each call.
    """

    asks: Mapping[str, str] = {
        "extract": "passage -> entities, relationships, claims",
        "glean": "passage, found -> entities, relationships, claims",
    }
    outputs: ClassVar[dict[str, Any]] = {
        "entities": tuple[ExtractedEntity, ...],
        "relationships": tuple[ExtractedRelationship, ...],
        "claims": tuple[ExtractedClaim, ...],
        "ungrounded": int,
    }

    def __init__(self, gleanings: int = 1, grounded_names: bool = True) -> None:
        super().__init__()
        self.gleanings = gleanings
        self.grounded_names = grounded_names
        self.extract = Step(ExtractElements)
        self.glean = Step(FindMissedElements)

    @property
    def most_calls(self) -> int:
        """Calls about one passage, if it is not read in parts."""
        return 1 + self.gleanings

    async def aforward(self, passage: str) -> dspy.Prediction:
        check_steps(self)

        async def read(elements: ElementList) -> None:
            elements.add(await call(self.extract, passage=passage))
            for _ in range(self.gleanings):
                if not elements.add(await call(self.glean, passage=passage, found=elements.outline())):
                    break

        return await read_in_parts(self, passage, self.grounded_names, read)

    forward = blocking(aforward)
