"""Writes the questions of communities without a model: the port of `embedded_model.QuestionWriter`."""

from collections.abc import Callable, Iterable, Sequence

from kraq_dspy.embedded.asking.headings import (
    Heading,
    announced_question,
    asked_title,
    headings_by_weight,
    headings_of,
    placed,
    subject_of,
)
from kraq_dspy.embedded.asking.templates import definition, question_about
from kraq_dspy.embedded.reading.together import groups_in, passages_under
from kraq_dspy.language.analysis import AskedHeading
from kraq_dspy.language.text import parted, sentences
from kraq_dspy.language.told import language_of
from kraq_dspy.records import Community

__all__ = [
    "asked_title",
    "defines",
    "groups_in",
    "headings_asked",
    "passages_under",
    "placed",
    "question_about",
    "subject_of",
]

LONGEST = 140  # characters of a question
SHOWN = 80  # words of a heading's text that a generator sees


def headings_asked(
    communities: Iterable[Community], passages_of: Callable[[Sequence[str]], list[str]], subject: str
) -> dict[str, AskedHeading]:
    """Find for community ids the weightiest heading of their passages that announces a question and
    that no community before has; communities without one are absent. In the language of each community's passages."""
    chosen: dict[str, AskedHeading] = {}
    questions_taken: set[str] = set()

    for community in communities:
        passages = passages_of(community.chunk_ids)
        for heading in headings_by_weight(passages, ""):
            question = _asked_by_heading(heading, passages, subject)
            if 0 < len(question) <= LONGEST and question.casefold() not in questions_taken:
                questions_taken.add(question.casefold())
                chosen[community.id] = AskedHeading(heading.text, _below(heading, passages), question)
                break
    return chosen


def _asked_by_heading(heading: Heading, passages: Sequence[str], subject: str) -> str:
    """The question that the heading announces in English, or that it is in any language; "" for none.

    Most headings are names, which announce nothing. Then the language is not looked at: the model that tells languages
    takes half a second to load.
    """
    in_english = announced_question(heading, passages, subject)
    is_question = heading.text.endswith(("?", "？"))
    if not in_english and not is_question:
        return ""
    if language_of("\n".join(passages)) == "en":
        return in_english
    return heading.text if is_question else ""


def defines(text: str, title: str) -> bool:
    """Whether a sentence of the text says what a name is.

    >>> defines("It rained. Ada Lovelace was a mathematician.", "")
    True
    """
    return any(definition(part, (title,)) for part in sentences(text))


def _below(heading: Heading, passages: Sequence[str]) -> str:
    """The first sentences of what stands under the heading."""
    passage = next(passage for passage in passages if heading in headings_of(passage))
    words = " ".join(sentences(parted(passage)[1].rpartition(f"# {heading.text}\n")[2])).split()
    return " ".join(words[:SHOWN])
