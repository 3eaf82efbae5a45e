"""Makes an index forget what was removed from it, beside its records."""

import json
from collections.abc import Collection

from kraq_dspy.asset.store.index import Index
from kraq_dspy.asset.store.instructed import INSTRUCTED, forget_chunks
from kraq_dspy.asset.store.states import VECTORS

TREE_STAGE, TREE_FILE = "raptor", "raptor.json"


def forget(index: Index, document_ids: Collection[str], chunk_ids: Collection[str]) -> None:
    """Whatever was made from these documents and chunks alone beside the records: stored answers of every stage, the
    embeddings seen from questions, and the summaries of a tree, with the tree, which is then to be made again."""
    index.results.forget_items({*document_ids, *chunk_ids})
    if chunk_ids:
        forget_chunks(index.path / INSTRUCTED, chunk_ids)
        _forget_tree(index, chunk_ids)


def _forget_tree(index: Index, chunk_ids: Collection[str]) -> None:
    path, lost = index.file(TREE_FILE), set(chunk_ids)
    kept: set[str] = set()
    if path is not None:
        for node in json.loads(path.read_text("utf-8"))["nodes"]:  # the lowest first
            (kept if lost.isdisjoint(node["child_ids"]) else lost).add(node["id"])
        if lost == set(chunk_ids):
            return
        path.unlink()
        (index.home / VECTORS / TREE_STAGE).unlink(missing_ok=True)
    index.results.prune(TREE_STAGE, kept)  # with those of a tree that was never finished
