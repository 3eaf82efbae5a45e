"""Free cores and memory of the machine that the tests run on, within what must hold anywhere."""

import os

from kraq_dspy.models.machine import free_cores, free_memory, usable_cores


def test_free_cores_are_at_least_one_and_at_most_the_usable_ones() -> None:
    assert 1 <= free_cores(0.02) <= usable_cores() <= (os.cpu_count() or 1)


def test_free_memory_is_less_than_what_the_machine_has() -> None:
    free = free_memory()
    assert free is None or 0 < free < os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
