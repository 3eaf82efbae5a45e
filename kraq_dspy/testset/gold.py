"""Collects the passages that answer the questions of a test set, drops the questions that they make unfit, and writes
rows."""

from collections.abc import Iterable, Mapping, Sequence

from kraq_dspy.records import MADE, Chunk, GoldPassage, TestsetRow, content_id
from kraq_dspy.steps.direct import Item
from kraq_dspy.testset.asking import CheckGold
from kraq_dspy.testset.corpus import AskedQuestion, row_id
from kraq_dspy.testset.difficulty import overlap
from kraq_dspy.testset.gold_finder import GoldFinder, Pool, says_it_of_another
from kraq_dspy.testset.kinds import KINDS
from kraq_dspy.testset.steps import TestsetSteps

GOLD = "gold"
MOST_GOLD = 6
"""Passages of one question that a reader is asked about, the most frequently found first."""


class GoldCollector:
    """Finds the gold passages of questions, and says of which questions they can be the whole gold."""

    def __init__(self, steps: TestsetSteps, finder: GoldFinder) -> None:
        self.steps = steps
        self.finder = finder

    def has_one_answer(self, question: AskedQuestion, pool: Pool) -> bool:
        """Whether no passage says of something else what a question for one fact asks."""
        if not KINDS[question.material.kind].is_of_one_fact:
            return True

        source = question.material.chunks[0]
        if says_it_of_another(question.question, question.answers, source, pool):
            self.steps.rejected["has other answers"] += 1
            return False
        return True

    def source_of(self, question: AskedQuestion) -> str:
        """What a question was asked of: the same for passages whose texts are nearly the same."""
        originals = []
        for chunk in question.material.chunks:
            originals.append(min([chunk.id, *(twin.id for twin in self.finder.twins(chunk))]))
        return content_id(*sorted(originals))

    def is_enough(self, question: AskedQuestion, passages: Sequence[GoldPassage]) -> bool:
        """Whether a question has as many gold passages as its kind needs."""
        lacking = KINDS[question.material.kind].lacks_gold(passages)
        if lacking:
            self.steps.rejected[lacking] += 1
        return not lacking

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
                gold[question_id][chunk.id] = gold_passage(chunk, found_by)
        return {id: list(passages.values()) for id, passages in gold.items()}

    def _sources_and_twins(self, question: AskedQuestion) -> dict[str, GoldPassage]:
        """Return what is gold without being read again, by the id of its chunk."""
        kind = KINDS[question.material.kind]
        sources = [chunk for chunk in question.material.chunks if kind.is_source(question, chunk)]
        passages = {chunk.id: gold_passage(chunk, ("source",)) for chunk in sources}
        for source in sources:
            for twin in self.finder.twins(source):
                passages.setdefault(twin.id, gold_passage(twin, ("twin",)))
        return passages


def _that_may_answer(question: AskedQuestion, pool: Pool, gold: Mapping[str, GoldPassage]) -> list[tuple[Chunk, str]]:
    """Pooled passages that have an answer, with that answer; those that most retrievers found first."""
    kind = KINDS[question.material.kind]
    if not kind.is_pooled:
        return []

    others = [chunk for chunk in pool.chunks.values() if chunk.id not in gold]
    others.sort(key=lambda chunk: -len(pool.found_by(chunk.id)))

    with_answer = []
    for chunk in others:
        answer = kind.answer_in(question, chunk)
        if answer:
            with_answer.append((chunk, answer))
    return with_answer[:MOST_GOLD]


def gold_passage(chunk: Chunk, found_by: Iterable[str]) -> GoldPassage:
    """The place of a chunk, with what tells that it is gold."""
    text_id = content_id("text", chunk.text)[:16]
    return GoldPassage(chunk.id, chunk.document_id, chunk.start, chunk.end, text_id, tuple(found_by))


def row_of(question: AskedQuestion, pool: Pool, passages: Sequence[GoldPassage], *, model: str) -> TestsetRow:
    """Write the row of a question; its kind says where the answers and the documents go."""
    kind = KINDS[question.material.kind]
    documents = tuple(dict.fromkeys(passage.document_id for passage in passages))
    texts = [chunk.passage for chunk in question.material.chunks]
    checks = (*question.checks, "one answer") if kind.is_of_one_fact else question.checks

    row = TestsetRow(
        id=row_id(kind.name, question.question),
        question=question.question,
        type=kind.name,
        answers=question.answers,
        supporting_ids=documents,
        passages=tuple(passages),
        community_id=question.material.community_id,
        community_level=question.material.community_level,
        overlap=round(overlap(question.question, texts), 3),
        solved_by=pool.solved_by(documents),
        model=model,
        checks=checks,
        half=MADE,
    )
    return kind.row(row, question)
