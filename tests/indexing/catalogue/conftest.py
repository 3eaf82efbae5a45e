"""Gives a test with an index its catalogue."""

from collections.abc import Iterator

import pytest

from kraq_dspy import Index
from kraq_dspy.asset.store.catalogue import CATALOGUE
from kraq_dspy.extend import Catalogue


@pytest.fixture
def catalogue(index: Index) -> Iterator[Catalogue]:
    with Catalogue(index.path / CATALOGUE) as catalogue:
        yield catalogue
