"""Answers from the graph around a question's entities: GraphRAG's local search (Edge et al., 2024)."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, asdict, dataclass
from itertools import chain
from typing import Any, TypeVar

import dspy

from kraq_dspy._internal.both_ways import call
from kraq_dspy._internal.clock import Clock
from kraq_dspy._internal.concurrency import SharedByCopies
from kraq_dspy._internal.options import require_options
from kraq_dspy._internal.step import SignatureLike, fitting_step, further_inputs, prediction
from kraq_dspy.asset.corpus.tokens import count_tokens
from kraq_dspy.ports import GraphSource, NearestTexts
from kraq_dspy.records import Chunk, Entity, Hit, Relationship
from kraq_dspy.retrievers.hits import LooksAgain, looked_at
from kraq_dspy.retrievers.reports import EntityReportRetriever
from kraq_dspy.signatures import AnswerFromGraph
from kraq_dspy.spec import ProgramSpec, option
from kraq_dspy.state import SavableModule

T = TypeVar("T")
REPORT_SHARE, GRAPH_SHARE = 0.15, 0.35  # GraphRAG's; the passages get the rest, and what these leave
LINKS_PER_ENTITY = 10


@dataclass(frozen=True)
class GraphContextOptions:
    k: int = option(15, "Passages at most.", least=1, counts="passages")
    n_entities: int = option(10, "Entities nearest to the question.", least=1)
    level: int = option(2, "Level of the reports, or broader; 0 is the broadest.", least=0, counts="levels")
    tokens: int = option(8000, "Tokens of the prompt: 15 % reports, 35 % graph, the rest passages.", least=1)


@dataclass(frozen=True, slots=True)
class LocalContext:
    """The contents of the prompt of a local search. Each part begins with the most important item.

    Attributes:
        entities: the entities.
        relationships: the relationships of these entities.
        reports: the summaries of the entities' communities.
        hits: the passages.
        shown: the texts that the model sees, by part.
        n_tokens: the length of all texts in tokens.

    >>> from kraq_dspy import Workspace
    >>> space = Workspace.open("ada.kraq")
    >>> context = KnowledgeGraph(space.entity_vectors, space.graph)("Where did Ada live?")
    >>> [entity.name for entity in context.entities][:2], context.hits[0].chunk.text
    (['Ada', 'London'], 'Ada lived in London.')
    """

    entities: tuple[Entity, ...]
    relationships: tuple[Relationship, ...]
    reports: tuple[Hit, ...]
    hits: tuple[Hit, ...]
    shown: dict[str, list[str]]
    n_tokens: int


@dataclass(eq=False, repr=False)
class KnowledgeGraph(SharedByCopies, LooksAgain):
    """Gathers what the graph knows near a question: entities, relationships, summaries and passages, as GraphRAG's
    local
    search.

    Args:
        nearest: finds entities by embeddings (`space.entity_vectors`).
        graph: the graph (`space.graph`).
        k: the most passages.
        n_entities: the number of nearest entities, 1 or more.
        level: the deepest level whose summaries are used. Level 0 is the broadest.
        tokens: the most tokens of all parts together: 15 % for summaries, 35 % for the graph, the rest for passages.

    Raises:
        ValueError: for an option out of range.

    >>> from kraq_dspy import Workspace
    >>> space = Workspace.open("ada.kraq")
    >>> KnowledgeGraph(space.entity_vectors, space.graph)("Where did Ada live?").shown["entities"][0]
    'Ada (person): Ada lived in London.'
    """

    nearest: NearestTexts
    graph: GraphSource
    _: KW_ONLY
    k: int = GraphContextOptions.k
    n_entities: int = GraphContextOptions.n_entities
    level: int = GraphContextOptions.level
    tokens: int = GraphContextOptions.tokens

    def __post_init__(self) -> None:
        require_options(GraphContextOptions, k=self.k, n_entities=self.n_entities, level=self.level, tokens=self.tokens)
        self.reports = EntityReportRetriever(self.nearest, self.graph, n_entities=self.n_entities, level=self.level)

    def __call__(self, question: str) -> LocalContext:
        """Links between two of the entities come before links to others, of which those that several of them share are
        first. The passages are those of each entity in turn, first those that state the most of the chosen links."""
        scored = self.nearest(question, self.n_entities)
        entities = self.graph.entities([entity_id for entity_id, _ in scored])
        reports = looked_at(self.reports(question, self.n_entities), self.check)
        links = _links(self.graph, entities)
        ends = dict.fromkeys(chain.from_iterable((link.source_id, link.target_id) for link in links))
        names = {entity.id: entity.name for entity in self.graph.entities(list(ends))}

        report_texts = [hit.chunk.passage for hit in reports]
        fitting_reports, for_reports = _fitting(reports, report_texts, int(REPORT_SHARE * self.tokens))

        for_graph = int(GRAPH_SHARE * self.tokens)
        fitting_entities, for_entities = _fitting(entities, map(_entity_line, entities), for_graph)
        lines = [_link_line(link, names) for link in links]
        fitting_links, for_links = _fitting(links, lines, max(0, for_graph - for_entities))

        cosines = [cosine for _, cosine in scored]
        near = list(zip(entities, cosines, strict=True))
        hits = looked_at(_passages(self.graph, question, near, fitting_links, self.k), self.check)
        left = self.tokens - for_reports - for_entities - for_links
        fitting_hits, for_passages = _fitting(hits, [hit.chunk.passage for hit in hits], left)

        shown = {
            "reports": [hit.chunk.passage for hit in fitting_reports],
            "entities": [_entity_line(entity) for entity in fitting_entities],
            "relationships": [_link_line(link, names) for link in fitting_links],
            "passages": [hit.chunk.passage for hit in fitting_hits],
        }
        return LocalContext(
            tuple(fitting_entities),
            tuple(fitting_links),
            tuple(fitting_reports),
            tuple(fitting_hits),
            shown,
            n_tokens=for_reports + for_entities + for_links + for_passages,
        )


class GraphLocalSearch(SavableModule):
    """Answers from the entities near a question, their relationships, summaries and passages (GraphRAG's local
    search).

    Args:
        nearest: finds entities by embeddings (`space.entity_vectors`).
        graph: the graph of the index (`space.graph`).
        k: the most passages in the prompt.
        n_entities: the number of entities nearest to the question.
        level: the deepest level of summaries in the prompt. Level 0 is the broadest.
        tokens: the most tokens of entities, relationships, summaries and passages in the prompt.
        signature: a signature in place of `AnswerFromGraph`, or instructions for this step.

    Raises:
        ConfigError: for a `signature` without an output that the program needs.
        ValueError: for a number out of range.

    `context` gathers the contents of the prompt without calling a model.

    The prediction has `answer`, `hits` (the passages), `reports` (the summaries, also hits), `entities`,
    `relationships`, `context_tokens` and `timings`: seconds for "retrieve", "answer" and "wall".

    >>> from kraq_dspy import Workspace
    >>> space = Workspace.open("ada.kraq")
    >>> space.ask("Where did Ada live?", GraphLocalSearch(space.entity_vectors, space.graph)).entities[0].name
    'Ada'
    """

    def __init__(
        self,
        nearest: NearestTexts,
        graph: GraphSource,
        *,
        k: int = GraphContextOptions.k,
        n_entities: int = GraphContextOptions.n_entities,
        level: int = GraphContextOptions.level,
        tokens: int = GraphContextOptions.tokens,
        signature: SignatureLike = None,
    ) -> None:
        super().__init__()
        self.context = KnowledgeGraph(nearest, graph, k=k, n_entities=n_entities, level=level, tokens=tokens)
        self.k = k
        self.answer = fitting_step(AnswerFromGraph, signature, "passages", "reports", "relationships", "entities")

    async def aforward(self, question: str, **inputs: Any) -> dspy.Prediction:
        further = further_inputs(self.answer, inputs, *AnswerFromGraph.input_fields)
        clock = Clock()

        await clock.begin("retrieve", "searching the graph")
        context = await call(self.context, question)

        await clock.begin("answer", "answering")
        reply = await call(self.answer, question=question, **context.shown, **further)

        return prediction(
            reply,
            hits=list(context.hits),
            reports=list(context.reports),
            entities=list(context.entities),
            relationships=list(context.relationships),
            context_tokens=context.n_tokens,
            timings=clock.timings(),
        )


GRAPH_LOCAL = ProgramSpec(
    "graph-local",
    "Entities near the question, their links, summaries and passages in a budget.",
    lambda space, part, options: GraphLocalSearch(space.entity_vectors, space.graph, **asdict(options)),
    "GraphLocalSearch",
    GraphContextOptions,
    takes="nothing",
    prepared=("graph",),
    keys=("reports", "entities", "relationships", "context_tokens"),
    source="GraphRAG, local (Edge et al., 2024)",
)


def _links(graph: GraphSource, entities: Sequence[Entity]) -> list[Relationship]:
    """The links between these entities, then those that lead out, first to what many of them lead to."""
    chosen = {entity.id for entity in entities}
    inside: list[Relationship] = []
    outside: list[Relationship] = []
    outer_end: dict[str, str] = {}  # of each link that leads out
    for link in graph.links([entity.id for entity in entities]):
        outer_ends = {link.source_id, link.target_id} - chosen
        if outer_ends:
            outer_end[link.id] = outer_ends.pop()
            outside.append(link)
        else:
            inside.append(link)

    links_to = Counter(outer_end.values())
    inside.sort(key=lambda link: (-link.weight, link.id))
    outside.sort(key=lambda link: (-links_to[outer_end[link.id]], -link.weight, link.id))
    return inside + outside[: LINKS_PER_ENTITY * len(entities)]


def _passages(
    graph: GraphSource, question: str, near: Sequence[tuple[Entity, float]], links: Sequence[Relationship], k: int
) -> list[Hit]:
    stated = Counter(chunk_id for link in links for chunk_id in link.chunk_ids)
    led_by: dict[str, float] = {}
    for entity, cosine in near:
        for chunk_id in sorted(entity.chunk_ids, key=lambda chunk_id: -stated[chunk_id]):  # stable: reading order
            led_by.setdefault(chunk_id, cosine)
    chosen = list(led_by)[:k]
    chunks: list[Chunk] = graph.chunks_by_id(chosen)
    return [Hit(chunk, led_by[chunk.id], question, "entity") for chunk in chunks]


def _fitting(items: Sequence[T], texts: Iterable[str], budget: int) -> tuple[list[T], int]:
    """The items whose texts together fit into `budget` tokens, in order, and their tokens; longer ones are left out."""
    fitting: list[T] = []
    used = 0
    for item, text in zip(items, texts, strict=True):
        size = count_tokens(text)
        if used + size <= budget:
            fitting.append(item)
            used += size
    return fitting, used


def _entity_line(entity: Entity) -> str:
    kind = f" ({entity.type})" if entity.type else ""
    return f"{entity.name}{kind}: {entity.description}" if entity.description else f"{entity.name}{kind}"


def _link_line(link: Relationship, names: dict[str, str]) -> str:
    line = f"{names[link.source_id]} | {link.predicate} | {names[link.target_id]}"
    return f"{line}: {link.description}" if link.description else line
