"""Writes a report as one HTML page: figures, differences, latency, tokens, and a row for each question.

The page loads nothing. Every text is escaped, and its one script is named by its hash, so no text of a document or a
model can act in it. Without scripts it is complete, but not sorted or filtered.
"""

import base64
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path

from kraq_dspy._internal.files import replaced
from kraq_dspy.errors import counted
from kraq_dspy.eval.reports.grids import WORDS, Grid, Strong, facts, grids, setup_lines
from kraq_dspy.eval.reports.summary import RunSummary, TableSummary
from kraq_dspy.eval.rows import ResultRow
from kraq_dspy.eval.statistics import number

LONGEST = 1200
"""Characters of an answer or of a passage on the page."""


def write_report(summary: TableSummary, folder: Path, *, in_front: Sequence[Grid] = ()) -> list[Path]:
    """Write `report.html` into the folder, and return where it is; `in_front` are grids to show before the runs."""
    file = folder / "report.html"
    with replaced(file) as draft:
        draft.write_text(report_page(summary, in_front), "utf-8")
    return [file]


def report_page(summary: TableSummary, in_front: Sequence[Grid] = ()) -> str:
    """The page as text. The same rows make the same page."""
    parts = [f"<h1>{_text(summary.title)}</h1>", _described(setup_lines(summary))]
    parts += [_table(grid) for grid in in_front]
    for place, run in enumerate(summary.runs):
        parts.append(f"<h2>{_text(run.header.dataset)}</h2>")
        parts.append(_described(facts(run)))
        parts += [_table(grid) for grid in grids(run)]
        parts.append(_questions(run, f"questions-{place}"))
    return _whole(summary.title, "\n".join(part for part in parts if part))


def _whole(title: str, body: str) -> str:
    style, script = _asset("page.css"), _asset("page.js")
    hashed = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{hashed}'"

    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{_text(title)}</title>
<style>{style}</style>
</head>
<body>
{body}
<script>{script}</script>
</body>
</html>
"""


def _asset(name: str) -> str:
    return files("kraq_dspy.eval.reports").joinpath(name).read_text("utf-8")


def _described(lines: Mapping[str, str]) -> str:
    if not lines:
        return ""
    rows = "\n".join(f"<dt>{_text(name)}</dt><dd>{_text(text)}</dd>" for name, text in lines.items())
    return f"<dl>\n{rows}\n</dl>"


def _table(grid: Grid) -> str:
    """A grid as a table that a person can sort."""
    heads = []
    for column, heading in enumerate(grid.headings):
        is_words = column == 0 or heading in WORDS
        heads.append(_head(heading, "" if is_words else "figure"))

    body = []
    for row in grid.rows:
        cells = []
        for column, cell in enumerate(row):
            text = f"<strong>{_text(cell)}</strong>" if isinstance(cell, Strong) else _text(cell)
            is_words = column == 0 or grid.headings[column] in WORDS
            cells.append(f"<td>{text}</td>" if is_words else f'<td class="figure"{_value(cell)}>{text}</td>')
        body.append(f"<tr>{''.join(cells)}</tr>")

    title = f"<h3>{_text(grid.title)}</h3>" if grid.title else ""
    note = f'<p class="note">{_text(grid.note)}</p>' if grid.note else ""
    return f"{title}\n{_sortable(heads, body)}\n{note}"


def _sortable(heads: Sequence[str], body: Sequence[str], id: str = "") -> str:
    named = f' id="{id}"' if id else ""
    rows = "\n".join(body)
    return (
        f'<div class="scroll"><table class="sortable"{named}>\n<thead><tr>{"".join(heads)}</tr></thead>\n'
        f"<tbody>\n{rows}\n</tbody></table></div>"
    )


def _head(heading: str, kind: str = "") -> str:
    return f'<th class="{kind}"><button type="button">{_text(heading)}</button></th>'


def _value(cell: str) -> str:
    """Return what a figure is sorted by: the number that it begins with, in the unit that it
    names."""
    first = cell.replace(",", "").split(" ")
    try:
        value = float(first[0])
    except ValueError:
        return ' data-value=""'
    if len(first) > 1 and first[1] == "ms":
        value /= 1000
    return f' data-value="{value!r}"'


def _questions(run: RunSummary, id: str) -> str:
    """A row for each question: what is right, and what each system answered from what, with its scores."""
    by_question: dict[str, dict[str, ResultRow]] = {}
    for row in run.rows:
        by_question.setdefault(row.question_id, {})[row.system] = row
    if not by_question:
        return ""

    systems = [system.name for system in run.systems]
    kinds = sorted({_kind(row) for row in run.rows} - {""})
    heads = [_head("question"), _head("right answer")]
    heads += [_head("answer" if len(systems) == 1 else f"answer, {system}") for system in systems]
    heads += [_head("type")] if kinds else []
    for system in systems:
        for metric in run.metrics:
            heads.append(_head(metric if len(systems) == 1 else f"{metric}, {system}", "figure"))

    body = [_question(run.metrics, systems, rows, has_kinds=bool(kinds)) for rows in by_question.values()]
    filters = _filters(id, kinds, several=len(systems) > 1)
    return f"<h3>Questions</h3>\n{filters}\n{_sortable(heads, body, id)}"


def _question(metrics: Sequence[str], systems: Sequence[str], rows: Mapping[str, ResultRow], *, has_kinds: bool) -> str:
    first = next(iter(rows.values()))
    kind = _text(_kind(first))
    cells = [f'<td class="wide">{_text(str(first.extra.get("question", first.question_id)))}</td>']
    cells.append(f"<td>{_text('; '.join(first.extra.get('gold', ())))}</td>")
    cells += [_answer(rows.get(system)) for system in systems]
    cells += [f"<td>{kind}</td>"] if has_kinds else []
    for system in systems:
        cells += _scores(metrics, rows.get(system))

    metric = next(iter(metrics), "")
    scores = {-1.0 if row.failure is not None else row.metrics.get(metric, 0.0) for row in rows.values()}
    wrong, differs = ("yes" if holds else "no" for holds in (min(scores) < 1, len(scores) > 1))
    return f'<tr data-wrong="{wrong}" data-differs="{differs}" data-kind="{kind}">{"".join(cells)}</tr>'


def _answer(row: ResultRow | None) -> str:
    """The cell of what one system answered, with what it was read from."""
    if row is None:
        return "<td>not asked</td>"
    if row.failure is not None:
        return f'<td class="wide failed">failed: {_text(_clipped(row.failure))}</td>'
    passages = [f"<p>{_text(_clipped(str(passage)))}</p>" for passage in row.extra.get("evidence", ())]
    counts = f"<summary>{counted(len(passages), 'passage')}</summary>"
    evidence = f"<details>{counts}{''.join(passages)}</details>" if passages else ""
    return f'<td class="wide">{_text(_clipped(row.answer))}{evidence}</td>'


def _scores(metrics: Sequence[str], row: ResultRow | None) -> Iterator[str]:
    """The cells of one system's scores."""
    for metric in metrics:
        score = row.metrics.get(metric) if row is not None else None
        if score is None:
            reason = row.failed_metrics.get(metric, "") if row is not None else ""
            yield f'<td class="figure" data-value="" title="{_text(reason)}">-</td>'
        else:
            yield f'<td class="figure" data-value="{score!r}">{number(score)}</td>'


def _filters(id: str, kinds: Sequence[str], *, several: bool) -> str:
    differs = '<label><input type="checkbox" name="differs"> where systems differ</label>' if several else ""
    choices = "".join(f'<option value="{_text(kind)}">{_text(kind)}</option>' for kind in kinds)
    chosen = f'<select name="kind" aria-label="type"><option value="">every type</option>{choices}</select>'
    return (
        f'<form class="filters" data-table="{id}">'
        '<input type="search" name="words" placeholder="words of a question or an answer" aria-label="words">'
        '<label><input type="checkbox" name="wrong"> below 1 or failed</label>'
        f"{differs}{chosen if kinds else ''}<output></output></form>"
    )


def _kind(row: ResultRow) -> str:
    return str(row.extra.get("type") or "")


def _clipped(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def _text(text: str) -> str:
    """The text, escaped, without characters that a page cannot show."""
    plain = "".join(character if character.isprintable() or character == "\n" else " " for character in text)
    return escape(plain)
