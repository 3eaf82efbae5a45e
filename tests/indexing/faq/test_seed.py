"""Seeds an FAQ cache from an index's questions, by a program whose answers are known."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dspy
import pytest

from kraq_dspy import Index
from kraq_dspy.asset.store.faq import NewEntry, content_hash
from kraq_dspy.errors import BudgetExceededError, IndexStateError, ModelError
from kraq_dspy.extend import FaqCache, LanguageModels
from kraq_dspy.indexing.faq.seed import SeedReport, seed_answers
from kraq_dspy.records import AnswerSource, Chunk, Document, Hit, Question
from kraq_dspy.settings import RunSettings, Settings

DOCUMENT = Document("d1", "Mill", "The mill stands near the tower.")
CHUNK = Chunk("c1", "d1", 0, 0, 31, DOCUMENT.text, 8, "Mill")
REPORT = Chunk("r1", "community 1", 0, 0, 2, "A report.", 2)  # as GraphRAG's searches give: no document
TEXTS = ("What stands near the tower?", "Who built the mill?", "Why?")


class Knows(dspy.Module):
    """Answers what it was told; counts what it was asked."""

    def __init__(self, **answers: Any) -> None:
        super().__init__()
        self.answers = answers
        self.questions: list[str] = []

    async def aforward(self, question: str) -> dspy.Prediction:
        self.questions.append(question)
        await asyncio.sleep(0)
        answer = self.answers[question.split()[0].strip("?")]
        if isinstance(answer, Exception):
            raise answer
        hits = [Hit(CHUNK, 1.0, question), Hit(REPORT, 0.5, question)]
        return dspy.Prediction(answer=answer, hits=hits)


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    with Index.create(tmp_path / "i.kraq", Settings(), encoder_name="none", encoder_dimension=2) as index:
        index.add([DOCUMENT, CHUNK])
        index.add([Question(f"q{n}", text, "kraq", None, 0, (), ()) for n, text in enumerate(TEXTS)])
        index.add([Question("twice", "What's near the tower?", "kraq", None, 1, (), (), "", "q0")])
        index.add([Question("random", "Who else?", "random", None, -1, (), ())])
        yield index


def seeded(index: Index, faq: FaqCache, program: dspy.Module, **options: Any) -> SeedReport:
    models = LanguageModels(Settings(run=RunSettings(concurrency=1)))
    return seed_answers(index, faq, program, models, by="ann", **options)


def test_answers_wait_with_their_documents_and_what_is_not_known_waits_with_its_evidence(
    index: Index, faq: FaqCache
) -> None:
    program = Knows(What="The mill.", Who="I don't know.", Why="")
    report = seeded(index, faq, program)
    assert (report.questions, report.known, report.answered, report.unanswered) == (3, 0, 1, 2)
    mill, built, why = faq.entries()
    assert (mill.answer, mill.status, mill.origin, mill.changed_by) == ("The mill.", "pending", "kraq", "ann")
    assert mill.sources == (AnswerSource("d1", content_hash(DOCUMENT)),)
    assert (built.answer, built.status, built.given) == ("", "pending", "I don't know.")
    assert [evidence.text for evidence in built.evidence] == ["Mill\nThe mill stands near the tower.", "A report."]
    assert why.given == ""


def test_what_is_there_or_was_taken_out_is_not_asked_again(index: Index, faq: FaqCache) -> None:
    faq.add(NewEntry("what stands near the tower", "A mill."), by="bob")
    faq.remove(faq.add(NewEntry("Why?", "So."), by="bob").number, by="bob")
    index.add([Question("empty", " ?", "kraq", None, 0, (), ())])  # what a model may make of a summary
    program = Knows(Who="Ann.")
    report = seeded(index, faq, program, approve=True)
    assert (report.known, report.answered, program.questions) == (3, 1, [TEXTS[1]])
    assert faq.entries("approved")[-1].answer == "Ann."
    assert seeded(index, faq, Knows()).known == 4


def test_a_limit_bounds_the_new_questions_and_the_next_run_goes_on(index: Index, faq: FaqCache) -> None:
    first = Knows(What="The mill.")
    assert seeded(index, faq, first, limit=1).answered == 1
    second = Knows(Who="Ann.", Why="So.")
    assert seeded(index, faq, second, limit=5).answered == 2
    assert second.questions == list(TEXTS[1:])


class LateAtFirst(Knows):
    """Answers the question that it is asked first last."""

    async def aforward(self, question: str) -> dspy.Prediction:
        await asyncio.sleep(0.05 if question == TEXTS[0] else 0)
        return await super().aforward(question)


def test_entries_are_numbered_by_their_questions_whichever_is_answered_first(index: Index, faq: FaqCache) -> None:
    models = LanguageModels(Settings(run=RunSettings(concurrency=3)))
    seed_answers(index, faq, LateAtFirst(What="The mill.", Who="Ann.", Why="So."), models, by="ann")
    asked = [question.text for question in index.questions(source="kraq") if question.duplicate_of is None]
    assert [(entry.number, entry.question) for entry in faq.entries()] == list(enumerate(asked, start=1))


def test_a_failure_costs_its_question_and_a_spent_budget_keeps_what_was_answered(index: Index, faq: FaqCache) -> None:
    report = seeded(index, faq, Knows(What=ValueError("no"), Who="Ann.", Why="So."))
    assert [(failure.item_id, failure.reason) for failure in report.failures] == [("q0", "ValueError: no")]
    faq.remove(2, by="ann")  # entries are numbered by their questions; the first failed
    faq.remove(3, by="ann")
    with pytest.raises(BudgetExceededError):
        seeded(index, faq, Knows(What=BudgetExceededError("enough")))
    with pytest.raises(ModelError, match="All 1 questions failed; the last reason: ValueError: no"):
        seeded(index, faq, Knows(What=ValueError("no")))


def test_an_index_without_questions_says_what_to_do(index: Index, faq: FaqCache) -> None:
    index.replace(Question, [])
    with pytest.raises(IndexStateError, match="kraq index"):
        seeded(index, faq, Knows())
