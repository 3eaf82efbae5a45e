"""Collects the passages that answer the questions of a test set, and drops questions that they make unfit."""

from collections.abc import Iterable, Mapping, Sequence

from kraq_dspy.eval.testset_questions import AskedQuestion
from kraq_dspy.eval.testset_steps import TestsetSteps
from kraq_dspy.programs.testset import kinds
from kraq_dspy.programs.testset.checking import CheckGold
from kraq_dspy.programs.testset.gold import GoldFinder, Pool, nearness, says_all_names, says_answer, says_it_of_another
from kraq_dspy.programs.testset.wording import is_about_two
from kraq_dspy.records import Chunk, GoldPassage, content_id
from kraq_dspy.steps.direct import Item

GOLD = "gold"
MOST_GOLD = 6
"""Passages of one question that a reader is asked about, the most frequently found first."""
TOLD_BY = range(2, 9)
"""Passages that a broad question is answered by: of more, nobody knows whether the pool has all."""
NUGGET_SAID = 0.6
"""Share of a nugget's words that a passage has which says it."""


class GoldCollector:
    """Finds the gold passages of questions, and says of which questions they can be the whole gold."""

    def __init__(self, steps: TestsetSteps, finder: GoldFinder) -> None:
        self.steps = steps
        self.finder = finder

    def has_one_answer(self, question: AskedQuestion, pool: Pool) -> bool:
        """Whether no passage says of something else what a question for one fact asks."""
        if not question.is_of_one_fact:
            return True

        source = question.material.chunks[0]
        if says_it_of_another(question.question, question.answers, source, pool):
            self.steps.rejected["has other answers"] += 1
            return False
        return True

    def is_told_by_several(self, passages: Sequence[GoldPassage]) -> bool:
        """Whether a broad question has as many passages as one needs."""
        if len(passages) in TOLD_BY:
            return True

        reason = "is told by one passage" if len(passages) < 2 else "is told by too many passages"
        self.steps.rejected[reason] += 1
        return False

    async def passages_of(
        self, questions: Sequence[AskedQuestion], pools: Mapping[str, Pool]
    ) -> dict[str, list[GoldPassage]]:
        """Return the gold of each question of a kind, by its id: its sources that say an answer, their
        near-duplicates, and what of its pool a reader says answers it."""
        gold = {question.id: self._sources_and_twins(question) for question in questions}

        items: list[Item] = []
        pooled: dict[str, tuple[str, Chunk]] = {}
        for question in questions:
            for chunk, answer in _that_may_answer(question, pools[question.id], gold[question.id]):
                id = content_id(question.id, chunk.id)
                pooled[id] = question.id, chunk
                inputs = {"question": question.question, "answer": answer, "passage": chunk.passage}
                items.append(Item(id, inputs))
        stage = f"{GOLD} {questions[0].material.kind}" if questions else GOLD
        verdicts = await self.steps.outcomes(stage, "judge", CheckGold(), items)

        for id, (question_id, chunk) in pooled.items():
            if id in verdicts and verdicts[id].answered:
                found_by = pools[question_id].found_by(chunk.id)
                gold[question_id][chunk.id] = _gold_passage(chunk, found_by)
        return {id: list(passages.values()) for id, passages in gold.items()}

    def _sources_and_twins(self, question: AskedQuestion) -> dict[str, GoldPassage]:
        """Return what is gold without being read again, by the id of its chunk."""
        sources = [chunk for chunk in question.material.chunks if _is_source(question, chunk)]
        passages = {chunk.id: _gold_passage(chunk, ("source",)) for chunk in sources}
        for source in sources:
            for twin in self.finder.twins(source):
                passages.setdefault(twin.id, _gold_passage(twin, ("twin",)))
        return passages


def _is_source(question: AskedQuestion, chunk: Chunk) -> bool:
    """Whether a passage that was asked about is needed: all are, but of many those that say an item or a nugget."""
    if question.material.kind == kinds.LIST:
        return any(says_answer(answer, chunk.passage) for answer in question.answers)
    if question.material.kind == kinds.BROAD:
        return any(nearness(nugget, chunk.passage) >= NUGGET_SAID for nugget in question.answers)
    return True


def _that_may_answer(question: AskedQuestion, pool: Pool, gold: Mapping[str, GoldPassage]) -> list[tuple[Chunk, str]]:
    """Pooled passages that have an answer, with that answer; those that most retrievers found first."""
    if question.material.kind in (kinds.COMPARISON, kinds.BRIDGE):
        return []

    others = [chunk for chunk in pool.chunks.values() if chunk.id not in gold]
    others.sort(key=lambda chunk: -len(pool.found_by(chunk.id)))

    with_answer = []
    for chunk in others:
        answer = _answer_in(question, chunk)
        if answer:
            with_answer.append((chunk, answer))
    return with_answer[:MOST_GOLD]


def _answer_in(question: AskedQuestion, chunk: Chunk) -> str:
    """An answer that the passage has; of what is asked about two names, its sentence about both. "" for none."""
    if question.material.kind == kinds.BROAD or is_about_two(question.question):
        about = question.material.inputs["about"]
        names = [name for name in about if name in question.question]
        return says_all_names(names, chunk.passage)

    for answer in question.answers:
        if says_answer(answer, chunk.passage):
            return answer
    return ""


def _gold_passage(chunk: Chunk, found_by: Iterable[str]) -> GoldPassage:
    text_id = content_id("text", chunk.text)[:16]
    return GoldPassage(chunk.id, chunk.document_id, chunk.start, chunk.end, text_id, tuple(found_by))
