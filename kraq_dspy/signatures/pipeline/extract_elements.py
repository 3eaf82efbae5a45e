"""Extracts what a passage says about the world (KRAQ, stage 1; KRAQ paper, section 2)."""

import dspy

from kraq_dspy.records import ExtractedClaim, ExtractedEntity, ExtractedRelationship


class ExtractElements(dspy.Signature):
    """List the entities that the passage names, how they are related, and the facts it states about them.

    Name an entity in full, and use that name for pronouns, relationships and claims. Describe from the passage alone,
    in its language, in one sentence.
    """

    passage: str = dspy.InputField()
    entities: list[ExtractedEntity] = dspy.OutputField()
    relationships: list[ExtractedRelationship] = dspy.OutputField()
    claims: list[ExtractedClaim] = dspy.OutputField()
