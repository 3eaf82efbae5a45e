"""Says what a community of entities is about (KRAQ, stage 4; KRAQ paper, section 2)."""

from typing import Annotated

import dspy
from pydantic import Field

from kraq_dspy.records import Finding


class SummarizeCommunity(dspy.Signature):
    """Summarise a group of related entities from its elements alone, which come most important first.

    Begin with what the group centres on, then the key members and how they are related: at most five sentences.
    Findings are the facts most worth knowing, at most five, none said twice.
    """

    elements: list[str] = dspy.InputField()
    title: Annotated[str, Field(max_length=150)] = dspy.OutputField(desc="the key names, in a few words")
    summary: str = dspy.OutputField()
    findings: list[Finding] = dspy.OutputField()
