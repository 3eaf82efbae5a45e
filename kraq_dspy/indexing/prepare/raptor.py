"""Builds the tree of summaries over an index's passages, level by level, and keeps it beside them (RAPTOR)."""

import asyncio
import dataclasses
import json
import math
import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kraq_dspy._internal.concurrency import run_coroutine
from kraq_dspy._internal.files import replaced
from kraq_dspy.asset.corpus.tokens import count_tokens
from kraq_dspy.asset.store.index import Index
from kraq_dspy.asset.store.states import VECTORS
from kraq_dspy.asset.store.sync import Point, TextVectors, text_point
from kraq_dspy.asset.store.vectors.copying import copy_points
from kraq_dspy.errors import IndexStateError, needs
from kraq_dspy.models.lms.roles import LanguageModels
from kraq_dspy.ports import Embedder, Progress, SilentProgress, Vectors
from kraq_dspy.records import Chunk, content_id
from kraq_dspy.retrievers.raptor import SummarizeCluster, SummaryTree, TreeNode
from kraq_dspy.steps.direct import Item
from kraq_dspy.steps.kept import StoredSteps

STAGE, FILE = "raptor", "raptor.json"


@dataclass(frozen=True, slots=True)
class TreeSettings:
    """`cluster_tokens` bounds what one summary is made from; building stops at `max_levels`, or below `min_nodes`."""

    cluster_tokens: int = 3500
    max_levels: int = 5
    min_nodes: int = 10
    seed: int = 0


def build_tree(
    index: Index,
    embedder: Embedder,
    models: LanguageModels,
    settings: TreeSettings | None = None,
    *,
    progress: Progress | None = None,
) -> dict[str, float]:
    """The tree of the index's passages, by the model of the role "summarizer". The index must be open for writing.

    An interrupted run goes on: the same clusters come out, and their summaries are found. A cluster that fails is left
    out, so that its members stand at the top; the next run tries it again. Counts `passages`, `summaries`, `levels`,
    `calls` that were made now, and clusters without a summary as `failures`. Raises IndexStateError
    without passages.
    """
    if index.count(Chunk) == 0:
        raise IndexStateError(f"{str(index.path)!r} has no passages. Build it again: kraq index CORPUS --out DIR")
    return run_coroutine(_build(index, embedder, models, settings or TreeSettings(), progress or SilentProgress()))


def open_tree(index: Index, embedder: Embedder) -> tuple[SummaryTree, TextVectors]:
    """The tree that `build_tree` stored, with the vectors of its nodes. Raises IndexStateError when it was not run, or
    passages have changed since."""
    command = f"kraq precompute {index.path} raptor"
    stored = _stored_tree(index)
    if stored is None:
        raise IndexStateError(f"{str(index.path)!r} has no tree of summaries. Run: {command}")

    chunk_ids = sorted(index.ids(Chunk))
    if stored.passages != content_id(*chunk_ids):
        raise IndexStateError(f"{str(index.path)!r} has other passages than when its tree was made. Run: {command}")
    vectors = node_vectors(index, embedder, stored.nodes)
    vectors.sync("embed summaries")  # nothing, unless the store was lost
    return SummaryTree(chunk_ids, stored.nodes), vectors


def forget(index: Index, chunk_ids: Collection[str]) -> None:
    """The summaries that were made of these passages, and the tree, which is then to be made again."""
    stored = _stored_tree(index)
    untouched, lost = _apart(stored.nodes if stored else (), gone=chunk_ids)
    if stored is not None:
        if not lost:
            return
        (index.home / FILE).unlink()
        (index.home / VECTORS / STAGE).unlink(missing_ok=True)
    index.results.prune(STAGE, [node.id for node in untouched])  # with those of a tree that was never finished


def leaves(index: Index) -> set[str]:
    """The passages that the summaries of a stored tree stand on; none if there is no tree."""
    stored = _stored_tree(index)
    nodes = stored.nodes if stored else []
    return {child for node in nodes for child in node.child_ids} - {node.id for node in nodes}


def carry(whole: Index, view: Index, embedder: Embedder) -> None:
    """Give a view the summaries that were made of its passages alone; what stood on others is no part of its tree."""
    stored = _stored_tree(whole)
    chunk_ids = sorted(view.ids(Chunk))
    if stored is None or stored.passages != content_id(*sorted(whole.ids(Chunk))):
        return

    allowed_nodes, _ = _apart(stored.nodes, gone=set(whole.ids(Chunk)).difference(chunk_ids))
    copy_points(whole, view, STAGE, (Point(text_point(node.id, node.text), node.text) for node in allowed_nodes))
    node_vectors(view, embedder, allowed_nodes).sync("embed summaries")
    _save_tree(view, {**stored.made, "passages": content_id(*chunk_ids)}, allowed_nodes)


@dataclass(frozen=True)
class _StoredTree:
    """The file of a tree: the hash of the passages that it was made of, its nodes, and what else it says of itself."""

    passages: str
    nodes: list[TreeNode]
    made: dict[str, Any]


def _stored_tree(index: Index) -> _StoredTree | None:
    """Read the tree; None if there is none. Raises IndexStateError for one that is damaged."""
    path = index.file(FILE)
    if path is None:
        return None
    try:
        made = json.loads(path.read_text("utf-8"))
        nodes = [TreeNode(**{**node, "child_ids": tuple(node["child_ids"])}) for node in made.pop("nodes")]
        return _StoredTree(str(made.get("passages")), nodes, made)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        command = f"kraq precompute {index.path} raptor"
        raise IndexStateError(f"{str(path)!r} is damaged ({error}). Run: {command}") from error


def _save_tree(index: Index, made: Mapping[str, Any], nodes: Sequence[TreeNode]) -> None:
    content = {**made, "nodes": [dataclasses.asdict(node) for node in nodes]}
    with replaced(index.home / FILE) as draft:  # a killed run leaves the tree that was there
        draft.write_text(json.dumps(content), "utf-8")


def _apart(nodes: Sequence[TreeNode], *, gone: Collection[str]) -> tuple[list[TreeNode], list[TreeNode]]:
    """The nodes that stand on none of the passages that are gone, and those that stand on some; the lowest first."""
    lost_ids = set(gone)
    untouched: list[TreeNode] = []
    lost: list[TreeNode] = []
    for node in nodes:
        if lost_ids.isdisjoint(node.child_ids):
            untouched.append(node)
        else:
            lost.append(node)
            lost_ids.add(node.id)
    return untouched, lost


def node_vectors(index: Index, embedder: Embedder, nodes: Sequence[TreeNode]) -> TextVectors:
    return TextVectors(index.vectors_named("raptor"), embedder, {node.id: node.text for node in nodes})


@dataclass(frozen=True, slots=True)
class _Layer:
    """What a level is clustered from: the passages at first, then the summaries of the level below
    and what no cluster took."""

    ids: list[str]
    texts: list[str]
    vectors: Vectors


async def _build(
    index: Index,
    embedder: Embedder,
    models: LanguageModels,
    settings: TreeSettings,
    progress: Progress,
) -> dict[str, float]:
    before = index.results.calls(STAGE)
    steps = StoredSteps(index.results, models, progress)
    chunks = sorted(index.all(Chunk), key=lambda each: (each.document_id, each.position, each.id))
    ids = [chunk.id for chunk in chunks]
    texts = [chunk.passage for chunk in chunks]
    layer = _Layer(ids, texts, index.chunk_vectors.vectors(ids))

    nodes: list[TreeNode] = []
    cluster_ids: set[str] = set()
    progress.start(STAGE, None)
    for level in range(1, settings.max_levels + 1):
        if len(layer.ids) < settings.min_nodes:
            break
        clusters, alone = await _clusters_of(layer, settings)
        if not clusters:  # nothing comes together any more
            break
        cluster_ids.update(clusters)
        summaries = await _summarised(steps, layer, clusters, level)
        nodes += summaries
        layer = await _layer_above(layer, summaries, alone, embedder)
    progress.finish(STAGE)

    index.results.prune(STAGE, cluster_ids)
    node_vectors(index, embedder, nodes).sync("embed summaries", progress)
    made = {
        "settings": dataclasses.asdict(settings),
        "model": models.name("summarizer"),
        "encoder": embedder.name,
        "passages": content_id(*sorted(chunk.id for chunk in chunks)),
    }
    _save_tree(index, made, nodes)
    return {
        "passages": len(chunks),
        "summaries": len(nodes),
        "levels": max((node.level for node in nodes), default=0),
        "calls": index.results.calls(STAGE) - before,
        "failures": len(cluster_ids) - len(nodes),
    }


async def _clusters_of(layer: _Layer, settings: TreeSettings) -> tuple[dict[str, list[int]], list[int]]:
    """The rows of each cluster of two or more, by the id of its node, and those that are alone."""
    sizes = [count_tokens(text) for text in layer.texts]
    groups = await asyncio.to_thread(soft_clusters, layer.vectors, sizes, settings.cluster_tokens, seed=settings.seed)
    clusters: dict[str, list[int]] = {}
    alone = []
    for rows in groups:
        if len(rows) == 1:
            alone.append(rows[0])
        else:
            clusters[content_id(STAGE, *(layer.ids[row] for row in rows))] = rows
    return clusters, alone


async def _summarised(
    steps: StoredSteps, layer: _Layer, clusters: Mapping[str, list[int]], level: int
) -> list[TreeNode]:
    """A node for each cluster that could be summarised, in the order of their first rows."""
    items = []
    for node_id, rows in clusters.items():
        items.append(Item(node_id, {"passages": [layer.texts[row] for row in rows]}))

    nodes = []
    async for done in steps.map(STAGE, "summarizer", SummarizeCluster(), items):
        summary = done.prediction.summary
        children = tuple(layer.ids[row] for row in clusters[done.id])
        nodes.append(TreeNode(done.id, level, children, summary, count_tokens(summary)))
    return sorted(nodes, key=lambda node: clusters[node.id])


async def _layer_above(
    layer: _Layer, summaries: Sequence[TreeNode], alone: Sequence[int], embedder: Embedder
) -> _Layer:
    """The summaries, and what no cluster took, which is offered to the next level again."""
    vectors = layer.vectors[list(alone)]
    if summaries:
        texts = [node.text for node in summaries]
        encoded = await asyncio.to_thread(embedder.encode_passages, texts)
        vectors = np.concatenate([encoded, vectors])

    ids = [node.id for node in summaries] + [layer.ids[row] for row in alone]
    texts = [node.text for node in summaries] + [layer.texts[row] for row in alone]
    return _Layer(ids, texts, vectors)


DIMENSIONS = 10  # RAPTOR's; it reduces by UMAP, we by principal components: no further package, and the same each time
BELONGS = 0.1  # RAPTOR's threshold of a member's probability
MOST_SHARED = 1.5  # clusters that a row may be in, on average: more, and splitting again would not end
COUNTS = (1, 2, 3, 4, 6, 8, 11, 15, 20, 27, 37, 50)  # of clusters that are tried; RAPTOR tries all up to 50


def soft_clusters(vectors: NDArray[np.float32], sizes: Sequence[int], limit: int, *, seed: int = 0) -> list[list[int]]:
    """Rows of `vectors` in clusters whose `sizes` (tokens) add up to `limit` at most, if two rows fit into it.

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
    """Split vectors into at least two parts, each smaller than the whole: a mixture's, else halves
    along the first component."""
    with needs("scikit-learn", "raptor", "Clustering passages for RAPTOR"):
        from sklearn.decomposition import PCA
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.mixture import GaussianMixture

    count = len(vectors)
    if np.allclose(vectors, vectors[0]):
        return [list(range(count // 2)), list(range(count // 2, count))]

    dimensions = min(DIMENSIONS, count - 1, vectors.shape[1])
    reduce = PCA(dimensions, svd_solver="full", random_state=seed)
    points: NDArray[np.float64] = reduce.fit_transform(vectors.astype(np.float64))
    best, lowest = None, math.inf
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for components in COUNTS:
            if components >= count:
                break
            mixture = GaussianMixture(components, covariance_type="diag", random_state=seed, reg_covar=1e-4).fit(points)
            bic = mixture.bic(points)
            if bic < lowest:
                best, lowest = mixture, bic

    if best is not None:
        belongs = best.predict_proba(points) > BELONGS
        parts = [rows for column in belongs.T if (rows := np.flatnonzero(column).tolist())]
        is_split = len(parts) > 1 and all(len(part) < count for part in parts)
        if is_split and sum(map(len, parts)) <= MOST_SHARED * count:
            return parts

    order = np.argsort(points[:, 0], kind="stable").tolist()
    return [sorted(order[: count // 2]), sorted(order[count // 2 :])]
