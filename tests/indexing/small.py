"""Holds settings for small corpora, and reads all that an index holds, for the tests of builds to compare."""

import dataclasses
from pathlib import Path
from typing import Any

from kraq_dspy import Index
from kraq_dspy.asset.store.tables import TABLES
from kraq_dspy.records import Failure
from kraq_dspy.settings import CommunitySettings, Settings

KINDS = tuple(kind for kind in TABLES if kind is not Failure)


def small(**changes: Any) -> Settings:
    chosen = Settings(communities=CommunitySettings(max_size=4))
    return dataclasses.replace(chosen, **changes)


def contents(path: Path) -> dict[str, list[str]]:
    """Every record of an index, as text, sorted."""
    with Index.open(path) as index:
        return {kind.__name__: sorted(map(repr, index.all(kind))) for kind in KINDS}
