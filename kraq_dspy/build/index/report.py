"""Says what a build did."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kraq_dspy.asset.store.index import Index
from kraq_dspy.records import Chunk, Community, Document, Entity, Failure, Usage, usage_by_stage

_NAMED = 3  # entities of a community


@dataclass(frozen=True)
class DocumentChanges:
    """How many documents came, changed and went, against what the index held before."""

    added: int = 0
    changed: int = 0
    removed: int = 0


@dataclass(frozen=True)
class BuildReport:
    """What a build did. `usage` is what this run asked of models, by stage; `failures` are open ones, to be retried.

    `stale_answers` counts prepared answers whose documents this run changed or removed.
    """

    path: Path
    counts: dict[str, int]
    failures: tuple[Failure, ...]
    usage: dict[str, Usage]
    seconds: float
    models: dict[str, str]
    problems: tuple[str, ...] = ()
    stale_answers: int = 0
    documents: DocumentChanges = DocumentChanges()


def located(index: Index, failures: Iterable[Failure]) -> tuple[Failure, ...]:
    """The failures with `where`: "notes/mira.txt, passage 3" for a chunk, names for a community."""
    failures = tuple(failures)
    ids = {failure.item_id for failure in failures}
    where: dict[str, str] = {}
    chunks = _there(index, Chunk, ids)
    files = {one.id: one.source for one in _there(index, Document, {chunk.document_id for chunk in chunks})}
    for chunk in chunks:
        where[chunk.id] = f"{files.get(chunk.document_id) or chunk.document_id}, passage {chunk.position + 1}"
    for community in _there(index, Community, ids):
        names = [entity.name for entity in _there(index, Entity, set(community.entity_ids[:_NAMED]))]
        where[community.id] = f"the community of {', '.join(names)} (level {community.level})"
    return tuple(replace(failure, where=where.get(failure.item_id, "")) for failure in failures)


def _there(index: Index, kind: Any, ids: Collection[str]) -> list[Any]:
    return index.get(kind, sorted(index.graph_rows.known(kind, ids)))


def usage_since(before: dict[tuple[str, str], Usage], now: dict[tuple[str, str], Usage]) -> dict[str, Usage]:
    """What a ledger (by stage and model) grew by, by stage; stages without a call are left out."""
    spent = usage_by_stage({key: usage - before.get(key, Usage()) for key, usage in now.items()})
    return {stage: usage for stage, usage in spent.items() if usage.calls}
