"""KRAQ stage 1, self-reflection ("gleaning"): what the first reading missed (KRAQ paper, section 2)."""

import dspy

from kraq_dspy.records import ExtractedClaim, ExtractedEntity, ExtractedRelationship


class FindMissedElements(dspy.Signature):
    """A first reading found the listed names and links in the passage. Say what it missed, and list only that.

    Look for entities without a line, links between listed entities, and facts that matter to the passage's point.
    Empty lists are right when nothing of weight is missing.
    """

    passage: str = dspy.InputField()
    found: list[str] = dspy.InputField()
    missing: str = dspy.OutputField(desc="what was overlooked and why it matters, in one sentence")
    entities: list[ExtractedEntity] = dspy.OutputField()
    relationships: list[ExtractedRelationship] = dspy.OutputField()
    claims: list[ExtractedClaim] = dspy.OutputField()
