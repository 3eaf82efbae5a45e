"""Puts the figures of a summary into the rows and columns of the papers' tables."""

from kraq_dspy.eval.grids import Grid
from kraq_dspy.eval.summary import TableSummary
from kraq_dspy.papers.listing import figures_of

FAILED = (
    "A figure with [n of N] is of n rows, since the others failed, were not asked or have no gold answer to be scored "
    "by: it does not compare with its neighbors. The table of differences compares the questions that both have; "
    "--retry-failed asks the others again."
)


def paper_grids(summary: TableSummary) -> list[Grid]:
    """The tables of the papers that the runs have figures of, with the papers' rows and columns: ours (theirs)."""
    notes = dict.fromkeys(note for run in summary.runs for note in run.header.extra.get("notes", ()))
    return [
        Grid(
            figures.title,
            ("", *(column.label for column in figures.table.columns)),
            tuple(figures.cells()),
            note=" ".join(
                (
                    f"{figures.table.id}, ours (theirs), on {', '.join(figures.datasets)}.",
                    *([FAILED] if any(each for row in figures.scored for each in row) else []),
                    *notes,
                )
            ),
        )
        for figures in figures_of(summary)
    ]
