"""Makes a test set from an index: questions of several kinds, each with the passages that answer it.

    testset = make_testset(space, n=200)
    testset.save("test.jsonl")  # kraq eval docs.kraq test.jsonl

kraq writes a question from passages of one part of the corpus and checks it by reading. It looks
for other passages that answer it with several different retrievers, and draws questions so that the
whole set is as hard as human questions. Without a language model the embedded reader asks; what
it cannot ask is left out, and said.
"""

import asyncio
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import dspy

from kraq_dspy._internal.concurrency import gather_all, run_coroutine
from kraq_dspy.errors import ConfigError, counted
from kraq_dspy.ports import Progress, SilentProgress
from kraq_dspy.records import OWN, Chunk, TestsetRow
from kraq_dspy.settings import EMBEDDED
from kraq_dspy.testset import TESTSET_QUESTIONS, kinds
from kraq_dspy.testset.changes import Changes, with_other_premises
from kraq_dspy.testset.corpus import AskedQuestion, Corpus, Material, row_id
from kraq_dspy.testset.difficulty import Candidate, draw, overlap, quotas
from kraq_dspy.testset.gold import GoldCollector, gold_passage, row_of
from kraq_dspy.testset.gold_finder import UNLIKE, GoldFinder, Pool
from kraq_dspy.testset.kinds import materials_of
from kraq_dspy.testset.questions import QuestionWriter
from kraq_dspy.testset.steps import TestsetSteps, writer_role
from kraq_dspy.testset.testset import Testset
from kraq_dspy.workspace import Workspace
from kraq_dspy.workspace.workspace import TRAINSET_QUESTIONS

FEWEST_TRIED, MOST_TRIED = 2, 8
"""Materials that are tried for each that a question is to be made of: before a language model is given up, and at
most."""
TAKEN = "what it asks, another kind asks already"
"""Why a kind has no row, if questions of it passed."""
EXPECTED_TO_PASS = 0.75
"""Share of the materials that give a question, until some have been tried."""
SMALLEST_BATCH = 8
"""Materials of one batch at least, so that few missing questions need no batch each."""
OVERSAMPLED, OVERSAMPLED_BY_RULES = 2.0, 3.0
"""Questions that are made for each that is kept, so that there is something to draw from: by a model, and by rules,
which cost nothing."""
WITHOUT_ANSWER_BY_RULES = 2.0
"""The same of the kinds without an answer: some ask what a fact asks, too, and none of theirs costs anything."""
OWN_DOCUMENTS = range(1, 11)
"""Documents of a community whose question becomes a row: ten passages cannot hold more."""
DO_NOT_KNOW = "I do not know"
"""The gold answer of a question that nothing answers, in the words that the answering signatures ask for."""


@dataclass(frozen=True, slots=True)
class TestsetPlan:
    """The plan of a test set.

    Args:
        n: the most questions of each half.
        shares: the share of each kind of question; by default `kinds.SHARES`.
        seed: the random seed.
        only: ids of passages. Each question must be about one of these passages; None for all passages.
        own: the most questions of the index; by default `n`, or 0 if you choose kinds or passages.
    """

    __test__ = False

    n: int = TESTSET_QUESTIONS
    shares: Mapping[str, float] | None = None
    seed: int = 0
    only: frozenset[str] | None = None
    own: int | None = None

    @property
    def most_own(self) -> int:
        """How many of the index's own questions it has at most."""
        if self.own is not None:
            return self.own
        return self.n if self.shares is None and self.only is None else 0


def make_testset(
    space: Workspace,
    n: int = TESTSET_QUESTIONS,
    *,
    plan: TestsetPlan | None = None,
    shares: Mapping[str, float] | None = None,
    seed: int = 0,
    draft: str | Path | None = None,
    progress: Progress | None = None,
) -> Testset:
    """Make a test set with two halves: questions made of statements, and questions of the index.

    Args:
        space: the open index.
        n: the most questions of each half, 1 or more.
        plan: a whole plan, which replaces `n`, `shares` and `seed`.
        shares: the share of each kind of question, such as `{"fact": 3, "bridge": 2}`.
        seed: the random seed.
        draft: a file that keeps every outcome, so that the same call resumes.
        progress: is called as the making advances.

    Returns:
        The test set. The same index, plan and models make the same one.

    Raises:
        IndexStateError: for an index without passages.
        ConfigError: for an unknown kind, or `n` below 1.

    kraq makes the halves in different ways, so the halves have different faults. A decision of both halves about two
    systems is reliable (`halves`). The model of the role "generator" writes the questions; if the generator has an
    adapter, the model of "default" does. The model of the role "judge" checks the questions. If the embedded model
    writes the questions, a model of the role "asker" puts the questions into better words.

    >>> with Workspace.open("docs.kraq") as space:  # doctest: +SKIP
    ...     make_testset(space, 200).save("test.jsonl")
    """
    plan = plan or TestsetPlan(n, shares, seed)
    if plan.n < 1:
        raise ConfigError(f"A test set of {counted(plan.n, 'question')} was asked for; expected 1 or more.")
    return run_coroutine(_Maker(space, plan, draft, progress or SilentProgress()).make())


def own_rows(space: Workspace, plan: TestsetPlan) -> list[TestsetRow]:
    """Return the half of the questions that the index asked of its own communities, drawn by the plan's seed.

    Gold are the documents of the community, one to ten; topics are left out, since nobody asks by them.
    """
    known = []
    for question in space.index.questions(source="kraq"):
        if len(question.document_ids) in OWN_DOCUMENTS and not question.is_topic:
            known.append(question)
    drawn = random.Random(plan.seed).sample(known, min(plan.most_own, len(known)))

    rows = []
    for question in drawn:
        chunks = space.index.chunks_by_id(list(question.chunk_ids))
        row = TestsetRow(
            id=row_id(OWN, question.text),
            question=question.text,
            type=OWN,
            supporting_ids=question.document_ids,
            passages=tuple(gold_passage(chunk, ("community",)) for chunk in chunks),
            community_id=question.community_id,
            community_level=question.level,
            overlap=round(overlap(question.text, [chunk.passage for chunk in chunks]), 3),
            model=question.model,
            half=OWN,
        )
        rows.append(row)
    return rows


def make_trainset(
    space: Workspace,
    n: int = TRAINSET_QUESTIONS,
    *,
    unanswerable: float = 0.0,
    seed: int = 0,
    progress: Progress | None = None,
) -> list[dspy.Example]:
    """Make questions about the index for DSPy's optimizers and `dspy.Evaluate`.

    Args:
        space: the open index.
        n: the most questions.
        unanswerable: the share of questions that suppose what no document says, in [0, 1).
        seed: the random seed.
        progress: is called as the making advances.

    Returns:
        Examples whose only input is `question`. `answer`, `answers` and `supporting_ids` are gold, and `passages` are
        the texts of the gold passages. Unanswerable examples have no `answers`, the `answer` "I do not know", and
        `answerable` False.

    Raises:
        ConfigError: for a share outside of [0, 1).

    The questions are of the kinds "fact" and "bridge" of a test set. To measure the optimized program, use other
    questions: human ones, or a test set about other documents (`Testset.split`).

    >>> with Workspace.open("docs.kraq") as space:  # doctest: +SKIP
    ...     dspy.BootstrapFewShot(metric=token_f1).compile(program, trainset=make_trainset(space))
    """
    if not 0 <= unanswerable < 1:
        raise ConfigError(f"unanswerable is {unanswerable!r}; expected a share from 0 up to, but not including, 1.")

    answered = 1 - unanswerable
    shares = {kinds.FACT: 2 / 3 * answered, kinds.BRIDGE: 1 / 3 * answered, kinds.FALSE_PREMISE: unanswerable}
    plan = TestsetPlan(n, shares, seed)
    testset = make_testset(space, plan=plan, progress=progress)
    texts = {chunk.id: chunk.passage for chunk in space.index.all(Chunk)}
    return [
        dspy.Example(
            id=row.id,
            question=row.question,
            passages=[texts[passage.chunk_id] for passage in row.passages],
            answers=list(row.answers),
            answer=row.answers[0] if row.answers else DO_NOT_KNOW,
            answerable=row.is_answerable,
            supporting_ids=list(row.supporting_ids),
        ).with_inputs("question")
        for row in testset
    ]


@dataclass(frozen=True, slots=True)
class TestsetEstimate:
    """Calls of models and tokens of prompts that a plan takes at least, where half of all questions pass."""

    __test__ = False

    rows: int
    calls: int
    prompt_tokens: int


def estimate_testset(space: Workspace, plan: TestsetPlan) -> TestsetEstimate:
    """Estimate the cost by arithmetic over the passages; no model is asked."""
    corpus = Corpus.of(space)
    calls = tokens = 0
    for kind, quota in quotas(plan.n, kinds.read_shares(plan.shares)).items():
        n_sources = round(quota * _drawn_from(kind, space.models.name(writer_role(space.models))))
        materials = materials_of(corpus, kind, seed=plan.seed)[: n_sources * 2]
        n_passing = len(materials) // 2

        read = 0
        for material in materials:
            read += sum(chunk.n_tokens for chunk in material.chunks) + 250
        calls += len(materials) + n_passing * 5
        tokens += read + read // 2 + n_passing * 900
    return TestsetEstimate(plan.n, calls, tokens)


def _drawn_from(kind: str, generator: str) -> float:
    """Return how many questions of a kind are made for each that is kept."""
    by_rules = generator == EMBEDDED
    if kind in kinds.WITHOUT_ANSWER:
        return WITHOUT_ANSWER_BY_RULES if by_rules else 1
    return OVERSAMPLED_BY_RULES if by_rules else OVERSAMPLED


class _Maker:
    """One run of `make_testset`."""

    def __init__(self, space: Workspace, plan: TestsetPlan, draft: str | Path | None, progress: Progress) -> None:
        self.space, self.plan = space, plan
        self.shares = kinds.read_shares(plan.shares)
        self.corpus = Corpus.of(space)
        self.steps = TestsetSteps(space, draft, progress)
        self.left_out: dict[str, str] = {}

        has_graph = bool(self.corpus.entities)
        names = [name for name in UNLIKE if has_graph or name != "pagerank"]
        retrievers = {name: space.retriever(name) for name in names}
        self.finder = GoldFinder(retrievers, space.index.chunk_vectors, space.index)

        self.writer = QuestionWriter(self.steps, self.corpus)
        self.gold = GoldCollector(self.steps, self.finder)
        self._pooling = asyncio.Lock()

    async def make(self) -> Testset:
        chosen = draw(await self._distinct_rows(), self.plan.n, self.shares, seed=self.plan.seed)
        rejected = dict(sorted(self.steps.rejected.items()))
        present = {row.type for row in chosen}
        left_out = {}
        for kind in self.shares:
            if kind not in present:
                left_out[kind] = self.left_out.get(kind, TAKEN)
        own = own_rows(self.space, self.plan)
        return Testset((*chosen, *own), rejected, left_out, tuple(self.finder.retrievers))

    async def _distinct_rows(self) -> list[Candidate]:
        """Make more rows than are asked for, no two with the same question, each with its source.

        All kinds are asked at the same time, so that a model is never idle while one of them waits
        for its last reply. Facts alone are asked last, and as many more of them as the other kinds
        lack: most passages have one.
        """
        counts = quotas(self.plan.n, self.shares)
        sources_of = {kind: round(count * _drawn_from(kind, self.steps.generator)) for kind, count in counts.items()}
        others = [kind for kind in counts if kind != kinds.FACT]
        try:
            made = await gather_all(lambda kind: self._rows_of(kind, sources_of[kind]), others)
            rows_by_kind = dict(zip(others, made, strict=True))

            if kinds.FACT in counts:
                lacking = sum(sources_of[kind] - len(_sources(rows_by_kind[kind])) for kind in others)
                rows_by_kind[kinds.FACT] = await self._rows_of(kinds.FACT, sources_of[kinds.FACT] + lacking)
        finally:
            await self.steps.aclose()

        return _each_question_once({kind: rows_by_kind[kind] for kind in counts}, counts)

    async def _rows_of(self, kind: str, n_sources: int) -> list[Candidate]:
        """Make rows of a kind from up to `n_sources` texts, each with the id of what it was asked of.

        Several may be wordings of one question. Materials are tried in batches, each as large as is
        likely to be needed: what is checked and not kept costs as much as what is. A language model
        of whose last batch none passed is not paid for another one.
        """
        materials = materials_of(self.corpus, kind, seed=self.plan.seed)
        if self.plan.only is not None:
            materials = [material for material in materials if material.chunks[0].id in self.plan.only]
        materials = materials[: max(SMALLEST_BATCH, MOST_TRIED * n_sources)]
        rows: list[Candidate] = []
        n_tried = 0
        while n_tried < len(materials):
            n_passed = len(_sources(rows))
            if n_passed >= n_sources:
                break

            size = _batch_size(n_sources - n_passed, n_passed, n_tried)
            batch = materials[n_tried : n_tried + size]
            made = await self._rows_of_batch(kind, batch)
            rows += made
            n_tried += len(batch)

            is_paid_for = self.steps.generator != EMBEDDED
            if is_paid_for and not made and n_tried >= FEWEST_TRIED * n_sources:
                break

        if not rows:
            self.left_out[kind] = "no question passed" if materials else "nothing to ask it of"
        first_sources = set(_sources(rows)[:n_sources])
        return [row for row in rows if row.source in first_sources]

    async def _rows_of_batch(self, kind: str, batch: Sequence[Material]) -> list[Candidate]:
        """Return rows of one batch, in its order, each with the id of what it was asked of."""
        questions = await self.writer.checked_questions(kind, batch)
        pools = await self._pools(questions)
        clear = [question for question in questions if self.gold.has_one_answer(question, pools[question.id])]
        gold = await self.gold.passages_of(clear, pools)
        clear = [question for question in clear if self.gold.is_enough(question, gold[question.id])]

        rows = {
            each.id: row_of(each, pools[each.id], gold[each.id], model=each.worded_by or self.steps.generator)
            for each in clear
        }
        if kinds.KINDS[kind].is_changed:
            rows = await with_other_premises(clear, rows, Changes(self.corpus), self.steps, seed=self.plan.seed)
        return [Candidate(rows[each.id], self.gold.source_of(each)) for each in clear if each.id in rows]

    async def _pools(self, questions: Sequence[AskedQuestion]) -> dict[str, Pool]:
        """Look the questions up in a thread, one kind after another: meanwhile replies for the others come in."""

        def look_up() -> dict[str, Pool]:
            return {question.id: self.finder.pool(question.question) for question in questions}

        async with self._pooling:
            return await asyncio.to_thread(look_up)


def _batch_size(n_lacking: int, n_passed: int, n_tried: int) -> int:
    """Return how many materials to try for so many more that pass, by the share that passed so far.

    >>> _batch_size(60, 0, 0), _batch_size(20, 40, 80), _batch_size(1, 59, 120)
    (80, 40, 8)
    """
    share = n_passed / n_tried if n_tried else EXPECTED_TO_PASS
    likely = math.ceil(n_lacking / share) if share else n_lacking
    return max(SMALLEST_BATCH, likely)


def _each_question_once(rows_by_kind: Mapping[str, Sequence[Candidate]], counts: Mapping[str, int]) -> list[Candidate]:
    """Return the rows without those whose question another kind asks, too.

    A kind with an answer keeps as many as the set needs of it (`counts`), then the kinds without an answer have their
    turn, as many as it needs of them: a small corpus gives few questions. Of two kinds alike the later one keeps it,
    which is the rarer.
    """
    ranked: list[tuple[int, Candidate]] = []
    for kind in sorted(rows_by_kind, key=lambda kind: kind in kinds.WITHOUT_ANSWER):
        needed, spare, asked = 3, 1, set[str]()
        if kind in kinds.WITHOUT_ANSWER:
            needed, spare = 2, 0
            asked = {each.question for rank, each in ranked if rank == 3}
        own = [each for each in rows_by_kind[kind] if each.question not in asked]
        enough = set(_sources(own)[: counts[kind]])
        ranked += [(needed if each.source in enough else spare, each) for each in own]

    in_order = sorted(ranked, key=lambda entry: entry[0])
    kept_by = {each.question: each for _, each in in_order}
    return [each for rows in rows_by_kind.values() for each in rows if kept_by[each.question] is each]


def _sources(rows: Sequence[Candidate]) -> list[str]:
    """Return what the rows were asked of, each once, in their order."""
    return list(dict.fromkeys(row.source for row in rows))
