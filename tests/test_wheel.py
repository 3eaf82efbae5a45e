"""The built wheel: it brings the example with its licence, and runs outside the repository."""

import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml

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


def test_what_a_package_index_shows_has_no_link_that_leads_nowhere(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        [path] = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        page = archive.read(path).decode().partition("\n\n")[2]
    assert re.findall(r"\]\((?!https?://)", page) == []
    assert "](docs/" in (ROOT / "README.md").read_text("utf-8"), "else the substitutions may go"
    for kept in ("# kraq_dspy", "kraq refuses", "## Two commands", "pip install"):
        assert kept in page
    assert "kraq serve --open` on the bundled passages" not in page, "the line below the picture"


def test_the_wheel_tells_agents_how_to_use_it(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        for name in ("SKILL.md", "llms.txt"):
            assert archive.read(f"kraq_dspy/{name}") == (ROOT / name).read_bytes()


def test_its_classifiers_name_each_python_that_the_workflow_runs(wheel: Path) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    named = [line.rpartition(" ")[2] for line in project["classifiers"] if re.search(r"Python :: 3\.\d+$", line)]
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "checks.yml").read_text("utf-8"))
    assert {tuple(job["strategy"]["matrix"]["python"]) for job in workflow["jobs"].values()} == {tuple(named)}
    assert project["requires-python"] == f">={named[0]}"


def test_the_wheel_runs_from_elsewhere_and_takes_its_example_along(wheel: Path, tmp_path: Path) -> None:
    """Without the repository: a folder of its own stands before everything installed, and holds the wheel alone."""
    package = tmp_path / "installed"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(package)
    find = "import kraq_dspy as kraq; print(kraq.bundled_example())"
    environment = {**os.environ, "PYTHONPATH": str(package)}
    for words, expected in (
        (["-c", find], str(package / EXAMPLE)),
        (["-m", "kraq_dspy", "demo", "--help"], "--first"),
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
        [str(tmp_path / "fresh" / "bin" / "kraq"), "demo", "--first", "10"],
    ):
        done = subprocess.run(command, cwd=tmp_path, env=clean, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-2000:]
    assert "gold answer" in done.stdout
