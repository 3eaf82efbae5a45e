"""A run tells its data by a checksum, and describes the machine."""

import sys
from types import ModuleType

import pytest

from kraq_dspy.eval import Example
from kraq_dspy.eval.datasets.dataset import checksum_of
from kraq_dspy.eval.rows import machine, memory_mb
from kraq_dspy.records import Document

DOCUMENTS = (Document("a", "A", "Ada lived in London."),)
EXAMPLES = (Example("1", "Where did Ada live?", ("London",)),)


def test_the_checksum_is_of_texts_questions_and_answers() -> None:
    other = Example("1", "Where did Ada live?", ("Paris",))
    assert checksum_of(EXAMPLES, DOCUMENTS) == checksum_of(list(EXAMPLES), list(DOCUMENTS))
    assert checksum_of(EXAMPLES, DOCUMENTS) != checksum_of((other,), DOCUMENTS)
    assert checksum_of(EXAMPLES, DOCUMENTS) != checksum_of(EXAMPLES)


def test_the_machine_is_described_and_its_memory_is_measured() -> None:
    assert {"python", "processor", "device"} == set(machine())
    assert 10 < memory_mb()["memory_mb"] < 1e6


def test_memory_is_measured_while_another_thread_is_loading_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", ModuleType("torch"))  # begun, with nothing in it yet
    assert "gpu_mb" not in memory_mb()
    assert machine()["device"] == "cpu"
