"""`kraq status` and `kraq questions`: what is in an index, at once and without loading any model."""

from collections import Counter
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from kraq_dspy.cli import options
from kraq_dspy.cli.build import models_in_words, show_failures
from kraq_dspy.cli.terminal import compact, errors, output, print_json, short, two_columns
from kraq_dspy.cli.watch import watch


def status(
    index_dir: options.IndexDir,
    watched: Annotated[bool, typer.Option("--watch", help="Look again and again until the build is complete.")] = False,
    every: Annotated[float, typer.Option("--every", min=0.1, metavar="SECONDS", help="How often.")] = 2.0,
    json: options.Json = False,
) -> None:
    """What the index holds, what made it, what it took, and what failed."""
    if watched:
        watch(index_dir, every_s=every, as_json=json)
        return
    from kraq_dspy.catalogue.sources import count_answers
    from kraq_dspy.corpus.redact import find_personal
    from kraq_dspy.graph.communities import communities_at
    from kraq_dspy.records import Community, Question
    from kraq_dspy.stores.index import Index

    with Index.open(index_dir) as index:
        manifest, counts, failures = index.manifest, index.counts(), index.results.failures()
        usage = index.results.usage()
        communities = list(index.all(Community))
        asked = Counter(question.level for question in index.questions(source="kraq"))
        personal = {question.id: found for question in index.all(Question) if (found := find_personal(question.text))}
    answers = count_answers(index_dir)
    depth = 1 + max((community.level for community in communities), default=-1)
    levels = {level: len(communities_at(communities, level)) for level in range(depth)}
    if json:
        print_json(
            {
                "path": str(index_dir),
                "complete": manifest.complete,
                "manifest": manifest,
                "counts": counts,
                "partition_sizes": levels,
                "questions_by_level": asked,
                "usage": [{"stage": stage, "model": model, "usage": used} for (stage, model), used in usage.items()],
                "personal_questions": {id: sorted({one.kind for one in found}) for id, found in personal.items()},
                "answers": answers,
                "failures": failures,
            }
        )
        return
    state = Text("complete", style="green") if manifest.complete else Text("unfinished: run the same command again")
    output.print(
        two_columns(
            str(index_dir),
            {
                "state": state,
                "encoder": f"{manifest.encoder_name}, {manifest.encoder_dimension} dimensions",
                "models": models_in_words(manifest.models),
                "updated": manifest.updated_at,
                **{name: f"{count:,}" for name, count in counts.items()},
                **({"catalogue": ", ".join(f"{count:,} {name}" for name, count in answers.items())} if answers else {}),
            },
        )
    )
    if levels:
        table = Table(title="levels", title_justify="left")
        for heading in ("level", "communities", "new questions"):
            table.add_column(heading, justify="right")
        for level, size in levels.items():
            table.add_row(str(level), f"{size:,}", f"{asked.get(level, 0):,}")
        output.print(table)
    if usage:
        table = Table(title="asked of models so far", title_justify="left")
        for heading in ("stage", "model", "calls", "tokens in", "tokens out"):
            table.add_column(heading, justify="left" if heading in ("stage", "model") else "right")
        for (stage, model), used in usage.items():
            cells = (f"{used.calls:,}", compact(used.prompt_tokens), compact(used.completion_tokens))
            table.add_row(stage, Text(model), *cells)
        output.print(table)
    if personal:
        errors.print(
            f"[yellow]{len(personal)} questions hold e-mail addresses, phone or card numbers[/]: "
            f"kraq questions {escape(str(index_dir))} --personal. To keep them out: kraq index --redact."
        )
    show_failures(tuple(failures))


def questions(
    index_dir: options.IndexDir,
    level: Annotated[int | None, typer.Option("--level", min=0, help="Only this level; 0 is the broadest.")] = None,
    source: Annotated[str, typer.Option(help="kraq, or random for the baseline's questions.")] = "kraq",
    duplicates: Annotated[bool, typer.Option("--duplicates", help="Also those marked as duplicates.")] = False,
    personal: Annotated[
        bool, typer.Option("--personal", help="Only those with e-mail addresses, phone or card numbers.")
    ] = False,
    json: options.Json = False,
) -> None:
    """The representative questions, broadest first."""
    from kraq_dspy.corpus.redact import find_personal
    from kraq_dspy.stores.index import Index

    with Index.open(index_dir) as index:
        found = list(index.questions(level, source=source, duplicates=duplicates))
    if personal:
        found = [question for question in found if find_personal(question.text)]
    if json:
        print_json(found)
        return
    if not found:
        output.print("No questions here." if level is None else f"No questions on level {level}.")
        return
    table = Table(box=None, padding=(0, 2, 0, 0))
    for heading in ("level", "question", "chunks", "documents"):
        table.add_column(heading, justify="left" if heading == "question" else "right")
    for question in found:
        table.add_row(
            str(question.level),
            short(question.text, 200),
            str(len(question.chunk_ids)),
            str(len(question.document_ids)),
            style="dim" if question.duplicate_of else None,
        )
    output.print(table)
