"""The built wheel: it brings the example with its licence, and runs outside the repository."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
EXAMPLE = "kraq_dspy/examples/hotpotqa-mini"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("hatchling", reason="needs hatchling, which builds the wheel (extra dev)")
    out = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(out)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    [file] = out.glob("kraq_dspy-*.whl")
    return file


def test_the_wheel_brings_the_example_and_names_its_licence(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        assert {
            f"{EXAMPLE}/corpus.jsonl",
            f"{EXAMPLE}/questions.jsonl",
            "kraq_dspy/py.typed",
            "kraq_dspy/apps/serve/page/main.js",
            "kraq_dspy/models/embedders/packaged/bert-6x384.onnx",
            "kraq_dspy/models/embedders/packaged/minilm-tokenizer.json",
        } <= names
        assert "CC BY-SA 4.0" in archive.read(f"{EXAMPLE}/README.md").decode()
    assert not [name for name in names if name.startswith(("tests/", "benchmarks/"))]


def test_the_wheel_runs_from_elsewhere_and_takes_its_example_along(wheel: Path, tmp_path: Path) -> None:
    """Without the repository: a folder of its own stands before everything installed, and holds the wheel alone."""
    package = tmp_path / "installed"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(package)
    find = "import kraq_dspy as kraq; print(kraq.bundled_example())"
    environment = {**os.environ, "PYTHONPATH": str(package)}
    for words, expected in (
        (["-c", find], str(package / EXAMPLE)),
        (["-m", "kraq_dspy", "demo", "--help"], "--quick"),
    ):
        done = subprocess.run(
            [sys.executable, *words], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
        )
        assert expected in done.stdout


@pytest.mark.slow
def test_the_wheel_answers_in_an_environment_that_holds_nothing_else(wheel: Path, tmp_path: Path) -> None:
    """Minutes: pip fetches everything."""
    import venv

    venv.create(tmp_path / "fresh", with_pip=True)
    python = str(tmp_path / "fresh" / "bin" / "python")
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    for command in (
        [python, "-m", "pip", "install", "-q", str(wheel)],
        [str(tmp_path / "fresh" / "bin" / "kraq"), "demo", "--quick"],
    ):
        done = subprocess.run(command, cwd=tmp_path, env=clean, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-2000:]
    assert "gold answer" in done.stdout
