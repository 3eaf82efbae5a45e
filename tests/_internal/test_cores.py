"""Free cores of the machine that the tests run on, within what must hold anywhere."""

import os

import pytest

from kraq_dspy._internal import cores
from kraq_dspy._internal.cores import free_cores, usable_cores


def test_free_cores_are_at_least_one_and_at_most_the_usable_ones() -> None:
    assert 1 <= free_cores() <= usable_cores() <= (os.cpu_count() or 1)


@pytest.mark.parametrize(("load", "free"), [(0.0, 6), (4.0, 3), (9.0, 1)])
def test_the_busy_share_of_the_machine_is_taken_from_the_usable_cores(
    monkeypatch: pytest.MonkeyPatch, load: float, free: int
) -> None:
    monkeypatch.setattr(cores, "usable_cores", lambda: 6)
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    monkeypatch.setattr(os, "getloadavg", lambda: (load, 0.0, 0.0), raising=False)
    assert free_cores() == free
