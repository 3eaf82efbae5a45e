"""Asks an index questions of your own and says how good its answers are: `kraq eval INDEX QUESTIONS`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kraq_dspy.apps.cli.eval_options import RunOut
from kraq_dspy.apps.cli.progress import Bars
from kraq_dspy.apps.cli.options import Calls, IndexDir, Json, Limits, Seed, opened, require_writable
from kraq_dspy.apps.cli.terminal import command, output, print_json, say
from kraq_dspy.errors import ConfigError

if TYPE_CHECKING:
    from kraq_dspy.eval.asked import AskedSystem
    from kraq_dspy.workspace import Workspace


def index(
    index_dir: IndexDir,
    questions: Annotated[
        Path, typer.Argument(metavar="QUESTIONS", help="csv, jsonl or parquet: questions, where known with answers.")
    ],
    calls: Calls,
    limits: Limits,
    program: Annotated[
        list[str] | None,
        typer.Option(
            "--program", "-p", help="By its name, as in kraq ask; may be repeated. Default: that of kraq ask."
        ),
    ] = None,
    retriever: Annotated[
        list[str] | None,
        typer.Option("--retriever", "-r", help="Each program over each of these. Default: that of kraq ask."),
    ] = None,
    retrieval_only: Annotated[bool, typer.Option(help="Score what the retrievers find; nothing is answered.")] = False,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            "--metric",
            "-m",
            help="token_f1, recall@10, judge, groundedness, ..., or file.py:function; may be repeated. Default: what "
            "the questions have gold data for.",
        ),
    ] = None,
    k: Annotated[int, typer.Option("--k", "-k", min=1, help="Passages that a retriever is asked for.")] = 10,
    question_column: Annotated[str, typer.Option(help="Default: question, query, ...")] = "",
    answer_column: Annotated[str, typer.Option(help="Default: answers, answer, ...")] = "",
    documents_column: Annotated[
        str,
        typer.Option(help="Ids of the documents with the evidence. Default: supporting_ids, ..."),
    ] = "",
    limit: Annotated[int | None, typer.Option(min=1, help="Questions, drawn by the seed.")] = None,
    seed: Seed = 0,
    program_state: Annotated[
        Path | None, typer.Option(metavar="FILE", help="What `kraq optimize` made of the program.")
    ] = None,
    out: RunOut = None,
    json: Json = False,
) -> None:
    """Ask an index, as it is, every question of a file, and score the answers and what was found.

    Without answers in the file, what needs none is scored. `kraq report A B` compares two of these runs.
    """
    import random

    from kraq_dspy.eval.evaluation import evaluate_systems, place_of
    from kraq_dspy.eval.learned import learned_note
    from kraq_dspy.eval.questions import QuestionColumns, read_questions
    from kraq_dspy.eval.tables.report import print_run

    examples = read_questions(questions, QuestionColumns(question_column, answer_column, documents_column))
    if limit is not None:
        examples = sorted(examples, key=lambda example: example.id)
        random.Random(seed).shuffle(examples)
        examples = examples[:limit]
    if retrieval_only and (program or program_state):
        raise ConfigError("--retrieval-only asks no program.")
    with opened(index_dir, calls, limits) as space:
        settings = space.models.settings
        if retrieval_only:
            systems = [_retriever(space, name, k) for name in retriever or [space.default_retriever]]
        else:
            systems = [
                _program(space, name, over, program_state)
                for name in program or [None]  # type: ignore[list-item]
                for over in retriever or [None]  # type: ignore[list-item]
            ]
        title = f"{index_dir.resolve().stem}-{questions.name.partition('.')[0]}"
        folder = out or place_of(title, systems, metric, examples, Path("runs"))
        require_writable(folder)
        with Bars(settings, quiet=json) as bars:
            result = evaluate_systems(
                systems, examples, metric, space=space, title=title, k=k, out=folder,
                concurrency=settings.run.concurrency, seed=seed, progress=bars,
            )  # fmt: skip
    files = result.write_report(folder)
    if json:
        print_json({**result.to_dict(), "files": [str(file) for file in files]})
        return
    print_run(result.summary, output, brief=True)
    if result.left_out:
        say(learned_note(result.left_out))
    say(f"Report: {', '.join(map(str, files))}")
    say(f"Beside another run: {command('report', folder, 'OTHER')}")


def _retriever(space: "Workspace", name: str, k: int) -> "AskedSystem":
    from kraq_dspy.eval.asked import AskedSystem
    from kraq_dspy.eval.tables.systems import about_retriever

    return AskedSystem(name, space.retriever(name), False, about_retriever(name, space.embedder.name, [k]))


def _program(space: "Workspace", name: str | None, retriever: str | None, state: Path | None) -> "AskedSystem":
    from kraq_dspy.eval.asked import AskedSystem
    from kraq_dspy.eval.tables.systems import about_choice
    from kraq_dspy.workspace.choices import DEFAULT_PROGRAM, choose_program

    choice = choose_program(name or DEFAULT_PROGRAM, retriever, measured=True)
    program = space.make_program(choice)
    if state is not None:
        space.load_state(program, state)
    about = about_choice(choice, space.models.settings, space.embedder.name, space.default_retriever)
    label = choice.spec.name if retriever is None else f"{choice.spec.name} over {retriever}"
    return AskedSystem(label, program, True, {**about, **({"state": state.name} if state else {})}, choice)
