"""The figures of the claims, the README and the guides stand on the pages that they name."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = """# Sizes

Of 1604 rows 375 agree and nine do not; the mean is 0.581 [0.512, 0.643], with 12 / 0 / 3.

## Rules

| rules | 45 | 3 |

A loss of 0.3 and a gain of -0.7.
"""
CLAIMS = """| claim | the paper | here | made by | verdict |
|---|---|---|---|---|
| It holds | KRAQ table 2: EM {paper} | [{here}](sizes.md) of them | embedded | holds |
"""


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("figures", ROOT / "scripts" / "figures.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its records look their module up
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def results(script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(script, "RESULTS", tmp_path)
    (tmp_path / "sizes.md").write_text(PAGE, "utf-8")
    return tmp_path


def test_every_figure_stands_on_the_page_that_it_names(script: ModuleType) -> None:
    assert list(map(str, script.faults())) == [], "run: python scripts/figures.py"


def test_the_claims_and_the_pages_have_figures_to_compare(script: ModuleType) -> None:
    assert len(script.figures(script.CLAIMS.read_text("utf-8"))) > 120
    linked = [page.name for page in script.PAGES if "results.md" in page.read_text("utf-8")]
    assert {"README.md", "testsets.md", "models.md"} <= set(linked)


@pytest.mark.parametrize(
    ("paper", "here", "differing"),
    [
        ("57.0 → 58.6, 69.6 → 67.5", "0.581 [0.512, 0.643], 12 / 0 / 3", []),
        ("57.0 → 58.7", "375", ["58.7"]),
        ("+1.6, -2.1", "3 of 45", []),  # differences of two printed figures; a share in a row of a table
        ("+1.5", "4 of 45", ["4 of 45", "+1.5"]),
        ("58.6", "0.581 [0.512, 0.644]", ["0.581 [0.512, 0.644]"]),
        ("58.6", "12 / 3 / 0", ["12 / 3 / 0"]),
    ],
)
def test_a_claim_is_held_by_its_page_and_by_the_table_that_was_printed(
    script: ModuleType, results: Path, paper: str, here: str, differing: list[str]
) -> None:
    faults = script.faults_of_claims(CLAIMS.format(paper=paper, here=here))
    assert [fault.figure for fault in faults] == differing


@pytest.mark.parametrize(
    ("paragraph", "differing"),
    [
        ("They agree on [375 and 9](sizes.md).", []),
        ("They agree on [374 and 9](sizes.md).", ["374"]),
        ("It is 374.\n[Measured](sizes.md).", ["374"]),
        ("It is 374.\n\n[Measured](sizes.md).", []),  # another paragraph
        ("It loses [375](sizes.md#rules).", ["375"]),  # in another section
        ("Some 374 of them (*e*). It is [375](sizes.md).", []),
        ("`k=374` at recall@374 of SmolLM2-135M in 2026 finds [what it does](sizes.md).", []),
        ("Of 374 we have [no page](guide.md).", []),
    ],
)
def test_a_paragraph_is_held_by_the_sections_that_it_links_to(
    script: ModuleType, results: Path, paragraph: str, differing: list[str]
) -> None:
    assert [fault.figure for fault in script.faults_of_prose(paragraph, results, "a page")] == differing


@pytest.mark.parametrize(
    ("figure", "is_there"),
    [
        ("0.58", True), ("0.582", False), ("0.5810", False), ("-0.3", False), ("0.7", False), ("-0.7", True),
        ("1,604", True), ("9", True), ("38", False), ("0.581 [0.51, 0.64]", True),
    ],
)  # fmt: skip
def test_a_figure_stands_for_itself_and_for_what_rounds_to_it(script: ModuleType, figure: str, is_there: bool) -> None:
    assert script.stands(figure, PAGE) is is_there
