"""Writes the summary as one HTML page: no script, no network, every text of documents and models escaped."""

from collections.abc import Mapping
from html import escape
from pathlib import Path

from kraq_dspy._internal.files import replaced
from kraq_dspy.eval.tables.grids import WORDS, Grid, facts, failed_questions, grids, paper_grids, setup_lines
from kraq_dspy.eval.tables.summary import RunSummary, TableSummary

FAILED = 100  # questions shown that failed

STYLE = """
:root { color-scheme: light; --line: #d9dde3; --soft: #f6f7f9; --ink: #1d2430; --dim: #5a6472; }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 2rem 1.5rem 5rem; max-width: 78rem; color: var(--ink); background: #fff;
       font: 15px/1.5 system-ui, "Segoe UI", "Helvetica Neue", Arial, sans-serif; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 .5rem; }
h2 { font-size: 1.3rem; margin: 3rem 0 .5rem; padding-top: 1rem; border-top: 2px solid var(--ink); }
h3 { font-size: 1rem; margin: 1.8rem 0 .4rem; }
p.lead, p.note { color: var(--dim); margin: .3rem 0; }
p.note { font-size: .85rem; }
nav ul { padding: 0; list-style: none; display: flex; flex-wrap: wrap; gap: .3rem 1rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .85rem; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .6rem; border-bottom: 1px solid var(--line); text-align: right; vertical-align: top;
         white-space: nowrap; }
thead th { border-bottom: 2px solid var(--line); background: var(--soft); font-weight: 600; }
th:first-child, td.words, th.words { text-align: left; }
td.words { white-space: normal; overflow-wrap: anywhere; min-width: 12rem; }
tbody th { font-weight: 500; }
td.strong { font-weight: 700; }
td .range { color: var(--dim); font-weight: 400; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1rem; font-size: .85rem; margin: .5rem 0; }
dt { color: var(--dim); }
dd { margin: 0; overflow-wrap: anywhere; }
details { margin: .8rem 0; }
summary { cursor: pointer; }
"""

# Whatever a document's text tries, the page loads nothing and runs nothing.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def write_report(summary: TableSummary, folder: Path) -> list[Path]:
    """`report.html` in the folder."""
    file = folder / "report.html"
    with replaced(file) as draft:
        draft.write_text(page(summary), "utf-8")
    return [file]


def page(summary: TableSummary) -> str:
    """The whole document."""
    as_in_papers = "\n".join(map(grid_table, paper_grids(summary)))
    sections = "\n".join(_section(run, place) for place, run in enumerate(summary.runs))
    links = "".join(
        f'<li><a href="#set-{place}">{escape(run.header.dataset)}</a></li>' for place, run in enumerate(summary.runs)
    )
    lead = "Made by <code>kraq eval</code>; remade from the rows beside it by <code>kraq report</code>."
    first = f"<p class='lead'>{lead}</p>\n{_definitions(setup_lines(summary))}"
    return document(summary.title, f"{first}\n<nav><ul>{links}</ul></nav>\n{as_in_papers}\n{sections}")


def document(heading: str, body: str) -> str:
    """`body` is HTML, `heading` text."""
    title = escape(heading)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<title>{title}</title>
<style>{STYLE}</style>
</head>
<body>
<h1>{title}</h1>
{body}
</body>
</html>
"""


def _section(run: RunSummary, place: int) -> str:
    parts = [f'<section id="set-{place}">', f"<h2>{escape(run.header.dataset)}</h2>", _definitions(facts(run))]
    parts += map(grid_table, grids(run))
    if (failed := failed_questions(run, FAILED)) is not None:
        parts.append(f"<details><summary>{escape(failed.title)}</summary>{grid_table(failed)}</details>")
    parts.append("</section>")
    return "\n".join(parts)


def _definitions(lines: Mapping[str, str]) -> str:
    entries = "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in lines.items())
    return f"<dl>{entries}</dl>"


def grid_table(grid: Grid) -> str:
    """The grid as a heading, a table and its note."""

    def kind(heading: str) -> str:
        return ' class="words"' if heading in WORDS else ""

    head = "".join(f'<th scope="col"{kind(heading)}>{escape(heading)}</th>' for heading in grid.headings)
    body = []
    for place, (name, *cells) in enumerate(grid.rows):
        columns = []
        for column, (heading, cell) in enumerate(zip(grid.headings[1:], cells, strict=True), start=1):
            strong = ' class="strong"' if (place, column) in grid.strong else kind(heading)
            columns.append(f"<td{strong}>{_with_range(cell) if not kind(heading) else escape(cell)}</td>")
        body.append(f'<tr><th scope="row">{escape(name)}</th>{"".join(columns)}</tr>')
    note = f'<p class="note">{escape(grid.note)}</p>' if grid.note else ""
    return (
        f'<h3>{escape(grid.title)}</h3><div class="scroll"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(body)}</tbody></table></div>{note}"
    )


def _with_range(cell: str) -> str:
    """The interval stands back behind the estimate."""
    before, bracket, after = cell.partition("[")
    if not bracket:
        return escape(cell)
    inside, _, rest = after.partition("]")
    second = f"<br>{escape(rest.strip())}" if rest.strip() else ""
    return f'{escape(before)}<span class="range">[{escape(inside)}]</span>{second}'
