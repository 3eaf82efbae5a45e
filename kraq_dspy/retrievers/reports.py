"""Retrieves reports, the summaries of communities, by meaning or by way of the entities near a question."""

from dataclasses import dataclass

from kraq_dspy._internal.options import require_options
from kraq_dspy.asset.corpus.tokens import count_tokens
from kraq_dspy.errors import ConfigError
from kraq_dspy.ports import GraphSource, NearestTexts
from kraq_dspy.records import Chunk, Community, Hit, Summary
from kraq_dspy.retrievers.hits import RetrievalRequest, Retrieving, best_first, matches
from kraq_dspy.spec import RetrieverSpec, Space, option


def report_chunk(community: Community, summary: Summary) -> Chunk:
    """The report as a passage: summary and findings, under the community's id. Its metadata has the `level`."""
    text = report_text(summary)
    return Chunk(
        id=community.id,
        document_id=community.id,
        position=0,
        start=0,
        end=len(text),
        text=text,
        n_tokens=count_tokens(text),
        title=summary.title,
        metadata={"level": community.level},
    )


def report_text(summary: Summary) -> str:
    """The summary, then a line for each finding; a heading that its explanation repeats is left out."""
    findings = [
        finding.explanation
        if finding.explanation.startswith(finding.summary.rstrip(" …."))
        else f"{finding.summary}: {finding.explanation}"
        for finding in summary.findings
    ]
    return "\n".join([summary.text, *findings])


@dataclass(frozen=True)
class ReportOptions:
    level: int | None = option(None, "Level of the reports, 0 is the broadest; none for all.", least=0)


@dataclass(frozen=True)
class EntityReportOptions:
    n_entities: int = option(30, "Entities looked up.", least=1)
    level: int = option(2, "Level of the reports, or broader; 0 is the broadest.", least=0)


class ReportRetriever(Retrieving):
    """Retrieves the summaries of communities nearest to the question by meaning. GraphRAG calls a summary a report.
    `why` is "report".

    Args:
        nearest: finds summaries by embeddings (`space.report_vectors`).
        graph: the graph with communities and summaries (`space.graph`).
        level: search one level only, so that no two summaries share an entity; None for all levels.

    Raises:
        ValueError: for a `level` below 0.

    The chunk of a hit holds the summary of a community. The chunk's `id` and `document_id` are the id of this
    community. So `exclude` takes ids of communities, and `filters` are conditions on communities, such as `{"level":
    0}`. `score` is the cosine, in [-1, 1].

    >>> from kraq_dspy import Workspace
    >>> space = Workspace.open("ada.kraq")
    >>> [hit.why for hit in ReportRetriever(space.report_vectors, space.graph, level=0)("Where did Ada live?", 1)]
    ['report']
    """

    def __init__(self, nearest: NearestTexts, graph: GraphSource, *, level: int | None = None) -> None:
        require_options(ReportOptions, level=level)
        self.nearest = nearest
        self.graph = graph
        self.level = level

    def find(self, request: RetrievalRequest) -> list[Hit]:
        among = None if self.level is None else self.graph.report_ids_at(self.level)
        scored: list[tuple[str, float]] = []
        passed = set(request.exclude)
        size = request.k
        while True:
            reports = self.nearest(
                request.question, size, exclude=passed, filters=request.filters, vector=request.vector
            )
            scored += [(report_id, score) for report_id, score in reports if among is None or report_id in among]

            if len(scored) >= request.k or len(reports) < size:
                break
            passed.update(report_id for report_id, _ in reports)
            size *= 4
        return _hits(self.graph, scored[: request.k], request.question, "report")


class EntityReportRetriever(Retrieving):
    """Retrieves the summaries of the communities of entities near the question, as GraphRAG's local search. `why` is
    "entity".

    Args:
        nearest: finds entities by embeddings (`space.entity_vectors`).
        graph: the graph with communities and summaries (`space.graph`).
        n_entities: entities to look up, 1 or more.
        level: the deepest level whose summaries are used, 0 or more. Level 0 is the broadest.

    Raises:
        ValueError: for an option out of range.

    `score` is the sum of the cosines of the community's entities. The chunk of a hit holds a summary, as in
    `ReportRetriever`. There may be fewer than `k` hits.

    >>> from kraq_dspy import Workspace
    >>> space = Workspace.open("ada.kraq")
    >>> [hit.why for hit in EntityReportRetriever(space.entity_vectors, space.graph)("Where did Ada live?", 1)]
    ['entity']
    """

    def __init__(
        self,
        nearest: NearestTexts,
        graph: GraphSource,
        *,
        n_entities: int = EntityReportOptions.n_entities,
        level: int = EntityReportOptions.level,
    ) -> None:
        require_options(EntityReportOptions, n_entities=n_entities, level=level)
        self.nearest = nearest
        self.graph = graph
        self.n_entities = n_entities
        self.level = level

    def find(self, request: RetrievalRequest) -> list[Hit]:
        scores: dict[str, float] = {}
        for entity_id, cosine in self.nearest(request.question, self.n_entities, vector=request.vector):
            community_id = self.graph.community_of(entity_id, self.level)
            if community_id is not None and community_id not in request.exclude:
                scores[community_id] = scores.get(community_id, 0.0) + max(cosine, 0.0)
        hits = _hits(self.graph, best_first(scores, len(scores)), request.question, "entity")
        return [hit for hit in hits if matches(hit.chunk, request.filters)][: request.k]


def _hits(graph: GraphSource, scored: list[tuple[str, float]], question: str, why: str) -> list[Hit]:
    reports = graph.reports([report_id for report_id, _ in scored])
    return [
        Hit(report_chunk(community, summary), score, question, why)
        for (community, summary), (_, score) in zip(reports, scored, strict=True)
    ]


def make_graph_global(space: Space, options: ReportOptions) -> ReportRetriever:
    deepest = space.index.deepest_level()
    if options.level and options.level > deepest:
        raise ConfigError(f"The level of the reports is {options.level}; the deepest of this index is {deepest}.")
    return ReportRetriever(space.report_vectors, space.graph, level=options.level)


GRAPH_LOCAL = RetrieverSpec(
    "graph-local",
    "Summaries of the communities of entities near the question.",
    lambda space, options: EntityReportRetriever(
        space.entity_vectors, space.graph, n_entities=options.n_entities, level=options.level
    ),
    "EntityReportRetriever",
    EntityReportOptions,
    prepared=("graph",),
    needs_graph=True,
    source="GraphRAG, local",
)
GRAPH_GLOBAL = RetrieverSpec(
    "graph-global",
    "Summaries of communities nearest to the question.",
    make_graph_global,
    "ReportRetriever",
    ReportOptions,
    prepared=("graph",),
    needs_graph=True,
    source="GraphRAG, global",
)
