"""Copies some points of an index's vectors into another index, without embedding their texts again."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from kraq_dspy.asset.store.states import VECTORS, writing_to
from kraq_dspy.asset.store.sync import Point, batches
from kraq_dspy.asset.store.vectors.local import LocalVectorStore

if TYPE_CHECKING:
    from kraq_dspy.asset.store.index import Index

_AT_ONCE = 1000  # points


def copy_points(source: "Index", target: "Index", name: str, points: Iterable[Point]) -> None:
    """Put those of the `points` that the store `name` of `source` has into the one of `target`, which is empty.

    Between files rows are copied as they are. From a server, vectors are fetched, and the words of the texts weighed
    again.
    """
    store = source.vectors_named(name)
    if isinstance(store, LocalVectorStore):
        with writing_to(target.home):
            (target.home / VECTORS).mkdir(exist_ok=True)
            store.copy_part((point.id for point in points), target.home / VECTORS / name)
        return

    stored = store.ids()
    for some in batches((point for point in points if point.id in stored), _AT_ONCE):
        ids = [point.id for point in some]
        texts, payloads = [point.text for point in some], [point.payload for point in some]
        target.vectors_named(name).upsert(ids, store.vectors(ids), texts, payloads)
