"""Gives a test with an index its FAQ cache."""

from collections.abc import Iterator

import pytest

from kraq_dspy import Index
from kraq_dspy.asset.store.faq import FAQ
from kraq_dspy.extend import FaqCache


@pytest.fixture
def faq(index: Index) -> Iterator[FaqCache]:
    with FaqCache(index.path / FAQ) as faq:
        yield faq
