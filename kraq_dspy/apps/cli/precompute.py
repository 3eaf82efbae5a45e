"""Makes offline, once, what programs look up: `kraq precompute`."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich import filesize

from kraq_dspy.apps.cli.options import Calls, IndexDir, Json, Limits, opened
from kraq_dspy.apps.cli.progress import Bars
from kraq_dspy.apps.cli.terminal import note, print_json, short, show_counts
from kraq_dspy.errors import ConfigError

Questions = Literal["kraq", "random", "all"]


def precompute(
    index_dir: IndexDir,
    calls: Calls,
    limits: Limits,
    top_n: Annotated[
        str | None, typer.Option(help="Passages for each question: a number, or all.", show_default="100")
    ] = None,
    source: Annotated[
        Questions | None,
        typer.Option(help="Questions to do it for: kraq, random (the papers' baseline) or all.", show_default="kraq"),
    ] = None,
    qa_pairs: Annotated[
        bool, typer.Option(help="Instead: every passage as question-answer pairs, for qa-rag.")
    ] = False,
    graph: Annotated[
        bool, typer.Option(help="Instead: embeddings of entities and reports, for GraphRAG's searches.")
    ] = False,
    raptor: Annotated[bool, typer.Option(help="Instead: a tree of summaries, for the retriever raptor.")] = False,
    k2rag: Annotated[
        bool, typer.Option(help="Instead: every document summarised, and indexed so, for the program k2rag.")
    ] = False,
    json: Json = False,
) -> None:
    """Read passages so that `kraq ask --program efficient` need not: their sentences, or, where the encoder reads
    question and passage together, as seen from the stored questions.

    Run it again to go on after an interruption, or when passages or questions have been added.
    """
    chosen = {"qa-pairs": qa_pairs, "graph": graph, "raptor": raptor, "k2rag": k2rag}
    if kinds := [name for name, is_chosen in chosen.items() if is_chosen]:
        _refuse({"top-n": top_n, "source": source}, f"goes with the embeddings, not with --{kinds[0]}")
        _make(index_dir, kinds, calls, limits, json=json)
        return
    of_models = {**dataclasses.asdict(calls), **dataclasses.asdict(limits), "config": None}
    _refuse(of_models, "goes with --qa-pairs, --raptor or --k2rag: embeddings ask no language model")
    from kraq_dspy.build.prepare.instructed import InstructedOptions
    from kraq_dspy.build.prepare.instructed import precompute as precompute_index

    how = InstructedOptions(parse_top_n(top_n or "100"), source or "kraq")
    kept = "What was embedded is kept; the same command goes on from there."
    with opened(index_dir, calls, write=True) as space, Bars(quiet=json, kept=kept) as bars:
        report = precompute_index(space.index, space.instructed_embedder, how, bars)
    if json:
        print_json(report)
        return
    show_counts(index_dir, report, "n_bytes", size=filesize.decimal(report["n_bytes"]))
    for question_id, reason in report.get("failures", ())[:10]:
        note(short(reason, 300), label=f"{question_id}: ")


def _refuse(options: dict[str, Any], why: str) -> None:
    for name, value in options.items():
        if value is not None and value is not False:
            raise ConfigError(f"--{name.replace('_', '-')} {why}.")


def parse_top_n(text: str) -> int | None:
    """The value of `--top-n`: a number, or "all" (None). Raises ConfigError."""
    if text == "all":
        return None
    if not text.isdecimal() or int(text) < 1:
        raise ConfigError(f"--top-n is {text!r}; it must be a number from 1, or all.")
    return int(text)


def _make(index_dir: Path, kinds: Sequence[str], calls: Calls, limits: Limits, *, json: bool) -> None:
    """Each of `kinds`, names of PREPARATIONS, and what was done."""
    from kraq_dspy.build.prepare.preparations import PREPARATIONS

    with opened(index_dir, calls, limits, write=True) as space, Bars(space.models.settings, quiet=json) as bars:
        reports = {
            each.name: each.make(space, each.options(), bars) for each in PREPARATIONS.values() if each.name in kinds
        }
    if json:
        print_json(reports)
        return
    for name, report in reports.items():
        show_counts(name, report)
