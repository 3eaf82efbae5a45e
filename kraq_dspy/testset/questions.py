"""Asks the questions of a test set, puts them in other words, and checks them by reading."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from kraq_dspy.language.text import content_words
from kraq_dspy.programs.kraq.wording import PutInWords, Stated, stated_in
from kraq_dspy.settings import EMBEDDED
from kraq_dspy.steps.direct import Item
from kraq_dspy.testset.asking import AskForRow, CheckRow, PutOtherwise
from kraq_dspy.testset.corpus import AskedQuestion, Corpus, Material
from kraq_dspy.testset.kinds import KINDS
from kraq_dspy.testset.steps import TestsetSteps
from kraq_dspy.testset.wording import by_other_names, other_names, shorter

ASK, WORD, REWORD, CHECK = "ask", "word", "reword", "check"


class QuestionWriter:
    """Asks questions of materials and drops those that fail a check."""

    def __init__(self, steps: TestsetSteps, corpus: Corpus) -> None:
        self.steps = steps
        self.corpus = corpus
        self.other_names = other_names(corpus.entities)

    async def checked_questions(self, kind: str, materials: Sequence[Material]) -> list[AskedQuestion]:
        """Return the questions of one kind that passed, in the order of their materials.

        Rules reword for free, so the embedded reader puts each question in every wording that it
        has; another model rewords every second one, before it is checked.
        """
        questions = await self._ask(kind, materials)
        if self.steps.generator == EMBEDDED:
            return await self._all_wordings(kind, await self._in_words(kind, await self._check(kind, questions)))
        return await self._check(kind, await self._reworded(kind, questions, questions[1::2]))

    async def _ask(self, kind: str, materials: Sequence[Material]) -> list[AskedQuestion]:
        items = [Item(material.id, material.inputs, document=material.chunks[0].document_id) for material in materials]
        replies = await self.steps.accepted(f"{ASK} {kind}", self.steps.writer, AskForRow(kind), items)

        return [
            AskedQuestion(material, replies[material.id].question, tuple(replies[material.id].answers))
            for material in materials
            if material.id in replies
        ]

    async def _in_words(self, kind: str, questions: Sequence[AskedQuestion]) -> list[AskedQuestion]:
        """Put what the parse asked of a statement in the asker's words, where these pass what the parse's passed."""
        if not self.steps.asker:
            return list(questions)
        stated = {question.id: self._stated(question) for question in questions}
        items = [Item(id, statement.inputs()) for id, statement in stated.items() if statement is not None]
        replies = await self.steps.outcomes(f"{WORD} {kind}", "asker", PutInWords(), items)

        proposed: dict[str, AskedQuestion] = {}
        for question in questions:
            reply = replies.get(question.id)
            if reply is not None and not reply.fault:
                in_words = dataclasses.replace(question, question=reply.question, worded_by=self.steps.asker)
                if self._hides_answer(in_words):
                    proposed[question.id] = in_words

        to_check = _to_check(kind, list(proposed.values()))
        verdicts = await self.steps.outcomes(f"{CHECK} {kind}", "judge", CheckRow(), to_check)
        passed = {id for id, verdict in verdicts.items() if not verdict.rejected}
        kept = {id: in_words for id, in_words in proposed.items() if in_words.id in passed}
        return [kept.get(question.id, question) for question in questions]

    def _stated(self, question: AskedQuestion) -> Stated | None:
        analyses = (self.corpus.analyses.get(chunk.id) for chunk in question.material.chunks)
        return stated_in(question.question, [analysis for analysis in analyses if analysis is not None])

    async def _all_wordings(self, kind: str, questions: Sequence[AskedQuestion]) -> list[AskedQuestion]:
        """Put each question as it is, shorter, by other names, and each of these in other words.

        At most one wording is drawn. Rules cost nothing, and keep what was checked: the answer is
        the same, and a wording that is now said of something else, too, is dropped with its pool.
        """
        plain = [
            dataclasses.replace(question, question=text)
            for question in questions
            for text in self._plain_wordings(question)
        ]
        reworded = await self._reworded(kind, plain, plain)
        distinct = {question.id: question for question in [*plain, *reworded]}
        return [question for question in distinct.values() if self._hides_answer(question)]

    def _plain_wordings(self, question: AskedQuestion) -> list[str]:
        """Return the question, the question by other names, and shorter ones."""
        wordings = [question.question]
        names = self.corpus.names_in(question.material)
        renamed = by_other_names(question.question, names, self.other_names)
        if renamed:
            wordings.append(renamed)
        if KINDS[question.material.kind].is_of_one_fact:
            wordings += shorter(question.question)
        return wordings

    def _hides_answer(self, question: AskedQuestion) -> bool:
        """Whether a wording gives away neither its answer nor what links its passages."""
        material = question.material
        kind = KINDS[material.kind]
        texts = [chunk.passage for chunk in material.chunks]
        return not kind.fault(question.question, question.answers, texts, kind.hidden(material))

    async def _reworded(
        self, kind: str, questions: Sequence[AskedQuestion], to_reword: Sequence[AskedQuestion]
    ) -> list[AskedQuestion]:
        """All of the questions, those `to_reword` in other words than their passages'."""
        items = [
            Item(question.id, {"question": question.question, "avoid": _words_of_passages(question)})
            for question in to_reword
        ]
        replies = await self.steps.outcomes(f"{REWORD} {kind}", self.steps.writer, PutOtherwise(), items)

        reworded = []
        for question in questions:
            reply = replies.get(question.id)
            text = question.question if reply is None else reply.question
            reworded.append(dataclasses.replace(question, question=text))
        return reworded

    async def _check(self, kind: str, questions: Sequence[AskedQuestion]) -> list[AskedQuestion]:
        by_parse = KINDS[kind].is_of_one_fact and self.steps.generator == self.steps.judge == EMBEDDED
        items = _to_check(kind, questions, by_parse=by_parse)
        verdicts = await self.steps.accepted(f"{CHECK} {kind}", "judge", CheckRow(), items, before_reason="not ")

        return [
            dataclasses.replace(question, checks=tuple(verdicts[question.id].passed))
            for question in questions
            if question.id in verdicts
        ]


def _to_check(kind: str, questions: Sequence[AskedQuestion], *, by_parse: bool = False) -> list[Item]:
    """The items of `CheckRow`; `by_parse` of questions as the parse words them."""
    items = []
    for question in questions:
        inputs: dict[str, Any] = {
            "kind": kind,
            "question": question.question,
            "answers": list(question.answers),
            "passages": [chunk.passage for chunk in question.material.chunks],
        }
        if by_parse:
            inputs["by_parse"] = True
        items.append(Item(question.id, inputs))
    return items


def _words_of_passages(question: AskedQuestion) -> list[str]:
    """Words of the question that are the passages' own, names apart."""
    words_of_passages: set[str] = set()
    for chunk in question.material.chunks:
        words_of_passages.update(content_words(chunk.passage))

    words = [word.strip("?,.") for word in question.question.split()]
    return [word for word in words if word.islower() and set(content_words(word)) & words_of_passages]
