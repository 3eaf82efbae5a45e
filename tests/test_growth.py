"""The measure of growth that tests of readers use finds what is quadratic and leaves what is linear."""

import pytest

from tests.growth import require_linear


def test_work_that_grows_with_the_square_is_found() -> None:
    with pytest.raises(AssertionError, match="times as long: 'a'"):
        require_linear(lambda text: [text.count("b", start) for start in range(len(text))], "a".__mul__, 20_000)


def test_work_that_grows_with_the_length_is_left() -> None:
    require_linear(lambda text: [letter == "b" for letter in text], "a".__mul__, 400_000)
