"""Makes what a small model can learn from: `kraq pairs`."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from kraq_dspy.apps.cli.shared.bars import Bars
from kraq_dspy.apps.cli.shared.options import Calls, Json, Limits
from kraq_dspy.apps.cli.shared.terminal import output, print_json, two_columns
from kraq_dspy.apps.cli.shared.writable import require_writable_file
from kraq_dspy.errors import ConfigError


class Kind(StrEnum):
    generator = "generator"
    drafter = "drafter"


def pairs(
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="JSON lines to write or to go on with.")],
    calls: Calls,
    limits: Limits,
    dataset: Annotated[
        str | None, typer.Option("--dataset", help="Questions with evidence: musique, dolly, ...")
    ] = None,
    data: Annotated[Path, typer.Option("--data", metavar="DIR", help="Folder of data sets.")] = Path("data"),
    kind: Annotated[Kind, typer.Option("--for", help="Who shall learn from them.")] = Kind.generator,
    index: Annotated[
        Path | None,
        typer.Option("--index", metavar="DIR", help="Summaries of this index, with the data set's questions."),
    ] = None,
    least_similarity: Annotated[
        float, typer.Option("--least-similarity", min=-1, max=1, help="With --index: cosine of summary and question.")
    ] = 0.5,
    limit: Annotated[int | None, typer.Option("--limit", min=1, help="Only the first N questions.")] = None,
    demos: Annotated[
        Path | None,
        typer.Option("--demos", metavar="FILE", help="JSON lines of worked examples that the teacher is shown."),
    ] = None,
    program_state: Annotated[
        Path | None,
        typer.Option("--program-state", metavar="FILE", help="The teacher's step as a file of save: with its demos."),
    ] = None,
    json: Json = False,
) -> None:
    """Make (summary, question) pairs: a teacher writes the summary of a question's evidence, and must not give the
    question away. With --index no model is asked. Interrupted? The same command goes on."""
    from kraq_dspy._internal.files import json_objects
    from kraq_dspy.asset.store.index import Index
    from kraq_dspy.errors import TrainingError
    from kraq_dspy.eval.datasets import load_dataset
    from kraq_dspy.finetune.teacher import pairs_from_dataset, pairs_from_index, teaching_step
    from kraq_dspy.models.embedders import load_embedder
    from kraq_dspy.models.lms.meter import Meter
    from kraq_dspy.models.lms.roles import LanguageModels
    from kraq_dspy.programs.shared.state import load_state

    if dataset is None:
        raise ConfigError("Name the questions: --dataset NAME, with its folder's parent in --data.")
    if index is not None and kind is Kind.drafter:
        raise ConfigError("An index has no answers to draft: leave --index out for --for drafter.")
    require_writable_file(out)
    questions = load_dataset(dataset, data)
    if index is not None:
        encoder = calls.settings_of(index).encoder
        with Index.open(index) as opened:
            report = pairs_from_index(
                opened,
                [example.question for example in questions.examples[:limit]],
                load_embedder(encoder),
                out,
                source=f"{dataset} with {index.name}",
                least_similarity=least_similarity,
            )
    else:
        settings = calls.settings()
        models = LanguageModels(settings, embedder=load_embedder(settings.encoder), meter=Meter(limits.of(settings)))
        worked = [row for _, row in json_objects(demos, TrainingError, "the demos")] if demos else []
        step = teaching_step(kind.value, worked)
        if program_state is not None:
            load_state(step, program_state)
        with Bars(settings, quiet=json) as bars:
            report = pairs_from_dataset(questions, out, models, kind=kind.value, step=step, limit=limit, progress=bars)
    if json:
        print_json(
            {"file": str(report.path), "pairs": report.pairs, "rejected": report.rejected, "known": report.known}
        )
        return
    rows = {"new pairs": report.pairs, "decided before": report.known, "file": report.path}
    rejected = {f"left out: {reason}": count for reason, count in sorted(report.rejected.items())}
    output.print(two_columns("Pairs", rows | rejected))
