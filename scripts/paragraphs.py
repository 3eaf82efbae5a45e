"""Draws paragraphs of the pages by lot, for a reader who marks what has to be read twice.

    python scripts/paragraphs.py 30 --seed 1

A paragraph is prose of at least twenty words in README.md or docs/, outside of code, tables and headings. Pages that
scripts write (docs/reference) are left out. The same seed and the same pages draw the same paragraphs.
"""

import argparse
import random
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WRITTEN_BY_SCRIPTS = ("reference/",)
SHORTEST = 20
"""Words. What is shorter is a caption or the beginning of a list."""


def paragraphs_of(page: Path) -> Iterator[str]:
    """The paragraphs of a page in reading order, each on one line. An item of a list is a paragraph."""
    text = re.sub(r"(?ms)^```.*?^```\s*$", "", page.read_text("utf-8"))
    for block in re.split(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )", text):
        lines = block.strip("\n").splitlines()
        if not lines or lines[0].lstrip().startswith(("#", "|", "<", "![")) or lines[0].startswith("    "):
            continue
        paragraph = " ".join(line.strip() for line in lines)
        if len(paragraph.split()) >= SHORTEST:
            yield paragraph


def drawn(n: int, seed: int) -> list[tuple[str, str]]:
    """`n` paragraphs, each with the page that it is on. Raises ValueError if the pages have fewer."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    named = [(page, str(page.relative_to(ROOT))) for page in pages]
    paragraphs = [
        (name, paragraph)
        for page, name in named
        if not name.startswith(tuple(f"docs/{folder}" for folder in WRITTEN_BY_SCRIPTS))
        for paragraph in paragraphs_of(page)
    ]
    return random.Random(seed).sample(paragraphs, n)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("n", type=int)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    for number, (name, paragraph) in enumerate(drawn(options.n, options.seed), 1):
        print(f"{number}. {name}\n   {paragraph}\n")


if __name__ == "__main__":
    main()
