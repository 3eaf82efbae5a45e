"""KRAQ stage 1: what a passage says about the world (KRAQ paper, section 2)."""

import dspy

from kraq_dspy.records import ExtractedClaim, ExtractedEntity, ExtractedRelationship


class ExtractElements(dspy.Signature):
    """Read the passage and list the entities it names, how they are related, and the facts it states about them.

    Name an entity in full, as the passage first does, and resolve pronouns to that name. Relationships and claims
    refer to listed entities only. Describe each from the passage alone, in its language, in one sentence.
    """

    passage: str = dspy.InputField()
    entities: list[ExtractedEntity] = dspy.OutputField()
    relationships: list[ExtractedRelationship] = dspy.OutputField()
    claims: list[ExtractedClaim] = dspy.OutputField()
