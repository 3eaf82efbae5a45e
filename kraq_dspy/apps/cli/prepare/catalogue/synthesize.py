"""Makes questions and answers from the documents, kept where all critics agree: `kraq catalogue synthesize`."""

from enum import StrEnum
from typing import Annotated

import typer

from kraq_dspy.apps.cli.prepare.catalogue.shared import Approve, By, opened_with_models, user
from kraq_dspy.apps.cli.shared.options import Calls, IndexDir, Json, Limits
from kraq_dspy.apps.cli.shared.terminal import command, note, output, print_json, say, two_columns
from kraq_dspy.errors import ConfigError


class Critics(StrEnum):
    ratings = "ratings"
    roundtrip = "roundtrip"


def synthesize(
    index_dir: IndexDir,
    calls: Calls,
    limits: Limits,
    audience: Annotated[
        str | None, typer.Option("--audience", metavar="TEXT", help="Who will ask; a critic judges relevance to them.")
    ] = None,
    chunk_tokens: Annotated[int, typer.Option("--chunk-tokens", min=1, help="Of the passages asked about.")] = 2000,
    overlap: Annotated[int, typer.Option("--overlap", min=0, help="Tokens that neighbours share.")] = 200,
    limit: Annotated[int | None, typer.Option("--limit", min=1, help="Only N passages, spread evenly.")] = None,
    critics: Annotated[
        Critics | None,
        typer.Option(
            "--critics",
            help="ratings: three of them rate each pair, 1 to 5. roundtrip: the question must find its passage, and "
            "that give the answer again. Unset: roundtrip for a judge below two billion parameters.",
        ),
    ] = None,
    keep: Annotated[
        int | None,
        typer.Option("--keep", min=1, max=5, help="Keep pairs that every critic rates at least this; unset: 5."),
    ] = None,
    approve: Approve = False,
    by: By = None,
    json: Json = False,
) -> None:
    """Make a question and its answer from each passage of the documents, and keep those that critics let pass: is it
    answered there, does anybody ask it, can it be understood alone?

    Written by the role generator, judged by the role judge. Run it again to go on; nothing is asked twice.
    """
    from kraq_dspy.build.catalogue.synthesize import SyntheticPlan, make_synthetic_pairs
    from kraq_dspy.settings import ChunkSettings

    if audience is not None and not audience.strip():
        raise ConfigError("--audience is empty; say who is to be answered.")
    if critics is Critics.roundtrip and (audience is not None or keep is not None):
        raise ConfigError("--audience and --keep are for --critics ratings; roundtrip rates nothing.")
    plan = SyntheticPlan(
        audience, keep, ChunkSettings(chunk_tokens, overlap), limit, critics.value if critics else None
    )
    with opened_with_models(index_dir, calls, limits, write=True, json=json) as (space, entries, bars):
        report = make_synthetic_pairs(
            space.index,
            entries,
            space.models,
            plan,
            by=by or user(),
            approve=approve,
            retriever=space.retriever("dense"),
            progress=bars,
        )
    if json:
        print_json(report)
        return
    rows = {
        "passages": report.chunks,
        "pairs": report.pairs,
        **{f"rejected for {name.replace('_', ' ')}": count for name, count in report.rejected.items()},
        "added": report.added,
        "there already": report.known,
        "another answer is there": report.conflicts,
        "without a pair": report.empty,
        "failed": report.failures,
        "calls": report.calls,
    }
    output.print(two_columns(f"{index_dir} in {report.seconds:.1f} s", rows))
    if report.added and not approve:
        say(f"{report.added:,} wait for review: {command('catalogue', 'review', index_dir)}")
    if report.failures:
        note(f"what failed, and why: {command('status', index_dir)}; run it again to try once more.")
