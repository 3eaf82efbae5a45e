"""Finds what the first reading missed: self-reflection, or "gleaning" (KRAQ, stage 1; KRAQ paper, section 2)."""

from typing import Annotated

import dspy
from pydantic import Field

from kraq_dspy.records import ExtractedClaim, ExtractedEntity, ExtractedRelationship


class FindMissedElements(dspy.Signature):
    """A first reading found the entities below ("entity > what it is linked to"). List only what it missed: entities
    without a line, links between them, facts that matter to the passage's point. Empty lists are right if nothing did.
    """

    passage: str = dspy.InputField()
    found: str = dspy.InputField()
    missing: Annotated[str, Field(max_length=300)] = dspy.OutputField(
        desc="what was overlooked and why it matters, in one sentence"
    )
    entities: list[ExtractedEntity] = dspy.OutputField()
    relationships: list[ExtractedRelationship] = dspy.OutputField()
    claims: list[ExtractedClaim] = dspy.OutputField()
