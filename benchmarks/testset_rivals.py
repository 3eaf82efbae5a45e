"""Writes test sets in two other ways by the same language model, for `testset_ranking.py` to hold beside ours.

`write_ragas` follows RAGAS (Es et al., 2024; the synthesizers of its version 0.2): a model lists names and themes of
every passage, passages that share a name or lie near to each other are related, and a persona asks in some style about
one passage or about related ones. `write_autoq` follows the AutoQ of BenchmarkQED (Microsoft, 2025): texts are
clustered, questions are asked of each cluster, put so that they stand alone, and kept where claims of the texts answer
them; of what was asked most, questions about the whole are made. The ideas of the prompts are theirs, the words ours.

A row has the columns that `kraq eval` reads. Every reply is kept in a draft, so an interrupted run goes on; rows are
appended as they come, and stand in the order of the plan once all are there.
"""

import asyncio
import json
import random
import re
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Annotated, Any

import dspy
import numpy as np
import pydantic
from numpy.typing import NDArray
from scipy.cluster.vq import kmeans2

from kraq_dspy._internal.both_ways import call
from kraq_dspy._internal.step import FittingPredict, Step
from kraq_dspy.errors import EvaluationError
from kraq_dspy.ports import Embedder, SilentProgress
from kraq_dspy.records import Chunk, content_id
from kraq_dspy.steps.direct import Done, Item
from kraq_dspy.steps.kept import OutcomesInFile, ProgramRunner, outcome_file
from kraq_dspy.workspace import Workspace

Row = dict[str, Any]
Vectors = NDArray[np.float32]

SPARE = 1.25
"""Scenarios of RAGAS for each row that is wanted: some replies cannot be read."""
N_PERSONAS = 5
STYLES = ("in perfect grammar", "in poor grammar", "with misspelled words", "like words typed into a search engine")
LENGTHS = ("short", "of medium length", "long")
RAGAS_SHARES = {"single_hop": 0.5, "multi_hop_specific": 0.25, "multi_hop_abstract": 0.25}
PASSAGES_PER_ROW, FEWEST_PASSAGES = 3, 12
"""Passages whose names and themes are listed: of 200 rows and 600 passages, all."""
NEAR, NEIGHBOURS = 0.5, 2
"""Passages are related by meaning from this cosine on, up to so many others with each."""

CLUSTERS, TEXTS_PER_CLUSTER = 50, 10
OVERSAMPLED = 2
"""AutoQ's own: clusters, texts of each, and local questions for each that is kept."""
GLOBAL_SHARE = 0.25
"""Questions about the whole, beside each local one; nothing is gold for them."""
PER_CATEGORY = 4
_NUMBERED = re.compile(
    r"\W*((?:texts?\s*)?\d+(?:(?:\s*,\s*|\s+and\s+)\d+)*)\W*[:.)\]]\s*(.+)", re.DOTALL | re.IGNORECASE
)
"""A claim behind the numbers of its texts."""


# RAGAS: who might ask.
class NamePersona(dspy.Signature):
    """Think of one kind of reader who would look things up in texts like this one."""

    passage: str = dspy.InputField()
    role: str = dspy.OutputField(desc="a few words, as a job or a hobby")
    interest: str = dspy.OutputField(desc="one sentence: what they want to know")


# RAGAS: what a passage can be asked about.
class ListTerms(dspy.Signature):
    """List the names that the passage tells of, and the themes that it is about."""

    passage: str = dspy.InputField()
    names: list[str] = dspy.OutputField(desc="people, places, organizations, works; as written, at most ten")
    themes: list[str] = dspy.OutputField(desc="two or three words each, at most ten")


# RAGAS: which of it a persona would ask about.
class ChooseTerms(dspy.Signature):
    """Choose those of the terms that this reader would ask about."""

    reader: str = dspy.InputField()
    terms: list[str] = dspy.InputField()
    chosen: list[str] = dspy.OutputField(desc="copied, the likeliest first")


# RAGAS: themes of several passages that go together.
class CombineThemes(dspy.Signature):
    """Combine themes of different passages that belong together, so that one query can be about both."""

    themes_of_passages: list[list[str]] = dspy.InputField()
    combination: list[str] = dspy.OutputField(desc="two to four themes, copied, from at least two of the passages")


# RAGAS: a query about one passage.
class AskAsReader(dspy.Signature):
    """Write the query that this reader would send about the term, in the given style and length, and answer it.

    The passage alone must be enough for the answer; add nothing that it does not say.
    """

    passage: str = dspy.InputField()
    reader: str = dspy.InputField()
    term: str = dspy.InputField()
    style: str = dspy.InputField()
    length: str = dspy.InputField()
    query: str = dspy.OutputField()
    answer: str = dspy.OutputField()


# RAGAS: a query that takes several passages.
class AskAcross(dspy.Signature):
    """Write the query that this reader would send about the terms, in the given style and length, and answer it.

    The query needs information from every passage. Answer from the passages alone.
    """

    passages: list[str] = dspy.InputField()
    reader: str = dspy.InputField()
    terms: list[str] = dspy.InputField()
    style: str = dspy.InputField()
    length: str = dspy.InputField()
    query: str = dspy.OutputField()
    answer: str = dspy.OutputField()


# AutoQ: concrete questions of a cluster.
class AskOfCluster(dspy.Signature):
    """Note what the texts tell in common (who, what, where, when, why), then ask concrete questions that they answer.

    Each question asks for one fact about something that is named, can be understood without the others, and reads as a
    curious person would put it. All are different.
    """

    texts: list[str] = dspy.InputField()
    count: int = dspy.InputField(desc="of questions")
    background: str = dspy.OutputField()
    questions: list[str] = dspy.OutputField()


# AutoQ: a question that stands alone.
class ExpandQuestion(dspy.Signature):
    """Put the question so that it stands alone: name the people, places, things and times that it means.

    Take them from the background. Stay under thirty words, ask for one thing, and do not hint at the answer.
    """

    background: str = dspy.InputField()
    question: str = dspy.InputField()
    expanded: str = dspy.OutputField()
    categories: list[str] = dspy.OutputField(desc="two to five broad topics that many questions may share")


# AutoQ: what the texts say in answer.
class FindClaims(dspy.Signature):
    """List what the texts claim in answer to the question; nothing if no text answers.

    A claim is one full sentence. Before it stand the numbers of the texts that make it, and a colon.
    """

    texts: list[str] = dspy.InputField(desc="each begins with its number")
    question: str = dspy.InputField()
    claims: list[Annotated[str, pydantic.Field(max_length=300)]] = dspy.OutputField(desc="numbers: sentence")


# AutoQ: questions about the whole.
class AskOfWhole(dspy.Signature):
    """Ask about patterns across all documents on the topic that the given questions share.

    Each question is short, abstract, takes many documents to answer, names its topic, and needs no counting.
    """

    topic: str = dspy.InputField()
    questions: list[str] = dspy.InputField(desc="about single facts")
    count: int = dspy.InputField()
    about_the_whole: list[str] = dspy.OutputField()


class OneStep(dspy.Module):
    """Asks one signature; its outputs are kept."""

    def __init__(self, signature: type[dspy.Signature], *shortened: str) -> None:
        super().__init__()
        self.ask = FittingPredict(signature, *shortened) if shortened else Step(signature)
        self.outputs = {name: field.annotation for name, field in signature.output_fields.items()}

    async def aforward(self, **inputs: Any) -> dspy.Prediction:
        reply = await call(self.ask, **inputs)
        return dspy.Prediction(**{name: reply[name] for name in self.outputs})


class Rival:
    """What both ways need: the passages of an index with their vectors, and steps whose outcomes are kept."""

    def __init__(self, space: Workspace, file: Path, seed: int) -> None:
        self.space, self.file, self.seed = space, file, seed
        self.chunks = list(space.index.all(Chunk))
        self.by_id = {chunk.id: chunk for chunk in self.chunks}
        self.vectors: Vectors = space.index.chunk_vectors.vectors([chunk.id for chunk in self.chunks])
        self.row_of_chunk = {chunk.id: row for row, chunk in enumerate(self.chunks)}
        self.embedder: Embedder = space.embedder
        self.model = space.models.name("generator")
        self._draft = outcome_file(file.with_suffix(".draft"), "the draft of a test set", EvaluationError)
        self._runner = ProgramRunner(space.models, SilentProgress())

    async def made(self, n: int) -> list[Row]:
        """Make the rows, and let go of the models' connections: they belong to this loop."""
        try:
            return await self.rows(n)
        finally:
            await self.space.models.aclose()

    async def rows(self, n: int) -> list[Row]:
        raise NotImplementedError

    def chance(self, *purpose: str) -> random.Random:
        return random.Random(" ".join((str(self.seed), *purpose)))

    async def each(self, stage: str, program: OneStep, items: Sequence[Item]) -> AsyncIterator[Done]:
        """What comes of the items, as it comes; many are asked at the same time."""
        keeper = OutcomesInFile(self._draft, stage, program, self.model)
        async for done in self._runner.ask(stage, self.space.models["generator"], program, items, keeper):
            yield done

    async def all(self, stage: str, program: OneStep, items: Sequence[Item]) -> dict[str, dspy.Prediction]:
        """What came of the items, by id; those that failed are left out."""
        outcomes = {done.id: done.prediction async for done in self.each(stage, program, items)}
        return {item.id: outcomes[item.id] for item in items if item.id in outcomes}

    def append(self, row: Row) -> None:
        with self.file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")

    def write(self, rows: Iterable[Row]) -> None:
        lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]
        self.file.write_text("".join(lines), "utf-8")

    def nearest(self, chunk: Chunk, count: int) -> list[tuple[Chunk, float]]:
        """The nearest passages of other documents, one of each."""
        cosines = self.vectors @ self.vectors[self.row_of_chunk[chunk.id]]
        found: dict[str, tuple[Chunk, float]] = {}
        for row in np.argsort(-cosines, kind="stable"):
            other = self.chunks[row]
            if other.document_id != chunk.document_id:
                found.setdefault(other.document_id, (other, float(cosines[row])))
            if len(found) == count:
                break
        return list(found.values())

    def clusters(self, vectors: Vectors, count: int) -> tuple[Vectors, NDArray[np.int64]]:
        """Centres, and the cluster of each row."""
        centres, labels = kmeans2(vectors.astype(np.float64), count, minit="++", seed=self.seed)
        return centres, labels


@dataclass(frozen=True)
class Scenario:
    """Who asks about which passages, and how."""

    kind: str
    chunks: tuple[Chunk, ...]
    terms: tuple[str, ...]
    reader: str
    style: str
    length: str

    @property
    def id(self) -> str:
        return content_id("ragas", self.kind, *(chunk.id for chunk in self.chunks), *self.terms)[:16]


def write_ragas(space: Workspace, file: Path, n: int, *, seed: int = 0) -> list[Row]:
    """Write up to `n` rows in RAGAS's way; gold are the documents of the passages that a row was made from."""
    return asyncio.run(_Ragas(space, file, seed).made(n))


class _Ragas(Rival):
    async def rows(self, n: int) -> list[Row]:
        n_passages = min(len(self.chunks), max(FEWEST_PASSAGES, PASSAGES_PER_ROW * n))
        passages = self.chance("ragas passages").sample(self.chunks, n_passages)

        terms = await self._terms(passages)
        readers = await self._readers()
        scenarios = await self._scenarios(n, [chunk for chunk in passages if chunk.id in terms], terms, readers)
        by_kind = await self._asked(await self._with_chosen_terms(scenarios))

        wanted = {kind: round(n * share) for kind, share in RAGAS_SHARES.items()}
        rows = [row for kind, count in wanted.items() for row in by_kind[kind][:count]]
        spare = [row for kind, count in wanted.items() for row in by_kind[kind][count:]]
        rows += spare[: n - len(rows)]
        self.write(rows)
        return rows

    async def _terms(self, passages: Sequence[Chunk]) -> dict[str, dspy.Prediction]:
        items = [Item(chunk.id, {"passage": chunk.passage}) for chunk in passages]
        return await self.all("ragas terms", OneStep(ListTerms, "passage"), items)

    async def _readers(self) -> list[str]:
        """Readers of the passages in the middle of the corpus's clusters."""
        centres, _ = self.clusters(self.vectors, min(N_PERSONAS, len(self.chunks)))
        middle = [self.chunks[int(np.argmin(((self.vectors - centre) ** 2).sum(axis=1)))] for centre in centres]
        items = [Item(id, {"passage": self.by_id[id].passage}) for id in dict.fromkeys(chunk.id for chunk in middle)]
        personas = await self.all("ragas personas", OneStep(NamePersona, "passage"), items)
        return [f"{persona.role}: {persona.interest}" for persona in personas.values()]

    async def _scenarios(
        self, n: int, passages: Sequence[Chunk], terms: dict[str, dspy.Prediction], readers: Sequence[str]
    ) -> list[Scenario]:
        """More than are wanted, each kind by its share."""
        counts = {kind: round(n * share * SPARE) + 1 for kind, share in RAGAS_SHARES.items()}
        chosen: list[Scenario] = []

        with_names = [chunk for chunk in passages if terms[chunk.id].names]
        for chunk in with_names[: counts["single_hop"]]:
            chosen.append(self._scenario("single_hop", (chunk,), terms[chunk.id].names, readers))

        for pair, names in self._pairs(passages, terms)[: counts["multi_hop_specific"]]:
            chosen.append(self._scenario("multi_hop_specific", pair, names, readers))

        for chunks, themes in await self._related(passages, terms, counts["multi_hop_abstract"]):
            chosen.append(self._scenario("multi_hop_abstract", chunks, themes, readers))
        return chosen

    def _pairs(
        self, passages: Sequence[Chunk], terms: dict[str, dspy.Prediction]
    ) -> list[tuple[tuple[Chunk, Chunk], list[str]]]:
        """Passages of two documents that share names, in an order by chance."""
        with_name: defaultdict[str, list[Chunk]] = defaultdict(list)
        for chunk in passages:
            for name in dict.fromkeys(name.strip().casefold() for name in terms[chunk.id].names):
                with_name[name].append(chunk)

        shared: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
        for name, chunks in with_name.items():
            for first, second in combinations(chunks, 2):
                if name and first.document_id != second.document_id:
                    shared[first.id, second.id].append(name)

        pairs = [((self.by_id[first], self.by_id[second]), names) for (first, second), names in shared.items()]
        self.chance("ragas pairs").shuffle(pairs)
        return pairs

    async def _related(
        self, passages: Sequence[Chunk], terms: dict[str, dspy.Prediction], count: int
    ) -> list[tuple[tuple[Chunk, ...], list[str]]]:
        """Passages that lie near to each other, with themes of theirs that a model combines."""
        listed = {chunk.id for chunk in passages}
        groups: dict[str, tuple[Chunk, ...]] = {}
        for chunk in passages:
            near = [other for other, cosine in self.nearest(chunk, NEIGHBOURS) if cosine >= NEAR and other.id in listed]
            if near:
                group = (chunk, *near)
                groups.setdefault(content_id(*sorted(each.id for each in group)), group)

        drawn = list(groups)
        self.chance("ragas groups").shuffle(drawn)
        items = []
        for id in drawn[:count]:
            themes = [list(terms[chunk.id].themes) for chunk in groups[id]]
            items.append(Item(id, {"themes_of_passages": themes}))
        combined = await self.all("ragas themes", OneStep(CombineThemes), items)
        return [(groups[id], reply.combination) for id, reply in combined.items() if reply.combination]

    def _scenario(self, kind: str, chunks: tuple[Chunk, ...], terms: Sequence[str], readers: Sequence[str]) -> Scenario:
        draw = self.chance("ragas scenario", kind, *(chunk.id for chunk in chunks))
        return Scenario(kind, chunks, tuple(terms), draw.choice(readers), draw.choice(STYLES), draw.choice(LENGTHS))

    async def _with_chosen_terms(self, scenarios: Sequence[Scenario]) -> list[tuple[Scenario, list[str]]]:
        """Each with the terms that its reader would ask about; all of them where the model chose none."""
        items = [Item(each.id, {"reader": each.reader, "terms": list(each.terms)}) for each in scenarios]
        choices = await self.all("ragas choice", OneStep(ChooseTerms), items)
        with_terms = []
        for scenario in scenarios:
            choice = choices[scenario.id].chosen if scenario.id in choices else []
            with_terms.append((scenario, [term for term in choice if term in scenario.terms] or list(scenario.terms)))
        return with_terms

    async def _asked(self, scenarios: Sequence[tuple[Scenario, list[str]]]) -> dict[str, list[Row]]:
        """Rows by kind, in the order of the scenarios."""
        single, several = [], []
        by_id = {scenario.id: (scenario, terms) for scenario, terms in scenarios}
        for id, (scenario, terms) in by_id.items():
            how = {"reader": scenario.reader, "style": scenario.style, "length": scenario.length}
            passages = [chunk.passage for chunk in scenario.chunks]
            if scenario.kind == "single_hop":
                term = self.chance("ragas term", id).choice(terms)
                single.append(Item(id, {"passage": passages[0], "term": term, **how}))
            else:
                several.append(Item(id, {"passages": passages, "terms": terms[:4], **how}))

        self.write([])
        rows: dict[str, Row] = {}
        programs = (OneStep(AskAsReader, "passage"), OneStep(AskAcross, "passages"))
        for program, items in zip(programs, (single, several), strict=True):
            async for done in self.each("ragas ask", program, items):
                scenario, terms = by_id[done.id]
                if done.prediction.query.strip():
                    rows[done.id] = _ragas_row(scenario, terms, done.prediction, self.model)
                    self.append(rows[done.id])

        by_kind: dict[str, list[Row]] = {kind: [] for kind in RAGAS_SHARES}
        for id, (scenario, _) in by_id.items():
            if id in rows:
                by_kind[scenario.kind].append(rows[id])
        return by_kind


def _ragas_row(scenario: Scenario, terms: Sequence[str], reply: dspy.Prediction, model: str) -> Row:
    return {
        "id": scenario.id,
        "question": reply.query.strip(),
        "answers": [reply.answer],
        "supporting_ids": list(dict.fromkeys(chunk.document_id for chunk in scenario.chunks)),
        "type": scenario.kind,
        "chunk_ids": [chunk.id for chunk in scenario.chunks],
        "reader": scenario.reader,
        "terms": list(terms),
        "style": scenario.style,
        "length": scenario.length,
        "model": model,
    }


def write_autoq(space: Workspace, file: Path, n: int, *, seed: int = 0) -> list[Row]:
    """Write up to `n` local rows in AutoQ's way, and a quarter as many about the whole, for which nothing is gold.

    Gold of a local row are the documents of those texts that a claim was found in; `made_from` has those of its whole
    cluster.
    """
    return asyncio.run(_AutoQ(space, file, seed).made(n))


@dataclass(frozen=True)
class LocalQuestion:
    """A question of a cluster, with what it was expanded from."""

    id: str
    cluster: tuple[Chunk, ...]
    background: str
    asked: str
    text: str = ""
    categories: tuple[str, ...] = ()


class _AutoQ(Rival):
    async def rows(self, n: int) -> list[Row]:
        clusters = self._clusters_of_texts(min(CLUSTERS, max(1, n)))
        expanded = await self._expanded(await self._asked(clusters, -(-n * OVERSAMPLED // len(clusters))))
        candidates = await self._with_claims(expanded)
        local = self._selected(candidates, n)
        rows = [*local, *await self._about_the_whole(local, round(n * GLOBAL_SHARE))]
        self.write(rows)
        return rows

    def _clusters_of_texts(self, count: int) -> list[tuple[Chunk, ...]]:
        """The texts that are nearest to each centre; of a text in the middle of two clusters, each has it."""
        centres, _ = self.clusters(self.vectors, min(count, len(self.chunks)))
        clusters: dict[tuple[str, ...], tuple[Chunk, ...]] = {}
        for centre in centres:
            nearest = np.argsort(((self.vectors - centre) ** 2).sum(axis=1), kind="stable")[:TEXTS_PER_CLUSTER]
            cluster = tuple(self.chunks[row] for row in nearest)
            clusters[tuple(chunk.id for chunk in cluster)] = cluster
        return list(clusters.values())

    async def _asked(self, clusters: Sequence[tuple[Chunk, ...]], count: int) -> list[LocalQuestion]:
        by_id = {content_id(*(chunk.id for chunk in cluster)): cluster for cluster in clusters}
        items = []
        for id, cluster in by_id.items():
            items.append(Item(id, {"texts": [chunk.passage for chunk in cluster], "count": count}))
        replies = await self.all("autoq ask", OneStep(AskOfCluster, "texts"), items)

        questions: dict[str, LocalQuestion] = {}
        for id, reply in replies.items():
            for text in reply.questions[: 2 * count]:
                if text.strip():
                    question = LocalQuestion(content_id("autoq", id, text)[:16], by_id[id], reply.background, text)
                    questions.setdefault(question.id, question)
        return list(questions.values())

    async def _expanded(self, questions: Sequence[LocalQuestion]) -> list[LocalQuestion]:
        """Each question as it stands alone, no two alike."""
        items = [Item(each.id, {"background": each.background, "question": each.asked}) for each in questions]
        replies = await self.all("autoq expand", OneStep(ExpandQuestion, "background"), items)

        distinct: dict[str, LocalQuestion] = {}
        for each in questions:
            reply = replies.get(each.id)
            if reply is not None and reply.expanded.strip():
                text = reply.expanded.strip()
                categories = tuple(category.strip().casefold() for category in reply.categories)
                expanded = LocalQuestion(each.id, each.cluster, each.background, each.asked, text, categories)
                distinct.setdefault(text.casefold(), expanded)
        return list(distinct.values())

    async def _with_claims(self, questions: Sequence[LocalQuestion]) -> list[tuple[LocalQuestion, Row]]:
        """Rows of the questions that a claim answers, in their order."""
        by_id = {each.id: each for each in questions}
        items = []
        for each in questions:
            texts = [f"{number}. {chunk.passage}" for number, chunk in enumerate(each.cluster, start=1)]
            items.append(Item(each.id, {"texts": texts, "question": each.text}))

        self.write([])
        rows: dict[str, Row] = {}
        async for done in self.each("autoq claims", OneStep(FindClaims, "texts"), items):
            row = _autoq_row(by_id[done.id], done.prediction.claims, self.model)
            if row["supporting_ids"]:
                rows[done.id] = row
                self.append(row)
        return [(each, rows[each.id]) for each in questions if each.id in rows]

    def _selected(self, candidates: Sequence[tuple[LocalQuestion, Row]], n: int) -> list[Row]:
        """One question of each of `n` clusters of questions: that which is nearest to its own texts against others,
        times the share of them that answer."""
        if len(candidates) <= n:
            return [row for _, row in candidates]

        embedded = np.array(self.embedder.encode_queries([question.text for question, _ in candidates]))
        _, labels = self.clusters(embedded, n)
        worth = []
        for vector, (question, row) in zip(embedded, candidates, strict=True):
            cosines = self.vectors @ vector
            inside = np.isin(np.arange(len(self.chunks)), [self.row_of_chunk[chunk.id] for chunk in question.cluster])
            ratio = float(cosines[inside].mean() / max(1e-3, cosines[~inside].mean())) if (~inside).any() else 1.0
            worth.append(ratio * len(row["chunk_ids"]) / len(question.cluster))

        order = sorted(range(len(candidates)), key=lambda place: -worth[place])
        first_of_cluster = list({int(labels[place]): place for place in reversed(order)}.values())
        others = [place for place in order if place not in first_of_cluster]
        chosen = sorted([*first_of_cluster, *others[: n - len(first_of_cluster)]][:n])
        return [candidates[place][1] for place in chosen]

    async def _about_the_whole(self, local: Sequence[Row], n: int) -> list[Row]:
        """Questions about the topics that most local questions share."""
        by_category: defaultdict[str, list[str]] = defaultdict(list)
        for row in local:
            for category in row["categories"]:
                by_category[category].append(row["question"])
        largest = Counter({category: len(questions) for category, questions in by_category.items()})
        topics = [category for category, _ in largest.most_common(-(-n // PER_CATEGORY) * 2)]

        items = []
        for topic in topics:
            items.append(Item(topic, {"topic": topic, "questions": by_category[topic][:20], "count": PER_CATEGORY}))
        replies = await self.all("autoq whole", OneStep(AskOfWhole, "questions"), items)
        rows: dict[str, Row] = {}
        for topic, reply in replies.items():
            for text in reply.about_the_whole[:PER_CATEGORY]:
                id = content_id("autoq whole", text)[:16]
                row = {"id": id, "question": text, "answers": [], "supporting_ids": [], "type": "data_global"}
                rows.setdefault(id, {**row, "categories": [topic], "model": self.model})
        return list(rows.values())[:n]


def claim_in(written: str) -> tuple[list[int], str]:
    """Return the numbers of the texts that make a claim, and the claim: no numbers for a claim without them.

    >>> claim_in("1, 3: The bridge was opened in 1932."), claim_in("It is long: 40 m.")
    (([1, 3], 'The bridge was opened in 1932.'), ([], 'It is long: 40 m.'))
    """
    numbered = _NUMBERED.match(written.strip())
    if numbered is None:
        return [], written.strip()
    return [int(number) for number in re.findall(r"\d+", numbered[1])], numbered[2]


def _autoq_row(question: LocalQuestion, written_claims: Sequence[str], model: str) -> Row:
    claims = [claim_in(written) for written in written_claims]
    numbers = dict.fromkeys(number for of_claim, _ in claims for number in of_claim)
    cited = [question.cluster[number - 1] for number in numbers if 0 < number <= len(question.cluster)]
    return {
        "id": question.id,
        "question": question.text,
        "answers": [" ".join(statement for of_claim, statement in claims if of_claim)],
        "supporting_ids": list(dict.fromkeys(chunk.document_id for chunk in cited)),
        "type": "data_local",
        "chunk_ids": [chunk.id for chunk in cited],
        "made_from": list(dict.fromkeys(chunk.document_id for chunk in question.cluster)),
        "categories": list(question.categories),
        "model": model,
    }
