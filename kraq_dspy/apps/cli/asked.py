"""Holds an index against a log of questions that people asked: `kraq eval asked INDEX QUESTIONS`."""

from pathlib import Path
from typing import Annotated

import typer

from kraq_dspy.apps.cli.evaluate import RunOut
from kraq_dspy.apps.cli.options import Config, IndexDir, Json, Seed, opened, require_writable
from kraq_dspy.apps.cli.progress import Bars
from kraq_dspy.apps.cli.terminal import output, print_json, say


def asked(
    index_dir: IndexDir,
    questions: Annotated[
        Path, typer.Argument(metavar="QUESTIONS", help="csv, jsonl or parquet: questions that people asked.")
    ],
    config: Config,
    question_column: Annotated[str, typer.Option(help="Default: question, query, ...")] = "",
    near: Annotated[float, typer.Option(min=0, max=1, help="Cosine from which two questions ask alike.")] = 0.6,
    about: Annotated[float, typer.Option(min=0, max=1, help="Cosine from which a passage is about a question.")] = 0.5,
    seed: Seed = 0,
    out: RunOut = None,
    json: Json = False,
) -> None:
    """What of a log of real questions the index anticipates, and what the corpus does not answer; no model is asked.

    Beside its questions stand titles, the same as "How do I ...?", questions of random passages, and other people's.
    """
    from kraq_dspy.eval.question_log import against_log
    from kraq_dspy.eval.questions import QuestionColumns
    from kraq_dspy.eval.tables.terminal import print_grid

    folder = out or Path("runs") / f"asked-{index_dir.resolve().stem}-{questions.name.partition('.')[0]}"
    require_writable(folder)
    columns = QuestionColumns(question_column)
    with opened(index_dir, config) as space, Bars(space.models.settings, quiet=json) as bars:
        log = against_log(space, questions, columns=columns, near=near, about=about, seed=seed, progress=bars)
    files = log.write(folder)
    if json:
        print_json({**log.to_dict(), "files": [str(file) for file in files]})
        return
    for grid in log.grids():
        print_grid(grid, output)
    say(f"Report: {', '.join(map(str, files))}")
