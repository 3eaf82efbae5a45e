"""Tells which passages of a community answer its question.

A question that the parser made is answered by the passages with a statement under the same key (the form of the
question, its verb, its names), or whose own sentence it is asked of; where there are none, those that have all its
telling words mention what it asks for. A model's question is answered by passages that a search for it finds and that
have the names which it has; a model of the role "judge" confirms each of them.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import dspy

from kraq_dspy import signatures
from kraq_dspy._internal.both_ways import call
from kraq_dspy._internal.step import FittingPredict
from kraq_dspy.embedded_model import question_writer
from kraq_dspy.language.analysis import Analysis
from kraq_dspy.language.text import content_words, words
from kraq_dspy.programs.kraq.question_text import names_in
from kraq_dspy.programs.kraq.representative import Representative
from kraq_dspy.records import Chunk
from kraq_dspy.state import SavableModule

NEARLY_ALL = 0.75  # share of a question's telling words that a passage has at least which mentions what it asks


def stating(asked: Representative, analyses: Mapping[str, Analysis]) -> list[str]:
    """The ids of the passages whose statements answer the question."""
    if asked.key:
        return question_writer().passages_under(asked.key, analyses)

    question = asked.question.casefold()
    answering = []
    for chunk_id, analysis in analyses.items():
        is_asked = any(each.question.casefold() == question for _, each in analysis.asked())
        if is_asked or chunk_id == asked.chunk_id:
            answering.append(chunk_id)
    return answering


def may_state(asked: Representative, chunks: Sequence[Chunk]) -> list[Chunk]:
    """Those of the chunks that have the names of the question, and may so have its statement."""
    if not asked.key:
        telling = {chunk.id for chunk in mentioning(asked.question, chunks)} | {asked.chunk_id}
        return [chunk for chunk in chunks if chunk.id in telling]
    of_names = {word for name in asked.key[3:] for word in words(name.removeprefix("the "))}
    return [chunk for chunk in chunks if of_names <= set(words(chunk.passage))]


def mentioning(question: str, chunks: Sequence[Chunk], subject: str = "") -> list[Chunk]:
    """Those of the chunks that have the telling words of the question, in their headings too: all of them, or, where
    none has all, the most, if these are nearly all. Those of the `subject` of all passages need not be there.

    >>> ada = Chunk("c1", "ada", 0, 0, 21, "Ada worked in London.", 5)
    >>> len(mentioning("Where did Ada work?", [ada])), len(mentioning("Where did Byron work?", [ada]))
    (1, 0)
    """
    telling = set(content_words(question)) - set(content_words(subject))
    held = [len(telling.intersection(content_words("\n".join((*c.headings, c.passage))))) for c in chunks]
    most = max(held, default=0)
    if not most or most < NEARLY_ALL * len(telling):
        return []
    return [chunk for chunk, count in zip(chunks, held, strict=True) if count == most]


def naming(question: str, chunks: Sequence[Chunk]) -> list[Chunk]:
    """Those of the chunks that have every name and number of the question behind its first word.

    >>> ada = Chunk("c1", "ada", 0, 0, 20, "Ada lived in London.", 5)
    >>> len(naming("Where did Ada's family live?", [ada])), len(naming("Where did Byron live?", [ada]))
    (1, 0)
    """
    names = names_in(question)
    return [chunk for chunk in chunks if all(name in chunk.passage.casefold() for name in names)]


class JudgeEvidence(SavableModule):
    """Which of the passages answer a question: the model decides of each alone.

    The prediction's `answering` has a bool for each passage, in their order.

    >>> from dspy.utils import DummyLM
    >>> with dspy.context(lm=DummyLM([{"answers": "True"}, {"answers": "False"}])):
    ...     JudgeEvidence()(question="Where did Ada live?", passages=["Ada lived in London.", "Ada wrote."]).answering
    [True, False]
    """

    outputs: ClassVar[dict[str, Any]] = {"answering": list[bool]}

    def __init__(self) -> None:
        super().__init__()
        self.confirm = FittingPredict(signatures.ConfirmEvidence, shorten="passage")

    async def aforward(self, question: str, passages: Sequence[str]) -> dspy.Prediction:
        replies = [await call(self.confirm, question=question, passage=passage) for passage in passages]
        return dspy.Prediction(answering=[bool(reply.answers) for reply in replies])
