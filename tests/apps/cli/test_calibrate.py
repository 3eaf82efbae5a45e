"""`kraq calibrate` explains the threshold that it found, and shows agreements only for cosines that it tried."""

import pytest

from kraq_dspy.apps.cli.precompute import advice, rows_of
from kraq_dspy.build.prepare.calibrate import Calibration

CURVE = ((0.3, 0.2), (0.62, 0.4), (1.0, 1.0))


def calibration(threshold: float) -> Calibration:
    return Calibration(0.5, threshold, 1.0, 10, 2, "encoder", 2, 0.62, CURVE)


def test_agreements_are_told_of_cosines_that_were_tried_and_no_others() -> None:
    rows = rows_of(calibration(1.0))
    assert rows["expected agreement"] == "0.33 at 0.5, 0.39 at 0.6, 0.40 at 0.62"
    assert rows["pairs tried"] == "2, of cosines up to 0.62"


@pytest.mark.parametrize(
    ("threshold", "says"),
    [(1.0, "only the same question would be looked up"), (0.3, "has little to do with yours"), (0.6, "")],
)
def test_a_threshold_that_lets_nothing_or_everything_pass_is_explained(threshold: float, says: str) -> None:
    assert says in advice(calibration(threshold))
    assert bool(says) == bool(advice(calibration(threshold)))
