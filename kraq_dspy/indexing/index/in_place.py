"""Counts the communities about which a template asked in place of the generator, and says why."""

import textwrap
from collections import Counter
from dataclasses import dataclass

from kraq_dspy.asset.store.index import Index
from kraq_dspy.errors import counted
from kraq_dspy.programs.kraq.asked_by import WITHOUT_MODEL
from kraq_dspy.programs.kraq.question_text import fault_of
from kraq_dspy.settings import EMBEDDED

STAGE = "ask"
MOST = 0.5
"""Share of the generator's communities about which templates may ask without a warning."""
REASONS = 3
_LONGEST_REASON = 120  # characters of a failed call's


@dataclass(frozen=True)
class AskedInPlace:
    """Of the communities about which the `generator` was `asked`, how many a template asks about, and for which
    reasons, the commonest first."""

    generator: str
    asked: int
    by_templates: int
    reasons: tuple[tuple[str, int], ...]

    def __bool__(self) -> bool:
        """Whether it is worth a warning: more than half."""
        return self.by_templates > MOST * self.asked

    def __str__(self) -> str:
        why = "; ".join(f"{reason} ({count:,})" for reason, count in self.reasons)
        return (
            f"Templates ask about {self.by_templates:,} of {counted(self.asked, 'community')} in place "
            f"of {self.generator.partition('@')[0]}, whose reply {why}."
        )


def asked_in_place(index: Index, instructions: str) -> AskedInPlace:
    """Compare the replies that the index keeps with the questions that it has. `instructions` are the generator's.

    The embedded model is no generator: nothing is asked in its place.
    """
    generator = index.manifest.models.get("generator", "")
    if not generator or generator == EMBEDDED:
        return AskedInPlace(generator, 0, 0, ())

    of_community = {question.community_id: question for question in index.questions(source="kraq", duplicates=True)}
    replies = index.results.outputs(STAGE, sorted(index.results.items(STAGE)))
    failed = {failure.item_id: failure.reason for failure in index.results.failures(STAGE)}
    reasons: Counter[str] = Counter()
    for community_id in {**replies, **failed}:
        question = of_community.get(community_id)
        if question is None or question.model not in WITHOUT_MODEL:
            continue
        if community_id in failed:
            reasons[_of_a_failure(failed[community_id])] += 1
        else:
            reply = str(replies[community_id]["question"])
            reasons[fault_of(reply, instructions) or "leads to none of the community's passages"] += 1
    total = len(replies.keys() | failed.keys())
    return AskedInPlace(generator, total, reasons.total(), tuple(reasons.most_common(REASONS)))


def _of_a_failure(reason: str) -> str:
    """Why a call brought no question, whole or up to a word.

    >>> _of_a_failure("Kept as far as it goes: the reply was cut off at the limit of tokens (max_tokens = 60)")
    'is of no use: Kept as far as it goes: the reply was cut off at the limit of tokens (max_tokens = 60)'
    >>> _of_a_failure("No answer from http://localhost:8000/v1. " * 9)[-30:]
    'st:8000/v1. No answer from ...'
    """
    return f"is of no use: {textwrap.shorten(reason, _LONGEST_REASON, placeholder=' ...')}"
