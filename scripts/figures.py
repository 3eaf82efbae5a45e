"""Compares the figures of the claims, the README and the guides with the pages that they name.

    python scripts/figures.py

It prints the figures that differ, and ends with 1 if there are some. A figure stands on a page if the page, or the
section to which the link leads, has it with at least as many digits: "0.58" stands for 0.581. An estimate with its
interval ("0.641 [0.583, 0.691]") and counts with slashes ("375 / 9 / 62") have to stand there together; a share ("27 of
28") too, or in one row of a table.

- In `claims.md`, every figure of the column "here" has to stand on a page that the cell links to, and every figure of
  the column "the paper" among those that the tables which the cell names have printed (`kraq_dspy/papers/printed`).
- In `docs/results.md`, every figure of a section has to stand on one of the pages of `benchmarks/results` that the
  section names.
- Elsewhere, every figure of a paragraph that links to `docs/results.md` has to stand in the section it links to or on a
  page that this section names, but for sentences that say that they are estimates (*e*).

The script does not see a figure in words ("thirty"), one in code, one in a paragraph without a link, and whether a lone
figure means on its page what the paragraph says of it.
"""

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from kraq_dspy.papers.catalogue import PaperTable, papers_tables

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
CLAIMS = RESULTS / "claims.md"
SUMMARY = ROOT / "docs" / "results.md"
GUIDES = sorted((ROOT / "docs" / "guide").rglob("*.md"))
PAGES = (ROOT / "README.md", ROOT / "docs" / "index.md", *GUIDES)

NUMBER = r"[-+]?(?:\d{1,3}(?:,\d{3})+|\d+)?(?:\.\d+|(?<=\d))"
TOGETHER = (rf"{NUMBER} \[{NUMBER}, {NUMBER}\]", rf"{NUMBER}(?: / {NUMBER})+", rf"{NUMBER} of (?:the )?{NUMBER}")
FIGURE = re.compile(rf"(?<![\w.@#,/+-])(?:{'|'.join(TOGETHER)}|{NUMBER})(?![\w@]|[.,-]\d)")
LINK = re.compile(r"\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^()\s]+)\)")
MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December"
NO_FIGURE = re.compile(
    r"`[^`]*`"  # code
    r"|\b[A-Za-z]\w*(?:-\w+)*-\d[\w.]*"  # a name, such as SmolLM2-135M
    r"|\b\d+(?:\.\d+)? ?(?:[BM]\b|[bm]illion parameters)"
    r"|\b\w+@\d+(?: and @\d+)*"  # recall@10
    r"|\bover \d+ %"  # "five of ten models over 80 %"
    r"|\b(?:n|k|alpha|M) ?= ?[\d.]+"
    r"|\b10\^\d+|\b95 % intervals?\b"
    rf"|\b(?:\d{{1,2}} to )?\d{{1,2}} (?:{MONTHS}) \d{{4}}"
    r"|\b(?:19|20)\d\d\b"  # years
)
WORDS = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
TABLES = re.compile(r"\b(?:tables?|figures?|section|chapter|appendix|KRAQ) (\d[\d.]*)(?:(?: to |, | and )(\d[\d.]*))*")


@dataclass(frozen=True)
class Fault:
    """A figure that does not stand where it should."""

    page: str
    figure: str
    text: str
    named: str

    def __str__(self) -> str:
        return f"{self.page}: {self.figure} is not in {self.named}: {self.text}"


def faults_of_claims(text: str, name: str = "benchmarks/results/claims.md") -> list[Fault]:
    """The figures of the table of claims that its pages, or the papers' tables, do not have."""
    faults = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if not line.startswith("| ") or len(cells) != 5 or cells[0] == "claim":
            continue
        _, paper, here, _, _ = cells
        faults += _lacking(name, here, here, RESULTS)
        faults += [Fault(name, figure, paper, "the paper's tables") for figure in not_printed(paper)]
    return faults


def faults_of_prose(text: str, folder: Path, name: str) -> list[Fault]:
    """The figures of paragraphs with a link to results that the linked pages do not have."""
    faults = []
    for paragraph in paragraphs(text):
        if any(_is_of_results(target, folder) for _, target in LINK.findall(paragraph)):
            measured = " ".join(each for each in re.split(r"(?<=[.;])\s", paragraph) if "*e*" not in each)
            faults += _lacking(name, measured, paragraph, folder)
    return faults


def paragraphs(text: str) -> Iterator[str]:
    """The paragraphs, entries of lists and cells of a page outside its blocks of code, each in one line."""
    prose = re.sub(r"(?ms)^```.*?^```$|^ {4,}\S.*?$", "\n", text)
    for block in re.split(r"\n\s*\n|\n(?= *(?:[-*|>#]|\d+\. ))", prose):
        yield from re.sub(r"^\s*\d+\. ", "", " ".join(block.split())).split(" | ")


def figures(text: str) -> list[str]:
    """The figures of a text: what belongs together as one. Links lose their targets, and names of models count not."""
    plain = NO_FIGURE.sub(" ", " ".join(LINK.sub(r"\1", text).replace("−", "-").replace("*", "").split()))
    return [each for each in FIGURE.findall(plain) if any(character.isdigit() for character in each)]


def stands(figure: str, text: str) -> bool:
    """Whether a text has the figure, or one with more digits that is rounded to it; a small number in words too."""
    in_digits = re.sub(rf"(?i)\b(?:{'|'.join(WORDS)})\b", lambda word: str(WORDS.index(word[0].lower()) + 2), text)
    theirs = [_numbers(each) for each in figures(in_digits)]
    ours = _numbers(figure)
    if len(ours) == 1:
        return any(_is(ours[0], number) for numbers in theirs for number in numbers)
    if " of " in figure:
        rows = [line for line in text.splitlines() if line.startswith("|")]
        theirs += [ours for row in rows if all(stands(number, row) for number in ours)]
    return any(_begins(ours, numbers) for numbers in theirs)


def not_printed(cell: str) -> list[str]:
    """The figures of a claim's paper that the tables it names did not print: in a cell, in the name of a row, or as the
    difference of two cells of a row or the share that it saves."""
    tables = list(_tables_of(cell))
    if not any(table.theirs for table in tables):
        return []
    printed: set[float] = set()
    for table in tables:
        for label in (part.label for part in (*table.rows, *table.columns)):
            printed.update(float(number) for number in _numbers(label.replace("=", " ")))
        for row in table.theirs:
            values = [value for value in row if value is not None]
            printed.update(values)
            printed.update(a - b for a in values for b in values)
            printed.update(100 * (1 - b / a) for a in values for b in values if a)
    numbers = [number for figure in figures(TABLES.sub(" ", cell)) for number in _numbers(figure)]
    return [each for each in numbers if not any(_is(each, f"{value:.6f}") for value in printed)]


def _tables_of(cell: str) -> Iterator[PaperTable]:
    paper = ""
    for part in re.split(r"[,;:]", cell):
        paper = next((each for each in ("thesis", "K2RAG", "QA-RAG", "QA search", "KRAQ") if each in part), paper)
        for kind, first, until, last in re.findall(r"\b(table|figure)s? ([\d.]+)(?: (to|and) (\d+))?", part):
            numbers = [
                first,
                *([last] if until == "and" else map(str, range(int(first), int(last) + 1)) if last else []),
            ]
            for table in papers_tables().values():
                for number in numbers:
                    if paper in table.paper and re.search(
                        rf"(?i)\b{kind}s? {re.escape(number)}(?![\d.])", table.number
                    ):
                        yield table


def _lacking(name: str, text: str, around: str, folder: Path) -> list[Fault]:
    targets = [target for _, target in LINK.findall(around) if _is_of_results(target, folder)]
    pages = "\n\n".join(_section(target, folder) for target in targets)
    return [Fault(name, each, around, ", ".join(targets)) for each in figures(text) if not stands(each, pages)]


def faults_of_summary(text: str) -> list[Fault]:
    """The figures of the results page that the pages named in their section do not have."""
    faults = []
    for section in re.split(r"(?m)^## ", text)[1:]:
        pages = pages_named(section)
        if pages:
            prose = " ".join(paragraphs(section.partition("\n")[2]))
            measured = "\n\n".join((RESULTS / page).read_text("utf-8") for page in pages)
            faults += [
                Fault(SUMMARY.name, each, section.partition("\n")[0], ", ".join(pages))
                for each in figures(prose)
                if not stands(each, measured)
            ]
    return faults


def pages_named(section: str) -> list[str]:
    """The pages of measurements that a section of the results page names."""
    return list(dict.fromkeys(re.findall(r"`benchmarks/results/([\w-]+\.md)`", section)))


def _is_of_results(target: str, folder: Path) -> bool:
    file = (folder / target.partition("#")[0]).resolve()
    return file == SUMMARY or (file.parent == RESULTS and file.is_file() and file != CLAIMS)


def _section(target: str, folder: Path) -> str:
    """The text of a page, or of the section with those within it; of the results page also the pages it names."""
    file, _, fragment = target.partition("#")
    text = _part((folder / file).read_text("utf-8"), fragment)
    if (folder / file).resolve() == SUMMARY:
        text = "\n\n".join([text, *((RESULTS / page).read_text("utf-8") for page in pages_named(text))])
    return text


def _part(text: str, fragment: str) -> str:
    """The section of a text that a link's fragment names, with those within it; all of it without a fragment."""
    if not fragment:
        return text
    pieces = re.split(r"(?m)^(#+) (.+)$", text)
    lines, depth = [], 0
    for marks, heading, below in zip(pieces[1::3], pieces[2::3], pieces[3::3], strict=True):
        if depth and len(marks) <= depth:
            break
        if depth or anchor(heading) == fragment:
            depth = depth or len(marks)
            lines += [heading, below]
    return "\n".join(lines)


def anchor(heading: str) -> str:
    """The name that the site gives a heading."""
    plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).encode("ascii", "ignore").decode()
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower())


def _numbers(figure: str) -> list[str]:
    return [each.replace(",", "") for each in re.findall(NUMBER, figure) if any(map(str.isdigit, each))]


def _begins(ours: Sequence[str], theirs: Sequence[str]) -> bool:
    return len(theirs) >= len(ours) and all(map(_is, ours, theirs))


def _is(ours: str, theirs: str) -> bool:
    """Whether the second is the first, or is rounded to it. A sign that the first has, the second has too."""
    if ours.startswith("-") != theirs.startswith("-"):
        return False
    digits, more = (len(each.partition(".")[2]) for each in (ours, theirs))
    if more < digits:
        return False
    is_rounded = more > digits and (digits or abs(float(ours)) >= 10)
    return abs(float(ours) - float(theirs)) <= (0.5 * 10**-digits if is_rounded else 0) + 1e-6


def faults() -> list[Fault]:
    """Every figure of the pages that does not stand where it should."""
    of_pages = [each for page in PAGES for each in faults_of_prose(page.read_text("utf-8"), page.parent, page.name)]
    of_summary = faults_of_summary(SUMMARY.read_text("utf-8"))
    return faults_of_claims(CLAIMS.read_text("utf-8")) + of_summary + of_pages


def main() -> None:
    differing = faults()
    for fault in differing:
        print(fault)
    sys.exit(bool(differing))


if __name__ == "__main__":
    main()
