"""Chooses which rewritings a question needs (DMQR-RAG: Li et al., 2024, adaptive strategy selection)."""

from typing import Literal

import dspy

Rewriting = Literal["rewrite", "keywords", "answer", "core"]


class ChooseRewritings(dspy.Signature):
    """Choose the rewritings that will help a search with this question; as few as needed, none if it is clear.

    rewrite: it is vague, colloquial or badly put. keywords: it names several things. answer: it is short, and asks for
    facts that an answer would be worded with. core: it is long, with details that distract.
    """

    question: str = dspy.InputField()
    rewritings: list[Rewriting] = dspy.OutputField()
