"""Splits share no document, whatever the rows; worked out by hand and over rows that hypothesis draws."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraq_dspy.apps.dataset.rows import SPLITS, split_by_document
from kraq_dspy.errors import ConfigError

DOCUMENTS = st.lists(st.integers(0, 30).map(str), min_size=1, max_size=6, unique=True)


@given(rows=st.lists(DOCUMENTS, min_size=1, max_size=40), seed=st.integers(0, 5))
def test_no_document_stands_behind_rows_of_two_splits(rows: list[list[str]], seed: int) -> None:
    split = split_by_document(rows, seed=seed)
    for row, its in zip(rows, split.of_rows, strict=True):
        behind = {split.of_documents[document_id] for document_id in row}
        assert behind == {its} if its else len(behind) > 1


def test_rows_that_share_a_document_stay_together_and_shares_are_kept() -> None:
    rows = [[f"d{number}", f"e{number}"] for number in range(50) for _ in range(2)]
    split = split_by_document(rows, (0.8, 0.1, 0.1))
    assert Counter(split.of_rows) == {"train": 80, "validation": 10, "test": 10}
    assert all(split.of_rows[place] == split.of_rows[place + 1] for place in range(0, 100, 2))


def test_a_broad_row_does_not_tie_everything_together_but_goes() -> None:
    narrow = [[f"d{number}"] for number in range(100)]
    everything = [f"d{number}" for number in range(100)]
    split = split_by_document([everything, *narrow])
    assert split.of_rows[0] is None
    assert Counter(split.of_rows[1:]) == {"train": 80, "validation": 10, "test": 10}


def test_a_broad_row_whose_documents_fall_together_stays() -> None:
    split = split_by_document([["a", "b", "c"]] * 3 + [["d"]] * 3, (1.0, 0.0, 0.0))
    assert set(split.of_rows) == {"train"}


def test_the_seed_decides_among_equals() -> None:
    rows = [[f"d{number}"] for number in range(40)]
    assert split_by_document(rows, seed=1) == split_by_document(rows, seed=1)
    assert split_by_document(rows, seed=1) != split_by_document(rows, seed=2)


@pytest.mark.parametrize("shares", [(0.5, 0.5), (0.9, 0.2, -0.1), (0.5, 0.1, 0.1)])
def test_shares_that_are_none_are_refused(shares: tuple[float, ...]) -> None:
    with pytest.raises(ConfigError, match=", ".join(SPLITS)):
        split_by_document([["a"]], shares)
