"""The manifest of a run: what changes with the data and with the weights, and what does not."""

import sys
from pathlib import Path
from types import ModuleType

import pytest

from kraq_dspy.eval.datasets import Dataset, Example
from kraq_dspy.eval.rows import data_checksum, machine, memory_mb, model_checksums
from kraq_dspy.records import Document
from kraq_dspy.settings import RoleSettings, Settings

DATA = Dataset("d", (Document("a", "A", "Ada lived in London."),), (Example("1", "Where did Ada live?", ("London",)),))


def test_the_checksum_is_of_texts_questions_and_answers() -> None:
    same = Dataset("another name", DATA.documents, DATA.examples)
    other = Example("1", "Where did Ada live?", ("Paris",))
    assert data_checksum(DATA, DATA.examples) == data_checksum(same, same.examples)
    assert data_checksum(DATA, DATA.examples) != data_checksum(DATA, (other,))


def test_weights_on_this_disk_are_hashed_and_servers_are_not(tmp_path: Path) -> None:
    file = tmp_path / "m.gguf"
    file.write_bytes(b"weights")
    settings = Settings(
        roles={"default": RoleSettings(model="hosted_vllm/x"), "judge": RoleSettings(model=f"gguf/{file}")}
    )
    assert model_checksums(settings) == {
        f"gguf/{file}": "9a129038d9a00aed0cf6a7ea059ca50a813449061ab87848cf1a13eafdf33b2c"
    }


def test_the_machine_is_described_and_its_memory_is_measured() -> None:
    assert {"commit", "python", "processor", "memory", "device"} <= set(machine())
    assert 10 < memory_mb()["memory_mb"] < 1e6


def test_memory_is_measured_while_another_thread_is_loading_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", ModuleType("torch"))  # begun, with nothing in it yet
    assert "gpu_mb" not in memory_mb()
    assert machine()["device"] == "cpu"
