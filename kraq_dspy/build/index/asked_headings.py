"""Gives each community a heading that announces a question: what people look for is asked about, none of it twice."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from kraq_dspy.models.lms.engines.embedded.headings import Heading, announced_question, headings_by_weight, headings_of
from kraq_dspy.models.lms.engines.embedded.text import language_of, parted, sentences
from kraq_dspy.records import Community

LONGEST = 140  # characters of a question
SHOWN = 80  # words of a heading's text that a generator sees


@dataclass(frozen=True, slots=True)
class AskedHeading:
    """A heading, how its text begins, and the `question` that a template makes of it."""

    heading: str
    text: str
    question: str


def headings_asked(
    communities: Iterable[Community], passages_of: Callable[[Sequence[str]], list[str]], subject: str
) -> dict[str, AskedHeading]:
    """For community ids the weightiest heading of their passages that announces a question and that no community before
    has, the broadest first; communities without one are absent. English alone."""
    chosen: dict[str, AskedHeading] = {}
    asked: set[str] = set()
    for community in sorted(communities, key=lambda one: (one.level, -len(one.chunk_ids), one.id)):
        passages = passages_of(community.chunk_ids)
        if language_of("\n".join(passages)) != "en":
            continue
        for heading in headings_by_weight(passages, ""):
            question = announced_question(heading, passages, subject)
            if 0 < len(question) <= LONGEST and question.casefold() not in asked:
                asked.add(question.casefold())
                chosen[community.id] = AskedHeading(heading.text, _below(heading, passages), question)
                break
    return chosen


def _below(heading: Heading, passages: Sequence[str]) -> str:
    """The first sentences of what stands under the heading."""
    passage = next(passage for passage in passages if heading in headings_of(passage))
    words = " ".join(sentences(parted(passage)[1].rpartition(f"# {heading.text}\n")[2])).split()
    return " ".join(words[:SHOWN])
