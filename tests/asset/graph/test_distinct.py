"""Numbers without repetition."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from kraq_dspy.asset.graph.numbered_graph import distinct


@pytest.mark.parametrize("kind", [np.int32, np.int64])
@pytest.mark.parametrize("numbers", [[], [3], [3, 3], [5, -1, 5, 0, -1, 7], [2, 1]])
def test_each_once_and_in_order(numbers: list[int], kind: type) -> None:
    given: NDArray[Any] = np.array(numbers, kind)
    each_once = distinct(given)
    assert each_once.tolist() == sorted(set(numbers))
    assert each_once.dtype == kind
    assert given.tolist() == numbers  # which stay as they were
