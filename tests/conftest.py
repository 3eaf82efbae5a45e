"""What the tests share: a keyword embedder that a reader can work out by hand, and the way to the shared data sets."""

import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kraq_dspy.ports import Vectors

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"
SHARED_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real data sets beside the checkout; tests that need it are skipped where it is absent."""
    if not SHARED_DATA.is_dir():
        pytest.skip("needs the data sets of ../shared/data, which are not part of the project")
    return SHARED_DATA


class KeywordEmbedder:
    """One axis for each keyword, one more for texts without any: a text points to the keywords that it has."""

    def __init__(self, *keywords: str) -> None:
        self.keywords = keywords
        self.name = f"keywords({','.join(keywords)})"
        self.dimension = len(keywords) + 1

    def encode_queries(self, texts: Sequence[str]) -> Vectors:
        rows = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            row[:-1] = [text.lower().count(keyword) for keyword in self.keywords]
            if not row.any():
                row[-1] = 1
            row /= np.linalg.norm(row)
        return rows

    def encode_passages(self, texts: Sequence[str]) -> Vectors:
        return self.encode_queries(texts)


@pytest.fixture(scope="session")
def keyword_embedder() -> type[KeywordEmbedder]:
    return KeywordEmbedder


@pytest.fixture(scope="session")
def stand_in() -> Any:
    """Starts the stand-in model server of the benchmarks: `with stand_in(latency_ms=20) as server: server.url`."""
    spec = importlib.util.spec_from_file_location("stand_in", BENCHMARKS / "stand_in.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["stand_in"] = module
    spec.loader.exec_module(module)
    return module.stand_in
