"""Names the systems that are measured: each with the environment, the script and the options that it runs with."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

CHUNKS = (300, 50)
"""Tokens of a chunk, and how many it repeats from the one before: ours, and what the others are given."""


@dataclass(frozen=True)
class System:
    """`peer` is None for this library, which runs in the Python that runs the benchmark. `chunks` None: its own size.

    `modes` are the ways of asking that give out the passages that were retrieved.
    """

    name: str
    title: str
    peer: str | None
    script: str
    modes: tuple[str, ...]
    chunks: tuple[int, int] | None = CHUNKS
    options: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))


GRAPHRAG = ("graphrag", "with_graphrag.py", ("local", "basic"))
LIGHTRAG = ("lightrag", "with_lightrag.py", ("naive", "hybrid", "mix"))
NANO = ("nano-graphrag", "with_nano_graphrag.py", ("naive", "local"))
FAST = ("fast-graphrag", "with_fast_graphrag.py", ("pagerank",))
OURS = (None, "with_kraq.py", ("dense", "hybrid", "combined", "adaptive"))
UNBRAKED = MappingProxyType({"braked": False})

ALL = (
    System("kraq", "kraq index", *OURS),
    System("kraq-thrifty", 'kraq index, `preset = "thrifty"`', *OURS, options={"preset": "thrifty"}),
    System("graphrag", "GraphRAG 3.3.0 as it comes", *GRAPHRAG),
    System("graphrag-unbraked", "GraphRAG 3.3.0, its brakes off", *GRAPHRAG, options=UNBRAKED),
    System("lightrag", "LightRAG 1.5.7", *LIGHTRAG),
    System("nano-graphrag", "nano-graphrag 0.0.8.2", *NANO),
    System("fast-graphrag", "fast-graphrag 0.0.5", *FAST),
    System("graphrag-own-chunks", "GraphRAG, its brakes off, its own chunks", *GRAPHRAG, None, UNBRAKED),
    System("lightrag-own-chunks", "LightRAG, its own chunks", *LIGHTRAG, None),
    System("nano-graphrag-own-chunks", "nano-graphrag, its own chunks", *NANO, None),
    System("fast-graphrag-own-chunks", "fast-graphrag, its own chunks", *FAST, None),
)
BY_NAME = {system.name: system for system in ALL}
