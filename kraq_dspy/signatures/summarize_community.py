"""KRAQ stage 4: what a community of entities is about (KRAQ paper, section 2)."""

import dspy

from kraq_dspy.records import Finding


class SummarizeCommunity(dspy.Signature):
    """Summarise a group of related entities for a reader who has not seen them.

    The elements come in order of importance. Begin with what the group centres on, name the key members and how they
    are related, and use the elements alone. The summary has at most five sentences; findings are the facts most worth
    knowing, at most five, none said twice.
    """

    elements: list[str] = dspy.InputField()
    title: str = dspy.OutputField(desc="the key names, in a few words")
    summary: str = dspy.OutputField()
    findings: list[Finding] = dspy.OutputField()
