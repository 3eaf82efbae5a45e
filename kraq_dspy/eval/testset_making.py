"""Makes a test set from an index: questions of several kinds, each with the passages that answer it.

    testset = make_testset(space, n=200)
    testset.save("test.jsonl")  # kraq eval docs.kraq test.jsonl

A question is asked of passages of one part of the corpus, checked by reading, looked up with unlike retrievers for
other passages that answer it, and drawn so that the whole is as hard as people's questions are. Without a language
model the embedded reader asks; what it cannot ask is left out, and said.
"""

import dataclasses
import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import dspy

from kraq_dspy._internal.concurrency import run_coroutine
from kraq_dspy.errors import IndexStateError
from kraq_dspy.eval.defaults import TESTSET_QUESTIONS
from kraq_dspy.eval.testset import Testset
from kraq_dspy.eval.testset_draft import TestsetDraft
from kraq_dspy.language.text import content_words
from kraq_dspy.ports import Progress, SilentProgress
from kraq_dspy.programs.testset import kinds
from kraq_dspy.programs.testset.asking import AskForRow, PutOtherwise, SupposeOfAnother, fault_in
from kraq_dspy.programs.testset.checking import CheckGold, CheckRow
from kraq_dspy.programs.testset.difficulty import Candidate, draw, overlap, quotas
from kraq_dspy.programs.testset.examinees import Examinees
from kraq_dspy.programs.testset.gold import (
    UNLIKE,
    GoldFinder,
    Pool,
    nearness,
    says_all_names,
    says_answer,
    says_it_of_another,
)
from kraq_dspy.programs.testset.item_response import MOST_TOLD, information
from kraq_dspy.programs.testset.materials import Corpus, Material
from kraq_dspy.programs.testset.wording import by_other_names, is_about_two, other_names, shorter
from kraq_dspy.records import Chunk, Community, Entity, GoldPassage, TestsetRow, content_id
from kraq_dspy.settings import EMBEDDED
from kraq_dspy.steps.direct import Item
from kraq_dspy.steps.kept import ProgramRunner
from kraq_dspy.workspace import Workspace
from kraq_dspy.workspace.workspace import TRAINSET_QUESTIONS

ASK, CHANGE, REWORD, CHECK, GOLD = "ask", "change", "reword", "check", "gold"
MOST_BATCHES = 4
"""Times that more questions of a kind are asked, where too few passed."""
OVERSAMPLED = 2.0
"""Questions that are made for each that is kept, so that there is something to draw from."""
MOST_GOLD = 6
"""Passages of one question that a reader is asked about, the most frequently found first."""
OF_ONE_FACT = frozenset((kinds.FACT, *kinds.WITHOUT_ANSWER))
"""Kinds whose questions no other passage may answer otherwise."""
TOLD_BY = range(2, 9)
"""Passages that a broad question is answered by: of more, nobody knows whether the pool has all."""
NUGGET_SAID = 0.6
"""Share of a nugget's words that a passage has which says it."""


@dataclass(frozen=True, slots=True)
class TestsetPlan:
    """What is to be made. `shares` by kind (default: `kinds.SHARES`); `oversampled` rows are made for each one kept.

    `gold_by` are the retrievers that passages are pooled from; without a graph, "pagerank" is left out. `only` are ids
    of passages, of which the first of each question is one; None for all.
    """

    __test__ = False

    n: int = TESTSET_QUESTIONS
    shares: Mapping[str, float] | None = None
    seed: int = 0
    oversampled: float = OVERSAMPLED
    gold_by: tuple[str, ...] = UNLIKE
    only: frozenset[str] | None = None


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
    """A test set of up to `n` questions, asked of all parts of the index.

    >>> with Workspace.open("docs.kraq") as space:  # doctest: +SKIP
    ...     make_testset(space, 200).save("test.jsonl")

    The model of the role "generator" asks, that of "judge" checks. With `draft`, every outcome is written to that file
    as it comes, and the same call goes on where it was interrupted. The same index, plan and models make the same set.
    A `plan` says more than `n`, `shares` and `seed`, and stands in their place.

    Raises IndexStateError for an index without passages, ConfigError for an unknown kind.
    """
    plan = plan or TestsetPlan(n, shares, seed)
    return run_coroutine(_Maker(space, plan, draft, progress or SilentProgress()).make())


def make_trainset(
    space: Workspace, n: int = TRAINSET_QUESTIONS, *, seed: int = 0, progress: Progress | None = None
) -> list[dspy.Example]:
    """Questions that the index answers, for DSPy's optimizers: `question` and `passages` are inputs, `answers` gold.

    >>> with Workspace.open("docs.kraq") as space:  # doctest: +SKIP
    ...     dspy.BootstrapFewShot(metric=token_f1).compile(program, trainset=make_trainset(space))

    They are facts and bridges of a test set, with the texts of their gold passages. Measure on other questions: on
    people's, or on a set of another seed whose documents are others (`Testset.split`).
    """
    made = make_testset(space, plan=TestsetPlan(n, {kinds.FACT: 2, kinds.BRIDGE: 1}, seed), progress=progress)
    texts = {chunk.id: chunk.passage for chunk in space.index.all(Chunk)}
    return [
        dspy.Example(
            id=row.id,
            question=row.question,
            passages=[texts[passage.chunk_id] for passage in row.passages],
            answers=list(row.answers),
            answer=row.answers[0],
            supporting_ids=list(row.supporting_ids),
        ).with_inputs("question", "passages")
        for row in made
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
    corpus = corpus_of(space)
    calls = tokens = 0
    for kind, wanted in quotas(plan.n, kinds.read_shares(plan.shares)).items():
        drawn_from = 1 if kind in kinds.WITHOUT_ANSWER else plan.oversampled
        materials = corpus.materials(kind, seed=plan.seed)[: round(wanted * drawn_from) * 2]
        read = sum(sum(chunk.n_tokens for chunk in material.chunks) + 250 for material in materials)
        calls += len(materials) + len(materials) // 2 * 5
        tokens += read + read // 2 + len(materials) // 2 * 900
    return TestsetEstimate(plan.n, calls, tokens)


@dataclass(frozen=True)
class _Asked:
    """A question on its way to a row."""

    material: Material
    question: str
    answers: tuple[str, ...]
    checks: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        return content_id(self.material.id, self.question)

    @property
    def source(self) -> str:
        """What it was asked of: of the questions that one text gave, a set has one."""
        return content_id(*sorted(chunk.id for chunk in self.material.chunks))


class _Maker:
    """One run of `make_testset`."""

    def __init__(self, space: Workspace, plan: TestsetPlan, draft: str | Path | None, progress: Progress) -> None:
        self.space, self.plan = space, plan
        self.shares = kinds.read_shares(plan.shares)
        self.corpus = corpus_of(space)
        self.other_names = other_names(self.corpus.entities)
        self.draft = TestsetDraft(None if draft is None else Path(draft))
        self.runner = ProgramRunner(space.models, progress)
        self.progress = progress
        self.model = space.models.name("generator")
        has_graph = bool(self.corpus.entities)
        names = [name for name in plan.gold_by if has_graph or name != "pagerank"]
        self.gold = GoldFinder({name: space.retriever(name) for name in names}, space.index.chunk_vectors, space.index)
        self.rejected: Counter[str] = Counter()
        self.left_out: dict[str, str] = {}

    async def make(self) -> Testset:
        candidates = await self.candidates()
        chosen = draw(candidates, self.plan.n, self.shares, seed=self.plan.seed)
        return Testset(tuple(chosen), dict(self.rejected), self.left_out, tuple(self.gold.retrievers))

    async def candidates(self) -> list[Candidate]:
        """Make more rows than are asked for, no two with the same question.

        Facts are asked last, and as many more of them as the other kinds lack: most passages have one.
        """
        made: dict[str, list[tuple[TestsetRow, str]]] = {}
        lacking = 0
        try:
            counts = quotas(self.plan.n, self.shares)
            for kind in sorted(counts, key=lambda kind: kind == kinds.FACT):
                drawn_from = 1 if kind in kinds.WITHOUT_ANSWER else self.plan.oversampled
                wanted = round(counts[kind] * drawn_from) + (lacking if kind == kinds.FACT else 0)
                made[kind] = await self._rows_of(kind, wanted)
                lacking += wanted - len({source for _, source in made[kind]})
        finally:
            self.draft.close()
            await self.space.models.aclose()

        in_order = [row for kind in counts for row in made[kind]]
        distinct = {
            row.question.casefold(): (row, source) for row, source in in_order
        }  # later kinds are the rarer ones
        return self._candidates(list(distinct.values()))

    def _candidates(self, made: Sequence[tuple[TestsetRow, str]]) -> list[Candidate]:
        """The rows with what they were asked of, and how much they tell of a retriever that nobody has measured yet."""
        answerable = [row for row, _ in made if row.is_answerable]
        examinees = Examinees(self.corpus.chunks, self.space.index.chunk_vectors, self.space.embedder)
        recalls = examinees.recalls([row.question for row in answerable], [row.supporting_ids for row in answerable])
        told = dict(zip((row.id for row in answerable), information(recalls).tolist(), strict=True))
        return [Candidate(row, source, told.get(row.id, MOST_TOLD)) for row, source in made]

    async def _rows_of(self, kind: str, wanted: int) -> list[tuple[TestsetRow, str]]:
        """Rows of a kind, each with the id of what it was asked of: several may be wordings of one question."""
        materials = self.corpus.materials(kind, seed=self.plan.seed)
        if self.plan.only is not None:
            materials = [one for one in materials if one.chunks[0].id in self.plan.only]
        rows: list[tuple[TestsetRow, str]] = []
        for number in range(MOST_BATCHES):
            lacking = wanted - len({source for _, source in rows})
            batch, materials = materials[: max(8, lacking * 2)], materials[max(8, lacking * 2) :]
            if lacking <= 0 or not batch:
                break
            rows += await self._made(kind, batch, f"{kind} {number}")
        if not rows:
            self.left_out[kind] = "no question passed" if materials or self.rejected else "nothing to ask it of"
        kept = list(dict.fromkeys(source for _, source in rows))[:wanted]
        return [(row, source) for row, source in rows if source in set(kept)]

    async def _made(self, kind: str, batch: Sequence[Material], name: str) -> list[tuple[TestsetRow, str]]:
        """Rows of one batch, in its order."""
        asked = await self._ask(kind, batch)
        if self.model == EMBEDDED:
            asked = await self._all_wordings(await self._check(kind, asked))
        else:
            asked = await self._check(kind, await self._reword(asked))
        pools = {one.id: self.gold.pool(one.question) for one in asked}
        clear = [one for one in asked if self._has_one_answer(one, pools[one.id])]
        gold = await self._gold_of(clear, pools)
        if kind == kinds.BROAD:
            clear = [one for one in clear if self._is_told_by_several(gold[one.id])]
        rows = [self._row(kind, one, pools[one.id], gold[one.id]) for one in clear]
        if kind == kinds.FALSE_PREMISE:
            return await self._suppose(clear, rows)
        return [(row, one.source) for row, one in zip(rows, clear, strict=True)]

    async def _outcomes(
        self, stage: str, role: str, program: dspy.Module, items: Sequence[Item]
    ) -> dict[str, dspy.Prediction]:
        """Return what the program made of each item, by its id; what failed is counted."""
        lm = self.space.models[role]
        keeper = self.draft.keeper(stage, program, self.space.models.name(role))
        self.progress.start(stage, len(items))
        outcomes = {}
        async for done in self.runner.ask(stage, lm, program, items, keeper):
            outcomes[done.id] = done.prediction
        self.progress.finish(stage)
        self.rejected["failed"] += len(items) - len(outcomes)
        return outcomes

    async def _ask(self, kind: str, batch: Sequence[Material]) -> list[_Asked]:
        items = [Item(material.id, material.inputs, document=material.chunks[0].document_id) for material in batch]
        outcomes = await self._outcomes(f"{ASK} {kind}", "generator", AskForRow(kind), items)
        asked = []
        for material in batch:
            made = outcomes.get(material.id)
            if made is not None and made.rejected:
                self.rejected[made.rejected] += 1
            elif made is not None:
                asked.append(_Asked(material, made.question, tuple(made.answers)))
        return asked

    async def _reword(self, asked: Sequence[_Asked]) -> list[_Asked]:
        """Every second question in other words than its passages': what people ask lies between."""
        put = await self._put_otherwise([one for place, one in enumerate(asked) if place % 2])
        return [dataclasses.replace(one, question=put.get(one.id, one.question)) for one in asked]

    async def _all_wordings(self, asked: Sequence[_Asked]) -> list[_Asked]:
        """Put each question as it is, shorter, by other names, and each of these in other words; at most one is drawn.

        Rules cost nothing, and keep what was checked: the answer is the same, and `_has_one_answer` drops what is now
        said of something else, too.
        """
        wordings: dict[str, list[str]] = {}
        for one in asked:
            names = self.corpus.names_in(one.material)
            renamed = by_other_names(one.question, names, self.other_names)
            is_fact = one.material.kind in OF_ONE_FACT and not is_about_two(one.question)
            short = shorter(one.question) if is_fact else []
            wordings[one.id] = [text for text in (one.question, renamed, *short) if text]
        plain = [dataclasses.replace(one, question=text) for one in asked for text in wordings[one.id]]
        put = await self._put_otherwise([one for one in plain if not is_about_two(one.question)])
        reworded = [dataclasses.replace(one, question=put.get(one.id, one.question)) for one in plain]
        together = {one.id: one for one in [*plain, *reworded]}
        return [one for one in together.values() if self._hides_answer(one)]

    def _hides_answer(self, one: _Asked) -> bool:
        hidden = list(one.material.names) if one.material.kind == kinds.BRIDGE else []
        texts = [chunk.passage for chunk in one.material.chunks]
        return not fault_in(one.question, one.answers, texts, one.material.kind, hidden)

    async def _put_otherwise(self, asked: Sequence[_Asked]) -> dict[str, str]:
        """Questions in other words than their passages', by the id of each."""
        items = [Item(one.id, {"question": one.question, "avoid": _said_words(one)}) for one in asked]
        outcomes = await self._outcomes(REWORD, "generator", PutOtherwise(), items)
        return {id: made.question for id, made in outcomes.items()}

    async def _check(self, kind: str, asked: Sequence[_Asked]) -> list[_Asked]:
        items = [
            Item(
                one.id,
                {
                    "kind": kind,
                    "question": one.question,
                    "answers": list(one.answers),
                    "passages": [chunk.passage for chunk in one.material.chunks],
                },
            )
            for one in asked
        ]
        outcomes = await self._outcomes(f"{CHECK} {kind}", "judge", CheckRow(), items)
        passed = []
        for one in asked:
            checked = outcomes.get(one.id)
            if checked is not None and checked.rejected:
                self.rejected[f"not {checked.rejected}"] += 1
            elif checked is not None:
                passed.append(dataclasses.replace(one, checks=tuple(checked.passed)))
        return passed

    def _has_one_answer(self, one: _Asked, pool: Pool) -> bool:
        """Whether no passage says of something else what a question for one fact asks."""
        if (
            one.material.kind in OF_ONE_FACT
            and not is_about_two(one.question)
            and says_it_of_another(one.question, one.answers, one.material.chunks[0], pool)
        ):
            self.rejected["has other answers"] += 1
            return False
        return True

    def _is_told_by_several(self, passages: Sequence[GoldPassage]) -> bool:
        if len(passages) in TOLD_BY:
            return True
        self.rejected["is told by one passage" if len(passages) < 2 else "is told by too many passages"] += 1
        return False

    async def _gold_of(self, asked: Sequence[_Asked], pools: Mapping[str, Pool]) -> dict[str, list[GoldPassage]]:
        """The passages of each question: its sources that say an answer, their near-duplicates, and what was pooled."""
        gold: dict[str, dict[str, GoldPassage]] = {}
        items: list[Item] = []
        candidates: dict[str, tuple[str, Chunk]] = {}
        for one in asked:
            sources = [chunk for chunk in one.material.chunks if _is_source(one, chunk)]
            known = {chunk.id: _gold_passage(chunk, ("source",)) for chunk in sources}
            for twin in (twin for chunk in sources for twin in self.gold.twins(chunk)):
                known.setdefault(twin.id, _gold_passage(twin, ("twin",)))
            gold[one.id] = known
            for chunk, answer in _that_may_answer(one, pools[one.id], known):
                id = content_id(one.id, chunk.id)
                candidates[id] = one.id, chunk
                items.append(Item(id, {"question": one.question, "answer": answer, "passage": chunk.passage}))
        outcomes = await self._outcomes(GOLD, "judge", CheckGold(), items)
        for id, (asked_id, chunk) in candidates.items():
            if id in outcomes and outcomes[id].answered:
                found_by = pools[asked_id].found_by(chunk.id)
                gold[asked_id][chunk.id] = _gold_passage(chunk, found_by)
        return {id: list(known.values()) for id, known in gold.items()}

    def _row(self, kind: str, one: _Asked, pool: Pool, passages: Sequence[GoldPassage]) -> TestsetRow:
        documents = tuple(dict.fromkeys(passage.document_id for passage in passages))
        texts = [chunk.passage for chunk in one.material.chunks]
        row = TestsetRow(
            id=content_id("testset", kind, one.question)[:16],
            question=one.question,
            type=kind,
            answers=one.answers,
            supporting_ids=documents,
            passages=tuple(passages),
            community_id=one.material.community_id,
            community_level=one.material.community_level,
            overlap=round(overlap(one.question, texts), 3),
            solved_by=pool.solved_by(documents),
            model=self.model,
            checks=(*one.checks, *(("one answer",) if kind in OF_ONE_FACT else ())),
        )
        if kind == kinds.LIST:
            return dataclasses.replace(row, answer_items=tuple((item,) for item in one.answers))
        if kind == kinds.BROAD:
            return dataclasses.replace(row, answers=(". ".join(one.answers),), nuggets=one.answers)
        if kind == kinds.UNANSWERABLE:
            return dataclasses.replace(row, answers=(), supporting_ids=(), hidden_documents=documents, solved_by=())
        return row

    async def _suppose(self, asked: Sequence[_Asked], rows: Sequence[TestsetRow]) -> list[tuple[TestsetRow, str]]:
        """The questions about another name, of which no passage of the corpus says what is supposed."""
        draw_names = random.Random(f"names {self.plan.seed}")
        by_type: dict[str, list[Entity]] = {}
        for entity in self.corpus.entities:
            by_type.setdefault(entity.type, []).append(entity)
        named = {name: entity for entity in self.corpus.entities for name in entity.names}
        swaps: dict[str, tuple[str, Entity]] = {}
        items = []
        for one in asked:
            names = [name for name in one.material.inputs["about"] if name in one.question and name in named]
            if not names:
                self.rejected["names nothing that could be another"] += 1
                continue
            name = max(names, key=len)
            others = [each for each in by_type[named[name].type] if each.id != named[name].id]
            other = draw_names.choice(others) if others else None
            if other is None or _stand_together(other, named[name]):
                self.rejected["names nothing that could be another"] += 1
                continue
            swaps[one.id] = name, other
            items.append(Item(one.id, {"question": one.question, "name": name, "other": other.name}))
        outcomes = await self._outcomes(CHANGE, "generator", SupposeOfAnother(), items)

        made = []
        for one, row in zip(asked, rows, strict=True):
            changed = outcomes.get(one.id)
            if changed is None:
                continue
            if changed.rejected or self._is_said(changed.question):
                self.rejected[changed.rejected or "is said of the other name, too"] += 1
                continue
            id = content_id("testset", row.type, changed.question)[:16]
            checks = (*row.checks, "absent from the corpus")
            unanswered = dataclasses.replace(row, answers=(), supporting_ids=(), passages=(), solved_by=())
            row_of_another = dataclasses.replace(unanswered, id=id, question=changed.question, checks=checks)
            made.append((row_of_another, one.source))
        return made

    def _is_said(self, question: str) -> bool:
        """Whether any passage of the corpus has nearly all that the question supposes in one sentence."""
        return any(nearness(question, chunk.passage) >= 0.9 for chunk in self.corpus.chunks)


def corpus_of(space: Workspace) -> Corpus:
    """Return what questions are asked of. Raises IndexStateError for an index without passages."""
    index = space.index
    chunks = list(index.all(Chunk))
    if not chunks:
        raise IndexStateError(f"{str(index.path)!r} has no passages to ask about. Build it again: kraq index CORPUS")
    return Corpus(chunks, list(index.all(Entity)), list(index.all(Community)))


def _is_source(one: _Asked, chunk: Chunk) -> bool:
    """Whether a passage that was asked about is needed: all are, but of many those that say an item or a nugget."""
    if one.material.kind == kinds.LIST:
        return any(says_answer(answer, chunk.passage) for answer in one.answers)
    if one.material.kind == kinds.BROAD:
        return any(nearness(nugget, chunk.passage) >= NUGGET_SAID for nugget in one.answers)
    return True


def _that_may_answer(one: _Asked, pool: Pool, known: Mapping[str, GoldPassage]) -> list[tuple[Chunk, str]]:
    """Pooled passages that have an answer, with that answer; those that most retrievers found first."""
    if one.material.kind in (kinds.COMPARISON, kinds.BRIDGE):
        return []
    others = [chunk for chunk in pool.chunks.values() if chunk.id not in known]
    others.sort(key=lambda chunk: -len(pool.found_by(chunk.id)))
    found = []
    for chunk in others:
        if answer := _answer_in(one, chunk):
            found.append((chunk, answer))
    return found[:MOST_GOLD]


def _answer_in(one: _Asked, chunk: Chunk) -> str:
    """An answer that the passage has; of what is asked about two names, its sentence about both. "" for none."""
    if one.material.kind == kinds.BROAD or is_about_two(one.question):
        names = [name for name in one.material.inputs["about"] if name in one.question]
        return says_all_names(names, chunk.passage)
    return next((answer for answer in one.answers if says_answer(answer, chunk.passage)), "")


def _gold_passage(chunk: Chunk, found_by: Iterable[str]) -> GoldPassage:
    return GoldPassage(
        chunk.id, chunk.document_id, chunk.start, chunk.end, content_id("text", chunk.text)[:16], tuple(found_by)
    )


def _said_words(one: _Asked) -> list[str]:
    """Words of the question that are the passages' own, names apart."""
    said = {word for chunk in one.material.chunks for word in content_words(chunk.passage)}
    words = [word.strip("?,.") for word in one.question.split()]
    return [word for word in words if word.islower() and set(content_words(word)) & said]


def _stand_together(entity: Entity, other: Entity) -> bool:
    """Whether a passage names both."""
    return not set(entity.chunk_ids).isdisjoint(other.chunk_ids)
