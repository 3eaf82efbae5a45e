"""Tests that the report's page is whole, escapes what it shows, and needs no network."""

import base64
import hashlib
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from kraq_dspy.eval.reports.page import _value, report_page, write_report
from kraq_dspy.eval.reports.summary import TableSummary, summarise_run
from kraq_dspy.eval.rows import ResultRow, RunHeader

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
    assert set(tags.tags) <= {
        "html", "head", "meta", "title", "style", "body", "script", "h1", "h2", "h3", "p", "dl", "dt", "dd", "div",
        "table", "thead", "tbody", "tr", "th", "td", "button", "strong", "details", "summary", "form", "input", "label",
        "select", "option", "output",
    }  # fmt: skip
    names = {name for name, _ in tags.attributes}
    assert names.isdisjoint({"src", "href", "srcset", "action", "onerror", "onclick"})
    assert tags.tags.count("script") == 1
    assert "default-src 'none'" in text
    assert "@import" not in text
    assert "url(" not in text
    assert "&lt;script&gt;alert(1)" in text


def test_the_page_has_figures_differences_failures_and_questions_that_failed(tmp_path: Path) -> None:
    same = summary()
    [file] = write_report(same, tmp_path)
    assert file.name == "report.html"
    text = file.read_text("utf-8")
    for heading in ("Scores", "Difference from plain", "Latency", "Resources of a question", "What failed"):
        assert heading in text
    assert "<h3>Questions</h3>" in text
    assert file.stat().st_size < 1_000_000
    assert write_report(same, tmp_path)[0].read_text("utf-8") == text  # the same rows make the same page


def test_the_script_of_the_page_is_the_one_that_its_policy_names(tmp_path: Path) -> None:
    text = report_page(summary())
    [script] = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in text


def test_each_question_has_one_row_with_the_answers_and_scores_of_all_systems() -> None:
    rows = re.findall(r"<tr data-wrong.*?</tr>", report_page(summary()), re.DOTALL)
    assert len(rows) == 13  # twelve answered, one failed
    scored = [row for row in rows if "failed:" not in row]
    assert all(row.count('class="figure"') == 2 * len(SYSTEMS) for row in scored)
    assert rows[-1].count("failed:") == len(SYSTEMS)


def test_answers_stand_beside_the_right_one_before_any_score() -> None:
    heads = re.findall(r"<thead>.*?</thead>", report_page(summary()), re.DOTALL)[-1]
    names = re.findall(r"<button[^>]*>(.*?)</button>", heads)
    assert names[:2] == ["question", "right answer"]
    assert all(name.startswith("answer") for name in names[2 : 2 + len(SYSTEMS)])
    rows = re.findall(r"<tr data-wrong.*?</tr>", report_page(summary()), re.DOTALL)
    assert all(row.rindex('class="wide"') < row.index('class="figure"') for row in rows if 'class="figure"' in row)


def test_rows_say_whether_something_is_wrong_and_whether_systems_differ() -> None:
    table = {"title": "t", "baseline": "a", "metrics": ["right"], "systems": {"a": {}, "b": {}}}
    scores = {"q1": (1.0, 1.0), "q2": (1.0, 0.0), "q3": (0.0, 0.0)}
    rows = [
        ResultRow(question, system, answer="x", metrics={"right": score[place]})
        for place, system in enumerate(("a", "b"))
        for question, score in scores.items()
    ]
    header = RunHeader("t", "set", {}, {}, {}, extra={"table": table, "asked": 3})
    page = report_page(TableSummary("t", "answers", (summarise_run(header, rows),)))
    marks = re.findall(r'<tr data-wrong="(\w+)" data-differs="(\w+)"', page)
    assert marks == [("no", "no"), ("yes", "yes"), ("yes", "no")]


def test_times_are_sorted_by_their_length_whatever_their_unit() -> None:
    assert _value("900 ms (1.00 s)") == ' data-value="0.9"'
    assert _value("1.20 s") == ' data-value="1.2"'
    assert _value("0.512 [0.400, 0.600]") == ' data-value="0.512"'
    assert _value("-") == ' data-value=""'
