"""Builds the tree of summaries over an index's passages, level by level, and keeps it beside them (RAPTOR)."""

import asyncio
import dataclasses
import json
import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from kraq_dspy._internal.concurrency import run_coroutine
from kraq_dspy._internal.files import replaced
from kraq_dspy.asset.corpus.tokens import count_tokens
from kraq_dspy.asset.store.index import Index
from kraq_dspy.asset.store.sync import TextVectors
from kraq_dspy.build.index.build import TREE_FILE, TREE_STAGE
from kraq_dspy.errors import IndexStateError, needs
from kraq_dspy.models.lms.roles import LanguageModels
from kraq_dspy.ports import Embedder, Progress, SilentProgress, Vectors
from kraq_dspy.programs.retrievers.raptor import SummarizeCluster, SummaryTree, TreeNode
from kraq_dspy.records import Chunk, content_id
from kraq_dspy.steps.direct import Item
from kraq_dspy.steps.kept import StoredSteps

STAGE, FILE = TREE_STAGE, TREE_FILE


@dataclass(frozen=True, slots=True)
class TreeSettings:
    """`cluster_tokens` bounds what one summary is made from; building stops at `max_levels`, or below `min_nodes`."""

    cluster_tokens: int = 3500
    max_levels: int = 5
    min_nodes: int = 10
    seed: int = 0


@dataclass(frozen=True, slots=True)
class TreeReport:
    """`calls` counts what was asked of the model now; `failures` are clusters without a summary."""

    passages: int
    summaries: int
    levels: int
    calls: int
    failures: int
    seconds: float


def build_tree(
    index: Index,
    embedder: Embedder,
    models: LanguageModels,
    settings: TreeSettings | None = None,
    *,
    progress: Progress | None = None,
) -> TreeReport:
    """The tree of the index's passages, by the model of the role "summarizer". The index must be open for writing.

    An interrupted run goes on: the same clusters come out, and their summaries are found. A cluster that fails is left
    out, so that its members stand at the top; the next run tries it again. Raises IndexStateError without passages.
    """
    if index.count(Chunk) == 0:
        raise IndexStateError(f"{str(index.path)!r} has no passages. Build it again: kraq index CORPUS --out DIR")
    builder = _Builder(index, embedder, models, settings or TreeSettings(), progress or SilentProgress())
    return run_coroutine(builder.run())


def open_tree(index: Index, embedder: Embedder) -> tuple[SummaryTree, TextVectors]:
    """The tree that `build_tree` stored, with the vectors of its nodes. Raises IndexStateError when it was not run, or
    passages have changed since."""
    path = index.file(FILE)
    command = f"kraq precompute {index.path} --raptor"
    if path is None:
        raise IndexStateError(f"{str(index.path)!r} has no tree of summaries. Run: {command}")
    try:
        stored = json.loads(path.read_text("utf-8"))
        nodes = [TreeNode(**{**node, "child_ids": tuple(node["child_ids"])}) for node in stored["nodes"]]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise IndexStateError(f"{str(path)!r} is damaged ({error}). Run: {command}") from error
    chunk_ids = sorted(index.ids(Chunk))
    if stored.get("passages") != content_id(*chunk_ids):
        raise IndexStateError(f"{str(index.path)!r} has other passages than when its tree was made. Run: {command}")
    vectors = node_vectors(index, embedder, nodes)
    vectors.sync("embed summaries")  # nothing, unless the store was lost
    return SummaryTree(chunk_ids, nodes), vectors


def node_vectors(index: Index, embedder: Embedder, nodes: Sequence[TreeNode]) -> TextVectors:
    return TextVectors(index.vectors_named("raptor"), embedder, {node.id: node.text for node in nodes})


@dataclass
class _Builder:
    index: Index
    embedder: Embedder
    models: LanguageModels
    settings: TreeSettings
    progress: Progress

    async def run(self) -> TreeReport:
        started = perf_counter()
        before = self.index.results.calls(STAGE)
        progress, program = self.progress, SummarizeCluster()
        steps = StoredSteps(self.index.results, self.models, progress)
        chunks = sorted(self.index.all(Chunk), key=lambda chunk: (chunk.document_id, chunk.position, chunk.id))
        ids = [chunk.id for chunk in chunks]
        texts = [chunk.passage for chunk in chunks]
        vectors: Vectors = self.index.chunk_vectors.vectors(ids)
        nodes: list[TreeNode] = []
        cluster_ids: set[str] = set()
        progress.start(STAGE, None)
        for level in range(1, self.settings.max_levels + 1):
            if len(ids) < self.settings.min_nodes:
                break
            clusters = await asyncio.to_thread(self._clusters, texts, vectors)
            alone = [rows[0] for rows in clusters if len(rows) == 1]
            members = {content_id(STAGE, *(ids[row] for row in rows)): rows for rows in clusters if len(rows) > 1}
            if not members:  # nothing comes together any more
                break
            cluster_ids.update(members)
            items = [Item(node_id, {"passages": [texts[row] for row in rows]}) for node_id, rows in members.items()]
            here: list[TreeNode] = []
            async for done in steps.map(STAGE, "summarizer", program, items):
                summary = done.prediction.summary
                children = tuple(ids[row] for row in members[done.id])
                here.append(TreeNode(done.id, level, children, summary, count_tokens(summary)))
            here.sort(key=lambda node: members[node.id])
            nodes += here
            # What no cluster took is offered to the next level again.
            encoded = await asyncio.to_thread(self._encoded, [node.text for node in here])
            vectors = np.concatenate([encoded, vectors[alone]])
            texts = [node.text for node in here] + [texts[row] for row in alone]
            ids = [node.id for node in here] + [ids[row] for row in alone]
        progress.finish(STAGE)
        self.index.results.prune(STAGE, cluster_ids)
        node_vectors(self.index, self.embedder, nodes).sync("embed summaries", progress)
        self._write(nodes, [chunk.id for chunk in chunks])
        return TreeReport(
            passages=len(chunks),
            summaries=len(nodes),
            levels=max((node.level for node in nodes), default=0),
            calls=self.index.results.calls(STAGE) - before,
            failures=len(cluster_ids) - len(nodes),
            seconds=perf_counter() - started,
        )

    def _clusters(self, texts: Sequence[str], vectors: Vectors) -> list[list[int]]:
        sizes = [count_tokens(text) for text in texts]
        return soft_clusters(vectors, sizes, self.settings.cluster_tokens, seed=self.settings.seed)

    def _encoded(self, texts: Sequence[str]) -> Vectors:
        if not texts:
            return np.zeros((0, self.embedder.dimension), dtype=np.float32)
        return self.embedder.encode_passages(texts)

    def _write(self, nodes: Sequence[TreeNode], chunk_ids: Sequence[str]) -> None:
        """Write the tree in one go: a killed run leaves the one that was there."""
        content = {
            "settings": dataclasses.asdict(self.settings),
            "model": self.models.name("summarizer"),
            "encoder": self.embedder.name,
            "passages": content_id(*sorted(chunk_ids)),
            "nodes": [dataclasses.asdict(node) for node in nodes],
        }
        with replaced(self.index.home / FILE) as draft:
            draft.write_text(json.dumps(content), "utf-8")


DIMENSIONS = 10  # RAPTOR's; it reduces by UMAP, we by principal components: no further package, and the same each time
BELONGS = 0.1  # RAPTOR's threshold of a member's probability
MOST_SHARED = 1.5  # clusters that a row may be in, on average: more, and splitting again would not end
COUNTS = (1, 2, 3, 4, 6, 8, 11, 15, 20, 27, 37, 50)  # of clusters that are tried; RAPTOR tries all up to 50


def soft_clusters(vectors: NDArray[np.float32], sizes: Sequence[int], limit: int, *, seed: int = 0) -> list[list[int]]:
    """Rows of `vectors` in clusters whose `sizes` (tokens) add up to `limit` at most, where two rows fit into it.

    Gaussian mixtures on the principal components, as many as the Bayesian information criterion prefers; a row belongs
    to each component that has it with a probability above a tenth. Clusters that are too large are split again. Every
    row is in at least one; clusters are sorted, each there once. Raises MissingExtraError without scikit-learn.
    """
    clusters: set[tuple[int, ...]] = set()
    waiting = [tuple(range(len(vectors)))] if len(vectors) else []
    while waiting:
        rows = waiting.pop()
        if len(rows) == 1 or sum(sizes[row] for row in rows) <= limit:
            clusters.add(rows)
            continue
        parts = _split(vectors[list(rows)], seed)
        waiting += [tuple(rows[place] for place in part) for part in parts]
    return [list(rows) for rows in sorted(clusters)]


def _split(vectors: NDArray[np.float32], seed: int) -> list[list[int]]:
    """At least two parts, each smaller than the whole."""
    count = len(vectors)
    halves = [list(range(count // 2)), list(range(count // 2, count))]
    if np.allclose(vectors, vectors[0]):
        return halves
    points = _reduced(vectors, seed)
    if count > 4:
        parts = _mixture(points, seed)
        shared = sum(map(len, parts)) / count
        if len(parts) > 1 and shared <= MOST_SHARED and all(len(part) < count for part in parts):
            return parts
    parts = _two_means(points, seed)
    return parts if len(parts) > 1 else halves


def _reduced(vectors: NDArray[np.float32], seed: int) -> NDArray[np.float64]:
    with needs("scikit-learn", "embedded", "Clustering passages for RAPTOR"):
        from sklearn.decomposition import PCA
    dimensions = min(DIMENSIONS, len(vectors) - 1, vectors.shape[1])
    points: NDArray[np.float64] = PCA(dimensions, svd_solver="full", random_state=seed).fit_transform(
        vectors.astype(np.float64)
    )
    return points


def _mixture(points: NDArray[np.float64], seed: int) -> list[list[int]]:
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.mixture import GaussianMixture

    best, lowest = None, math.inf
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for count in COUNTS:
            if count >= len(points):
                break
            mixture = GaussianMixture(count, covariance_type="diag", random_state=seed, reg_covar=1e-4).fit(points)
            bic = mixture.bic(points)
            if bic < lowest:
                best, lowest = mixture, bic
    if best is None:
        return []
    belongs = best.predict_proba(points)
    parts = [np.flatnonzero(belongs[:, component] > BELONGS).tolist() for component in range(best.n_components)]
    return [part for part in parts if part]


def _two_means(points: NDArray[np.float64], seed: int) -> list[list[int]]:
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer different rows than clusters
        labels = KMeans(2, n_init=3, random_state=seed).fit_predict(points)
    return [np.flatnonzero(labels == label).tolist() for label in sorted(set(labels.tolist()))]
