"""Has a program answer the index's own questions: `kraq catalogue seed`."""

from typing import Annotated

import typer

from kraq_dspy.apps.cli.prepare.catalogue.shared import Approve, By, opened_with_models, show_answering, user
from kraq_dspy.apps.cli.shared.options import Calls, IndexDir, Json, Limits
from kraq_dspy.apps.cli.shared.terminal import command, print_json, say
from kraq_dspy.errors import ConfigError
from kraq_dspy.workspace.choices import choose_program


def seed(
    index_dir: IndexDir,
    calls: Calls,
    limits: Limits,
    limit: Annotated[int | None, typer.Option("--limit", min=1, help="At most N new questions.")] = None,
    approve: Approve = False,
    program: Annotated[
        str, typer.Option("--program", "-p", help="What answers them; see kraq ask --help.")
    ] = "combined",
    retriever: Annotated[
        str | None, typer.Option("--retriever", help="What finds the passages; see kraq ask --help.")
    ] = None,
    by: By = None,
    json: Json = False,
) -> None:
    """Answer the index's representative questions, and keep the answers for review.

    Run it again to go on after an interruption, or after the index has grown: what is there is not asked again.
    """
    from kraq_dspy.build.catalogue.seed import seed_answers

    choice = choose_program(program, retriever)
    if choice.inner is not None:
        raise ConfigError(
            f"{program} answers from the catalogue; seed it with the program behind: {choice.inner.spec.name}, ..."
        )
    with opened_with_models(index_dir, calls, limits, json=json) as (space, entries, bars):
        report = seed_answers(
            space.index, entries, space.make_program(choice), space.models,
            by=by or user(), limit=limit, approve=approve, progress=bars,
        )  # fmt: skip
    if json:
        print_json(report)
        return
    rows = {"questions": report.questions, "there already": report.known}
    show_answering(str(index_dir), report, rows, label="failed: ")
    waiting = report.unanswered + (0 if approve else report.answered)
    if waiting:
        say(f"{waiting:,} wait for review: {command('catalogue', 'review', index_dir)}")
