"""Chooses what embeds an index's passages, and notes it."""

import json
from collections.abc import Callable, Sequence
from typing import TypeAlias

from kraq_dspy.asset.store.index import Index
from kraq_dspy.models.embedders.automatic import AutomaticEmbedder
from kraq_dspy.ports import Embedder, Vectors

Encode: TypeAlias = Callable[[Sequence[str]], Vectors]

_NOTED = "passages embedded in"


def passage_encoder(index: Index, embedder: Embedder, count: int) -> Encode:
    """Return what encodes `count` new passages; where the encoder leaves its precision open, that is noted.

    An index with labels stays with one precision: who asks within a scope must not learn from the digits of a score how
    many passages are hidden.
    """
    if not isinstance(embedder, AutomaticEmbedder) or not count:
        return embedder.encode_passages

    encoder = embedder.for_passages(0 if index.manifest.has_labels else count)
    noted = dict.fromkeys([*passage_precisions(index), encoder.precision])
    index.results.settle(_NOTED, json.dumps(list(noted)))
    return encoder.encode_passages


def passage_precisions(index: Index) -> list[str]:
    """The precisions in which passages were embedded, in order, by an encoder that leaves it open; else nothing."""
    precisions: list[str] = json.loads(index.results.settled(_NOTED) or "[]")
    return precisions
