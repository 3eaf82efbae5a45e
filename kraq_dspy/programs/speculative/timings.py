"""Times each stage: on the clock, and in the papers' model of one accelerator per draft."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class StageSeconds:
    """Seconds of one question. `proxy`, `lookup` belong to Efficient Speculative RAG; `embed` is the online encoder.

    `draft_max` and `verify_max` are the longest single calls, as measured with the others in flight; `wall` is the
    clock from question to answer. `parallel_model` is the papers' latency (KRAQ paper, appendix D.1): the stages one
    after another, with max_j of drafts and verdicts. It is a model, not a measurement: compare it with its like, never
    with `wall`.
    """

    retrieve: float
    cluster: float
    draft_max: float
    verify_max: float
    select: float
    wall: float
    proxy: float = 0.0
    lookup: float = 0.0
    embed: float = 0.0
    parallel_model: float = field(init=False)

    def __post_init__(self) -> None:
        total = self.retrieve + self.embed_and_cluster + self.draft_max + self.verify_max + self.select
        object.__setattr__(self, "parallel_model", total)

    @property
    def embed_and_cluster(self) -> float:
        """T_embed-cluster of the KRAQ thesis, 5.2.3: vectors by either way, clusters and subsets."""
        return self.proxy + self.lookup + self.embed + self.cluster
