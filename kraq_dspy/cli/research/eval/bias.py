"""Measures whether questions follow the corpus's themes more, or less, than the corpus does: `kraq eval bias`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kraq_dspy.cli.shared.options import IndexDir, Json, QuestionSource, Seed, Source
from kraq_dspy.cli.shared.terminal import grid, output, print_json, say, short
from kraq_dspy.cli.shared.writable import require_writable_file
from kraq_dspy.errors import ConfigError

if TYPE_CHECKING:
    from kraq_dspy.eval.tables.bias import ThemeShare


def bias(
    index_dir: IndexDir,
    by: Annotated[
        str | None,
        typer.Option("--by", metavar="FIELD", help="Themes are the values of this metadata of the documents."),
    ] = None,
    level: Annotated[int, typer.Option("--level", min=0, help="Themes are the communities of this level.")] = 0,
    source: Source = QuestionSource.kraq,
    top: Annotated[int, typer.Option("--top", min=1, help="Themes to show; --json has all.")] = 15,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="Also draw them, as an SVG file.")
    ] = None,
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Compare each theme's share of the questions with its share of the passages and documents.

    The distance is the part of the questions that would have to ask about something else.
    """
    from kraq_dspy.eval.tables.bias import audit_bias
    from kraq_dspy.eval.tables.report.bias_plot import bias_plot, shown_themes
    from kraq_dspy.files import replaced
    from kraq_dspy.stores.index import Index

    if by is not None and level:
        raise ConfigError("Themes are communities of a level or values of a field: --level or --by, not both.")
    if out is not None:
        require_writable_file(out)
    with Index.open(index_dir) as index:
        audit = audit_bias(index, by=by, level=level, source=source, seed=seed)
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        with replaced(out) as draft:
            draft.write_text(bias_plot(audit, top).svg + "\n", "utf-8")
    if json:
        print_json(audit)
        return
    rows = [_cells(theme) for theme in shown_themes(audit, top)]
    headings = "theme,>documents,>passages,>questions,>by chance,>ratio,"
    left = len(audit.themes) - len(rows)
    output.print(grid(f"{audit.n_questions:,} questions, {audit.n_passages:,} passages", headings, rows, box=None))
    if left:
        say(f"and {left:,} more themes: --top {len(audit.themes)}", style="dim")
    distance = audit.distance
    say(
        f"Distance {distance.estimate:.3f} [{distance.low:.3f}, {distance.high:.3f}]; {audit.chance:.3f} by chance "
        f"alone, p = {audit.p_value:.4f}."
    )
    if audit.left_out:
        say(f"{audit.left_out:,} questions are broader than level {level} and were left out.")
    if out is not None:
        say(f"Picture: {out}")


def _cells(theme: "ThemeShare") -> tuple[Any, ...]:
    low, high = theme.chance
    ratio = "" if theme.ratio is None else f"{theme.ratio:.2f}"
    mark = "" if theme.p_adjusted >= 0.05 else "too many" if theme.questions > theme.passages else "too few"
    shares = (f"{share:.1%}" for share in (theme.documents, theme.passages, theme.questions))
    return short(theme.theme, max(16, output.width - 64)), *shares, f"{low:.1%}-{high:.1%}", ratio, mark
