"""Names and links without describing: small models copy descriptions from one name to the next (KRAQ, stage 1)."""

import dspy

from kraq_dspy.records import NamedLink


class NameElements(dspy.Signature):
    """List the names of people, places, organisations, works and events in the passage, and how they are related.

    Write each name in full, as the passage writes it. Use only what the passage says.
    """

    passage: str = dspy.InputField()
    names: list[str] = dspy.OutputField()
    relationships: list[NamedLink] = dspy.OutputField()
