"""The figures of the claims, the README and the guides stand on the pages that they name."""

import runpy
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "scripts" / "figures.py"))


def test_every_figure_stands_on_the_page_that_it_names(script: dict[str, Any]) -> None:
    assert list(map(str, script["faults"]())) == [], "run: python scripts/figures.py"


def test_the_claims_and_the_pages_have_figures_to_compare(script: dict[str, Any]) -> None:
    claims, readme = (file.read_text("utf-8") for file in (script["CLAIMS"], ROOT / "README.md"))
    assert len(script["figures"](claims)) > 200
    assert any("375" in script["figures"](each) for each in script["paragraphs"](readme))


@pytest.mark.parametrize(
    ("before", "after", "figure"),
    [
        ("+0.025 [+0.011, +0.042]", "+0.025 [+0.011, +0.043]", "+0.025 [+0.011, +0.043]"),
        ("47 of 258", "48 of 258", "48 of 258"),
        ("78.1 / 74.2 / 68.5 / 79.0 against 72.2", "78.1 / 74.2 / 68.5 / 79.1 against 72.2", "79.1"),
        ("EM -0.3, -2.3", "EM -0.4, -2.3", "-0.4"),
        ("[119 s against 89]", "[118 s against 89]", "118"),
    ],
)
def test_another_figure_in_the_claims_is_seen(script: dict[str, Any], before: str, after: str, figure: str) -> None:
    text = script["CLAIMS"].read_text("utf-8")
    assert before in text
    faults = script["faults_of_claims"](text.replace(before, after, 1))
    assert [fault.figure for fault in faults] == [figure]


@pytest.mark.parametrize(
    ("paragraph", "differing"),
    [
        ("They agree on [375 and 9](docs/results/testsets.md#the-rules-since).", []),
        ("They agree on [374 and 9](docs/results/testsets.md#the-rules-since).", ["374"]),
        ("It noticed 14 of 28. [Measured](docs/results/testsets.md#the-rules-since).", ["14 of 28"]),
        ("Some 374 of them (*e*). It decides [384](docs/results/testsets.md#the-rules-since).", []),
        ("`k=374` at recall@374 finds [what it does](docs/results/testsets.md#the-rules-since).", []),
        ("Of 374 we have [no page](docs/guide/testsets.md).", []),
    ],
)
def test_a_paragraph_is_held_by_the_sections_that_it_links_to(
    script: dict[str, Any], paragraph: str, differing: list[str]
) -> None:
    faults = script["faults_of_prose"](paragraph, ROOT, "a page")
    assert [fault.figure for fault in faults] == differing


@pytest.mark.parametrize(
    ("figure", "text", "is_there"),
    [
        ("0.58", "a mean of 0.581", True),
        ("0.58", "a mean of 0.586", False),
        ("0.581", "a mean of 0.58", False),
        ("-0.3", "a loss of 0.3", False),
        ("1,604", "of 1604 questions", True),
        ("3 of 45", "| rules | 45 | 3 |", True),
        ("3 of 45", "45 rows. Then 3 more.", False),
        ("0.5 [0.4, 0.6]", "0.5 [0.4, 0.7] and 0.6", False),
    ],
)
def test_a_figure_stands_for_itself_and_for_what_rounds_to_it(
    script: dict[str, Any], figure: str, text: str, is_there: bool
) -> None:
    assert script["stands"](figure, text) is is_there
