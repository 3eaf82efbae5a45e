"""The page: whole, escaped, without network, and drawn by a real browser where one is installed."""

import re
import shutil
import struct
import subprocess
import zlib
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from kraq_dspy.eval.rows import ResultRow, RunHeader
from kraq_dspy.eval.tables.page import page, write_report
from kraq_dspy.eval.tables.summary import TableSummary, summarise_run

EVIL = "<script>alert(1)</script><img src=https://example.com/x onerror=alert(2)> & $x$ | `a` *b* [c](d)"
SYSTEMS: dict[str, dict[str, int]] = {"plain": {}, "a <b>bold</b> $name$": {}, "point, n=1": {}}


def summary(kind: str = "answers") -> TableSummary:
    metrics = (
        ["recall@5", "recall@10"]
        if kind == "retrievers"
        else ["relevance", "relevance@0.70"]
        if kind == "questions"
        else ["right", "recall"]
    )
    table: dict[str, Any] = {
        "title": f"Table {EVIL}",
        "kind": kind,
        "baseline": "plain",
        "metrics": metrics,
        "systems": SYSTEMS,
    }
    rows = []
    for place, system in enumerate(SYSTEMS):
        for number in range(12):
            score = float((number + place) % 3 > 0)
            rows.append(
                ResultRow(
                    f"q{number}",
                    system,
                    answer=EVIL,
                    metrics=dict.fromkeys(metrics, score),
                    timings={"k=5": 0.01, "k=10": 0.02}
                    if kind == "retrievers"
                    else {"retrieve": 0.01, "answer": 0.2 + number / 100, "total": 0.3},
                    extra={
                        "question": EVIL,
                        "gold": [EVIL],
                        "f1": number / 12,
                        "usage": {"calls": 1, "prompt_tokens": 9, "completion_tokens": 1},
                    },
                )
            )
        rows.append(ResultRow("q12", system, failure=EVIL))
    heading = RunHeader("t", f"set {EVIL}", {}, {"seed": 0}, {"answerer": EVIL}, extra={"table": table, "asked": 13})
    return TableSummary(table["title"], kind, (summarise_run(heading, rows),))


class Tags(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs


@pytest.mark.parametrize("kind", ["answers", "retrievers", "questions"])
def test_text_of_documents_and_models_is_never_markup(kind: str) -> None:
    tags = Tags(page(summary(kind)))
    assert not {"script", "img", "b", "iframe", "object", "link"} & set(tags.tags)
    assert not [name for name, _ in tags.attributes if name.startswith("on")]


@pytest.mark.parametrize("kind", ["answers", "retrievers", "questions"])
def test_the_page_needs_no_network(kind: str) -> None:
    text = page(summary(kind))
    addresses = [
        value for name, value in Tags(text).attributes if name in ("src", "href", "xlink:href", "data", "action")
    ]
    assert all(value is not None and value.startswith("#") for value in addresses)
    assert "@import" not in text
    assert re.search(r"url\((?!#)", text) is None
    assert "default-src 'none'" in text


def test_ids_are_unique_and_references_lead_somewhere() -> None:
    tags = Tags(page(summary()))
    ids = [value for name, value in tags.attributes if name == "id"]
    assert len(ids) == len(set(ids))
    targets = [value[1:] for name, value in tags.attributes if name in ("href", "xlink:href") and value]
    assert set(targets) <= set(ids)


def test_the_same_rows_make_the_same_page() -> None:
    assert page(summary()) == page(summary())


def test_failures_are_in_the_report_with_their_number() -> None:
    text = page(summary())
    assert "What failed" in text
    assert "&lt;script&gt;alert(1)" in text


def test_the_files_are_written_beside_the_rows(tmp_path: Path) -> None:
    files = write_report(summary(), tmp_path)
    assert [file.name for file in files] == ["report.html"]
    assert all(file.stat().st_size > 1000 for file in files)
    assert (tmp_path / "report.html").stat().st_size < 1_000_000


def test_a_browser_draws_the_page(tmp_path: Path) -> None:
    browser = next(
        (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
    )
    if browser is None:
        pytest.skip("needs Chromium, which is not installed")
    write_report(summary(), tmp_path)
    shot = tmp_path / "page.png"
    command = [
        browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
        "--disable-background-networking", "--disable-component-update", "--disable-sync",
        f"--user-data-dir={tmp_path / 'profile'}", "--window-size=1200,2000", f"--screenshot={shot}",
        (tmp_path / "report.html").as_uri(),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert shot.exists(), done.stderr
    width, height, colours = _png(shot.read_bytes())
    assert (width, height) == (1200, 2000)
    assert len(colours) > 50  # not a blank page: text, lines, bars, shades of their edges


def _png(content: bytes) -> tuple[int, int, set[bytes]]:
    """Width, height and the colours of an 8-bit PNG; enough of the format for what Chromium writes."""
    width, height, depth, kind = struct.unpack(">IIBB", content[16:26])
    assert depth == 8
    channels = {2: 3, 6: 4}[kind]
    data, place = b"", 8
    while place < len(content):
        (length,) = struct.unpack(">I", content[place : place + 4])
        if content[place + 4 : place + 8] == b"IDAT":
            data += content[place + 8 : place + 8 + length]
        place += length + 12
    raw = zlib.decompress(data)
    stride = width * channels + 1
    # Filtered bytes differ wherever pixels do, so distinct pixel-sized pieces stand for distinct colours well enough.
    pieces = {
        raw[row * stride + 1 + column * channels : row * stride + 1 + (column + 1) * channels]
        for row in range(0, height, 7)
        for column in range(width)
    }
    return width, height, pieces
