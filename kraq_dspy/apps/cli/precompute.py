"""Makes offline, once, what programs look up: `kraq precompute`, and `kraq calibrate` which says how near is near."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich import filesize

from kraq_dspy.apps.cli.options import Calls, Config, IndexDir, Json, Limits, opened
from kraq_dspy.apps.cli.progress import Bars
from kraq_dspy.apps.cli.terminal import note, output, print_json, short, show_counts, two_columns
from kraq_dspy.errors import ConfigError

if TYPE_CHECKING:
    from kraq_dspy.build.prepare.calibrate import Calibration


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
    show_counts(index_dir, report, "n_bytes", size=filesize.decimal(report.n_bytes))
    for question_id, reason in getattr(report, "failures", ())[:10]:
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


FAR = 0.5
"""A cosine below which two questions of the packaged encoder ask about different things."""


def calibrate(
    index_dir: IndexDir,
    config: Config,
    agreement: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="Adjusted Rand index that the clusters must reach.")
    ] = 0.5,
    passages: Annotated[int, typer.Option(min=2, help="Passages to cluster (the papers' N).")] = 10,
    clusters: Annotated[int, typer.Option(min=2, help="Clusters (the papers' k).")] = 2,
    sample: Annotated[int, typer.Option(min=1, help="Questions to try.")] = 50,
    questions: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Real questions, one a line; else stored ones.")
    ] = None,
    json: Json = False,
) -> None:
    """Find how near a stored question must be to stand in for the user's, and keep that in the index's manifest."""
    from kraq_dspy.build.prepare.calibrate import CalibrationPlan, calibrate_index

    if clusters > passages:
        raise ConfigError(f"{passages} passages cannot be put into {clusters} clusters: lower --clusters.")
    real = None if questions is None else _lines(questions)
    with opened(index_dir, config, write=True) as space, Bars(quiet=json) as bars:
        result = calibrate_index(
            space.index,
            space.retriever("dense"),
            space.questions(),
            space.models.settings,
            CalibrationPlan(n=passages, k=clusters, wanted=agreement, n_questions=sample),
            user_questions=real,
            progress=bars,
        )
    if json:
        print_json(result)
        return
    output.print(two_columns(f"{index_dir}: proxy questions", rows_of(result)))
    if text := advice(result):
        note(text)


def rows_of(result: "Calibration") -> dict[str, str]:
    """What the table shows; agreements are shown only for cosines that were tried."""
    shown = [x for x in (0.5, 0.6, 0.7, 0.8, 0.9) if x < result.nearest] + [result.nearest]
    return {
        "threshold": f"cosine {result.threshold:.3f}, for an agreement of {result.wanted:.2f}",
        "noise floor": f"{result.noise_floor:.2f} (two seeds of KMeans on the same vectors)",
        "expected agreement": ", ".join(f"{result.agreement_at(x):.2f} at {x:.2g}" for x in shown),
        "pairs tried": f"{result.n_pairs}, of cosines up to {result.nearest:.2f}",
        "encoder": result.encoder_name,
    }


def advice(result: "Calibration") -> str:
    """What to do about a threshold that lets everything or nothing pass; "" for one between."""
    if result.threshold >= 1:
        return (
            f"of the pairs tried none agrees by {result.wanted:.2f}, so only the same question would be looked up. "
            "A larger corpus has nearer questions; or ask for a lower --agreement."
        )
    if result.threshold < FAR:
        return (
            f"a question with a cosine of {result.threshold:.2f} has little to do with yours, and would stand in for "
            "it. Here the clusters are alike whatever question the passages are seen from. Guard with "
            f"-P min_similarity={FAR:g} (kraq ask), or ask for a higher --agreement."
        )
    return ""


def _lines(file: Path) -> list[str]:
    try:
        lines = [line.strip() for line in file.read_text("utf-8").splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"Cannot read questions from {str(file)!r}: {error}") from error
    if not lines:
        raise ConfigError(f"{str(file)!r} has no questions; write one a line.")
    return lines
