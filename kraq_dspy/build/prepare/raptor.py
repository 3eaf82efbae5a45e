"""Builds the tree of summaries over an index's passages, level by level, and keeps it beside them (RAPTOR)."""

import asyncio
import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter

import numpy as np

from kraq_dspy._internal.concurrency import run_coroutine
from kraq_dspy._internal.files import replaced
from kraq_dspy.asset.corpus.tokens import count_tokens
from kraq_dspy.asset.store.index import Index
from kraq_dspy.asset.store.text_vectors import TextVectors
from kraq_dspy.build.index.forgotten import TREE_FILE, TREE_STAGE
from kraq_dspy.build.prepare.soft_clusters import soft_clusters
from kraq_dspy.errors import IndexStateError
from kraq_dspy.models.lms.roles import LanguageModels
from kraq_dspy.ports import Embedder, Progress, SilentProgress, Vectors
from kraq_dspy.programs.retrievers.raptor import SummarizeCluster, SummaryTree, TreeNode
from kraq_dspy.records import Chunk, content_id
from kraq_dspy.steps.direct import Item
from kraq_dspy.steps.stored import StoredSteps

STAGE, FILE = TREE_STAGE, TREE_FILE


@dataclass(frozen=True, slots=True)
class TreeSettings:
    """`cluster_tokens` bounds what one summary is made from; building stops at `max_levels`, or below `min_nodes`.

    `method` is "gmm" (soft clusters, the paper's) or "kmeans".
    """

    cluster_tokens: int = 3500
    max_levels: int = 5
    min_nodes: int = 10
    method: str = "gmm"
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
        chosen = self.settings
        return soft_clusters(vectors, sizes, chosen.cluster_tokens, method=chosen.method, seed=chosen.seed)

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
