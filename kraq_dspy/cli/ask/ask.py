"""`kraq ask`: an answer with its evidence."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from kraq_dspy.cli.shared.opened import opened
from kraq_dspy.cli.shared.options import IndexDir, Json, Models
from kraq_dspy.cli.shared.terminal import output, print_json, printable, short
from kraq_dspy.errors import ConfigError
from kraq_dspy.programs.options import words_of
from kraq_dspy.workspace.choices import DEFAULT_PROGRAM, by_flags, choose_program
from kraq_dspy.workspace.programs import PROGRAMS
from kraq_dspy.workspace.retrievers import RETRIEVERS

if TYPE_CHECKING:
    import dspy

    from kraq_dspy.records import Hit
    from kraq_dspy.workspace.specs import ProgramChoice


def ask(
    index_dir: IndexDir,
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="What you want to know.")],
    models: Models,
    program: Annotated[
        str,
        typer.Option(
            "--program",
            "-p",
            help=f"{', '.join(PROGRAMS.own)}, or one that another package registered.",
        ),
    ] = DEFAULT_PROGRAM,
    retriever: Annotated[
        str | None,
        typer.Option(
            "--retriever",
            help=f"What finds the passages: {', '.join(map(str, RETRIEVERS.own.values()))}.",
            show_default="adaptive; dense where the index has no graph",
        ),
    ] = None,
    program_option: Annotated[
        list[str] | None,
        typer.Option("-P", "--program-option", metavar="NAME=VALUE", help="Any option of the program; repeatable."),
    ] = None,
    retriever_option: Annotated[
        list[str] | None,
        typer.Option("--retriever-option", metavar="NAME=VALUE", help="Any option of the retriever; repeatable."),
    ] = None,
    k: Annotated[int | None, typer.Option("--k", "-k", min=1, help="Passages in all (the papers' M).")] = None,
    n: Annotated[int | None, typer.Option("--n", min=0, help="Auxiliary questions of combined retrieval.")] = None,
    alpha: Annotated[
        float | None, typer.Option("--alpha", min=0.0, max=1.0, help="Share of the passages found by your question.")
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option("--preset", help="Speculative programs, sizes as in the papers: triviaqa, hotpotqa, bioasq, ..."),
    ] = None,
    passages: Annotated[
        int | None, typer.Option("--passages", min=1, help="Passages that speculative programs cluster (N).")
    ] = None,
    clusters: Annotated[int | None, typer.Option("--clusters", min=1, help="Their clusters (k).")] = None,
    drafts: Annotated[int | None, typer.Option("--drafts", min=1, help="Their drafts (m).")] = None,
    scorer: Annotated[
        str | None, typer.Option("--scorer", help="Their choice: kraq, wang2024, drafter_only or vote.")
    ] = None,
    level: Annotated[
        int | None, typer.Option("--level", min=0, help="GraphRAG's searches: level of the reports, 0 is the broadest.")
    ] = None,
    variant: Annotated[
        str | None,
        typer.Option("--variant", help="QA-RAG: v (no plug-ins), type1 (both), type2 (and the answer is judged)."),
    ] = None,
    over: Annotated[
        str | None,
        typer.Option("--over", metavar="PROGRAM", help="QA search: what answers where nothing is prepared; combined."),
    ] = None,
    block: Annotated[
        int | None, typer.Option("--block", min=1, help="QA search: catalogue questions that the model sees at once.")
    ] = None,
    scan: Annotated[
        str | None, typer.Option("--scan", help="QA search: narrow (the nearest questions) or full (block by block).")
    ] = None,
    check: Annotated[
        str | None, typer.Option("--check", help="QA search, against near-misses: model, rules or none.")
    ] = None,
    collect: Annotated[
        bool | None, typer.Option("--collect/--no-collect", help="QA search: note what cannot be answered, for review.")
    ] = None,
    program_state: Annotated[
        Path | None,
        typer.Option("--program-state", metavar="FILE", help="What `kraq optimize` made of the program or of a step."),
    ] = None,
    json: Json = False,
) -> None:
    """Answer QUESTION from the index, and show what the answer rests on."""
    if not question.strip():
        raise ConfigError("The question is empty.")
    flags = {
        "--k": k, "--n": n, "--alpha": alpha, "--preset": preset, "--passages": passages, "--clusters": clusters,
        "--drafts": drafts, "--scorer": scorer, "--level": level, "--variant": variant, "--over": over,
        "--block": block, "--scan": scan, "--check": check, "--collect": collect,
    }  # fmt: skip
    options = by_flags(program, {flag: value for flag, value in flags.items() if value is not None})
    choice = choose_program(
        program,
        retriever,
        {**options, **words_of("--program-option", program_option or ())},
        retriever_options=words_of("--retriever-option", retriever_option or ()),
    )
    with opened(index_dir, models) as space:
        rag = space.make_program(choice)
        if program_state is not None:
            space.load_state(rag, program_state)
        answer = space.ask(rag, question)
        model = space.models[choice.role].model
    if json:
        print_json(answer_fields(question, program, model, answer))
    else:
        show_answer(question, choice, model, answer)


def answer_fields(question: str, program: str, model: str, answer: "dspy.Prediction") -> dict[str, Any]:
    """The prediction as JSON values."""
    return {"question": question, "program": program, "model": model, **answer.toDict()}


def show_answer(
    question: str, choice: "ProgramChoice", model: str, answer: "dspy.Prediction", evidence: int = 15
) -> None:
    """The answer, what the program says it rests on, and the best `evidence` passages of all queries in turn."""
    output.print(short(question, 1000), style="bold")
    text = Text(printable(answer.answer).strip())
    output.print(Panel(text, subtitle=f"{choice.spec.name}, {model}", subtitle_align="left"))
    for line in choice.lines(answer):
        output.print(line)
    table = Table(box=None, padding=(0, 1, 0, 0), expand=True)
    for heading in ("", "score", "found by"):
        table.add_column(heading, justify="left" if heading == "found by" else "right", no_wrap=True)
    table.add_column("document", max_width=28, no_wrap=True, overflow="ellipsis")
    table.add_column("passage", no_wrap=True, overflow="ellipsis", ratio=1)
    for place, hit in _in_turn(answer.hits, evidence):
        document = short(hit.chunk.title or hit.chunk.document_id, 60)
        table.add_row(str(place), f"{hit.score:.3f}", hit.why, document, short(hit.chunk.text, 160))
    if answer.hits:
        output.print(table)


def _in_turn(hits: "Sequence[Hit]", count: int) -> "list[tuple[int, Hit]]":
    """(place, hit) of `count` hits, the best of each query before the second of any, in the order of their places."""
    turns: Counter[str] = Counter()
    ranked = []
    for place, hit in enumerate(hits, start=1):
        turns[hit.query] += 1
        ranked.append((turns[hit.query], place, hit))
    shown = sorted(ranked, key=lambda entry: entry[:2])[:count]
    return [(place, hit) for _, place, hit in sorted(shown, key=lambda entry: entry[1])]
