"""Tests the pages of docs/: every link leads somewhere, every page is in the navigation, and the examples run."""

import importlib.util
import re
import subprocess
import sys
import tomllib
import unicodedata
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from kraq_dspy.papers.tables.table import DEFINITIONS, KINDS, table_from_dict
from kraq_dspy.workspace.registry import PROGRAMS

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md")), *sorted((ROOT / "benchmarks" / "results").glob("*.md"))]


def without_code(text: str) -> str:
    """The page without its blocks of code and without what stands in backquotes."""
    text = re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"(?m)^ {4}.*$", "", text)
    return re.sub(r"`[^`\n]*`", "", text)


def anchor(heading: str) -> str:
    """The name that mkdocs gives a heading."""
    plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
    plain = unicodedata.normalize("NFKD", plain).encode("ascii", "ignore").decode()
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower())


def anchors(page: Path) -> set[str]:
    text = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    return {anchor(heading) for heading in re.findall(r"^#{1,6} (.+)$", text, re.MULTILINE)}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_of_a_page_leads_to_a_file_and_to_a_heading_of_it(page: Path) -> None:
    lost = []
    for target in re.findall(r"\]\(([^)\s]+)\)", without_code(page.read_text("utf-8"))):
        if re.match(r"[a-z]+:", target):
            continue
        file, _, fragment = target.partition("#")
        goal = (page.parent / file).resolve() if file else page
        if not goal.exists() or (fragment and fragment not in anchors(goal)):
            lost.append(target)
    assert lost == []


def test_a_link_that_leads_nowhere_would_be_seen(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# One, two: `three`\n\n[here](#one-two-three) [gone](other.md) [no](#two)\n", "utf-8")
    assert anchors(page) == {"one-two-three"}
    with pytest.raises(AssertionError, match=r"other\.md"):
        test_every_link_of_a_page_leads_to_a_file_and_to_a_heading_of_it(page)


def test_the_site_fails_for_a_link_that_leads_nowhere(tmp_path: Path) -> None:
    """With what mkdocs.yml says of links, and with the options of `make docs`. A small site: ours takes a minute."""
    pytest.importorskip("mkdocs", reason="needs mkdocs (extra docs): make docs installs it")
    [recipe] = re.findall(
        r"(?m)^\t@NO_MKDOCS_2_WARNING=1 .* -m (mkdocs build .*)$", (ROOT / "Makefile").read_text("utf-8")
    )
    links = re.search(r"(?m)^validation:\n(?: .*\n)+", (ROOT / "mkdocs.yml").read_text("utf-8"))
    assert links is not None
    (tmp_path / "mkdocs.yml").write_text(f"site_name: small\n{links[0]}", "utf-8")
    (tmp_path / "docs").mkdir()

    codes = {}
    for target in ("index.md", "gone.md", "#gone"):
        (tmp_path / "docs" / "index.md").write_text(f"# A page\n\n[there]({target})\n", "utf-8")
        command = [sys.executable, "-m", *recipe.split()]
        codes[target] = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False).returncode
    assert codes == {"index.md": 0, "gone.md": 1, "#gone": 1}


def test_continuous_integration_builds_the_site_by_make_docs() -> None:
    steps = (ROOT / ".ci" / "run").read_text("utf-8").splitlines()
    assert steps.index("make check") < steps.index("make docs")


def test_every_page_is_in_the_navigation() -> None:
    nav = re.findall(
        r"- ([\w/-]+\.(?:md|ipynb))$", (ROOT / "mkdocs.yml").read_text("utf-8").split("\nnav:\n")[1], re.MULTILINE
    )
    assert len(nav) == len(set(nav))
    reached = {DOCS / page for page in nav}
    assert {page for page in reached if page.suffix == ".md"} == set(DOCS.rglob("*.md"))


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_data_model_is_what_the_code_says() -> None:
    reference = script("datamodel_reference")
    assert reference.PAGE.read_text("utf-8") == reference.page(), "run: python scripts/datamodel_reference.py"


def test_the_docstring_of_a_program_names_every_key_of_its_prediction() -> None:
    reference = script("datamodel_reference")
    described = {
        spec.name: reference.told_of_prediction(reference.class_named(spec.class_name))
        for spec in PROGRAMS.own.values()
    }
    described["efficient"] += described["speculative"]  # which it names
    missing = [
        (spec.name, key)
        for spec in PROGRAMS.own.values()
        for key in spec.keys
        if f"`{key}`" not in described[spec.name]
    ]
    assert missing == []


def test_the_pages_of_the_api_are_what_the_public_names_say() -> None:
    pages = script("api_reference").pages()
    written = {page: page.read_text("utf-8") for page in pages if page.exists()}
    assert written == pages, "run: python scripts/api_reference.py"
    assert set((DOCS / "reference" / "api").glob("*.md")) < set(pages)


def test_the_reference_of_tables_names_every_key_and_its_example_is_a_table() -> None:
    page = (DOCS / "reference" / "tables.md").read_text("utf-8")
    for kind, key in KINDS.items():
        assert f"| `{kind}` | `{key}`" in page
    for definition in DEFINITIONS.glob("*.toml"):
        content = tomllib.loads(definition.read_text("utf-8"))
        assert [key for key in content if f"`{key}`" not in page] == []
    [example] = blocks("reference/tables.md", "toml")
    table = table_from_dict("mine", tomllib.loads(example))
    assert [system.name for system in table.systems] == [
        "traditional", "combined", "combined, alpha=0.25", "combined, alpha=0.75",
    ]  # fmt: skip


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", (DOCS / page).read_text("utf-8"), re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize(
    "page",
    [
        "extend/retriever.md",
        "extend/program.md",
        "guide/programs.md",
        "guide/cookbook/swap-a-step.md",
        "guide/cookbook/own-program.md",
    ],
)
def test_the_python_blocks_of_a_page_run_one_after_the_other(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A block that begins with a file name is that file; the page's entry points are those of an installed package."""
    code = []
    for block in blocks(page, "python"):
        file = re.match(r"# ([\w/]+\.py)\n", block)
        if file:
            (tmp_path / file[1]).parent.mkdir(exist_ok=True)
            (tmp_path / file[1]).write_text(block, "utf-8")
        else:
            code.append(block)
    if (tmp_path / "my_package").exists():
        install(tmp_path, [tomllib.loads(block) for block in blocks(page, "toml")])
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    namespace = {"__name__": page}
    try:
        for block in code:
            exec(compile(block, page, "exec"), namespace)
    finally:
        for name in [name for name in sys.modules if name.partition(".")[0] == "my_package"]:
            del sys.modules[name]
    assert code


def install(folder: Path, settings: list[dict[str, Any]]) -> None:
    """Make what lies in the folder a package with the entry points of its pyproject.toml."""
    info = folder / "my_package-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-package\nVersion: 1.0\n", "utf-8")
    lines = []
    for each in settings:
        for group, places in each["project"]["entry-points"].items():
            lines += [f"[{group}]", *(f"{name} = {place}" for name, place in places.items())]
    (info / "entry_points.txt").write_text("\n".join(lines), "utf-8")
