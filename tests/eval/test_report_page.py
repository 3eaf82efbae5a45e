"""The page: whole, escaped, without network."""

from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from kraq_dspy.eval.report_page import write_report
from kraq_dspy.eval.rows import ResultRow, RunHeader
from kraq_dspy.eval.summary import TableSummary, summarise_run

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
def test_text_of_documents_and_models_is_never_markup_and_the_page_needs_no_network(kind: str, tmp_path: Path) -> None:
    [file] = write_report(summary(kind), tmp_path)
    text = file.read_text("utf-8")
    tags = Tags(text)
    assert set(tags.tags) <= {"html", "head", "meta", "title", "style", "body", "pre", "code", "span"}
    assert {name for name, _ in tags.attributes} <= {"lang", "charset", "http-equiv", "content", "class", "style"}
    assert "@import" not in text
    assert "&lt;script&gt;alert(1)" in text


def test_the_page_has_figures_differences_failures_and_questions_that_failed(tmp_path: Path) -> None:
    same = summary()
    [file] = write_report(same, tmp_path)
    assert file.name == "report.html"
    text = file.read_text("utf-8")
    for heading in ("Scores", "Difference from plain", "Latency", "Resources of a question", "What failed"):
        assert heading in text
    assert "Questions that failed" in text
    assert file.stat().st_size < 1_000_000
    assert write_report(same, tmp_path)[0].read_text("utf-8") == text  # the same rows make the same page
