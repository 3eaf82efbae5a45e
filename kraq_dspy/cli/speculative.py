"""`kraq precompute` and `kraq calibrate`, and how `kraq ask` shows the answers of the speculative programs."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from kraq_dspy.cli import options
from kraq_dspy.cli.prepare import prepare
from kraq_dspy.cli.terminal import Bars, errors, output, print_json, short, two_columns

if TYPE_CHECKING:
    import dspy

    from kraq_dspy.prepare.instructed import PrecomputeEstimate


def precompute(
    index_dir: options.IndexDir,
    top_n: Annotated[str, typer.Option("--top-n", help="Passages for each question: a number, or all.")] = "100",
    int8: Annotated[bool, typer.Option("--int8", help="Half the size of float16, a little less exact.")] = False,
    source: Annotated[
        str, typer.Option("--source", help="Questions to do it for: kraq, random (the papers' baseline) or all.")
    ] = "kraq",
    estimate_only: Annotated[bool, typer.Option("--estimate", help="Say what it will take, and stop.")] = False,
    qa_pairs: Annotated[
        bool, typer.Option("--qa-pairs", help="Instead: every passage as question-answer pairs, for qa-rag.")
    ] = False,
    graph: Annotated[
        bool, typer.Option("--graph", help="Instead: embeddings of entities and reports, for GraphRAG's searches.")
    ] = False,
    raptor: Annotated[
        bool,
        typer.Option("--raptor", help="Instead: a tree of summaries, for the retrievers raptor and raptor-traversal."),
    ] = False,
    k2rag: Annotated[
        bool, typer.Option("--k2rag", help="Instead: every document summarised, and indexed so, for the program k2rag.")
    ] = False,
    config: options.SettingsFile = None,
    lm: options.Model = None,
    api_base: options.ApiBase = None,
    json: options.Json = False,
) -> None:
    """Embed passages as seen from the stored questions, so that `kraq ask --program efficient` looks them up.

    Run it again to go on after an interruption, or when passages or questions have been added.
    """
    kinds = {"qa-pairs": qa_pairs, "graph": graph, "raptor": raptor, "k2rag": k2rag}
    if wanted_kinds := [name for name, is_wanted in kinds.items() if is_wanted]:
        prepare(index_dir, wanted_kinds, config, lm, api_base, json=json)
        return
    from kraq_dspy.errors import ConfigError
    from kraq_dspy.prepare.instructed import parse_top_n
    from kraq_dspy.stores.index import Index
    from kraq_dspy.workspace.speculative import make_precomputation

    if source not in ("kraq", "random", "all"):
        raise ConfigError(f"--source is {source!r}; it must be kraq, random or all.")
    wanted = parse_top_n(top_n)
    with Index.open(index_dir, write=True) as index:
        settings = options.settings_from(config, base=index.manifest.settings)
        job = make_precomputation(
            index,
            settings,
            top_n=wanted,
            precision="int8" if int8 else "float16",
            source=None if source == "all" else source,
        )
        try:
            estimate = job.estimate()
            if estimate_only:
                print_json(estimate) if json else output.print(_in_words(estimate))
                return
            errors.print(_in_words(estimate))
            with Bars(quiet=json) as bars:
                report = job.run(bars)
        finally:
            job.store.close()
    if json:
        print_json(report)
        return
    rows: dict[str, Any] = {
        "questions": f"{report.questions:,}",
        "pairs embedded": f"{report.pairs_embedded:,}",
        "pairs kept": f"{report.pairs_kept:,}",
        "questions removed": f"{report.questions_removed:,}",
        "size": in_bytes(report.n_bytes),
        "failed": f"{len(report.failures):,}",
    }
    output.print(two_columns(f"{index_dir} in {report.seconds:.1f} s", rows))
    for question_id, reason in report.failures[:10]:
        errors.print(Text(f"{question_id}: ", style="yellow") + short(reason, 300))


def calibrate(
    index_dir: options.IndexDir,
    agreement: Annotated[
        float, typer.Option("--agreement", min=0.0, max=1.0, help="Adjusted Rand index that the clusters must reach.")
    ] = 0.5,
    passages: Annotated[int, typer.Option("--passages", min=2, help="Passages to cluster (the papers' N).")] = 10,
    clusters: Annotated[int, typer.Option("--clusters", min=2, help="Clusters (the papers' k).")] = 2,
    sample: Annotated[int, typer.Option("--sample", min=1, help="Questions to try.")] = 50,
    questions: Annotated[
        Path | None, typer.Option("--questions", metavar="FILE", help="Real questions, one a line; else stored ones.")
    ] = None,
    config: options.SettingsFile = None,
    json: options.Json = False,
) -> None:
    """Find how near a stored question must be to stand in for the user's, and keep that in the index's manifest."""
    from kraq_dspy.errors import ConfigError
    from kraq_dspy.workspace import Workspace
    from kraq_dspy.workspace.speculative import calibrate_index

    asked = None
    if questions is not None:
        try:
            asked = [line.strip() for line in questions.read_text("utf-8").splitlines() if line.strip()]
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"Cannot read questions from {str(questions)!r}: {error}") from error
        if not asked:
            raise ConfigError(f"{str(questions)!r} has no questions; write one a line.")
    with Workspace.open(index_dir, write=True) as space, Bars(quiet=json) as bars:
        settings = options.settings_from(config, base=space.index.manifest.settings)
        found = calibrate_index(
            space.index,
            space.retriever("dense"),
            space.questions(),
            settings,
            asked=asked,
            n=passages,
            k=clusters,
            wanted=agreement,
            n_questions=sample,
            progress=bars,
        )
    if json:
        print_json(found.to_dict())
        return
    rows = {
        "threshold": f"cosine {found.threshold:.3f}, for an agreement of {found.wanted:.2f}",
        "noise floor": f"{found.noise_floor:.2f} (two seeds of KMeans on the same vectors)",
        "expected agreement": ", ".join(f"{found.agreement_at(x):.2f} at {x:.1f}" for x in (0.5, 0.6, 0.7, 0.8, 0.9)),
        "pairs tried": f"{len(found.points):,}",
        "encoder": found.encoder_name,
    }
    output.print(two_columns(f"{index_dir}: proxy questions", rows))


def show_speculation(answer: "dspy.Prediction") -> None:
    """The rationale, the drafts and the times; for the efficient program the question that stood in."""
    output.print(Text("because ", style="bold") + short(answer.rationale, 600))
    for draft in answer.drafts:
        mark = "→" if draft.number == answer.chosen else " "
        score = answer.scores.get(draft.number)
        shown = f"{score.total:8.3f}" if score else "  failed"
        line = Text(f"  {mark} draft {draft.number} {shown} ", style="cyan" if draft.number == answer.chosen else "")
        output.print(line + short(draft.response, 100))
    for failure in answer.failures:
        errors.print(Text(f"  draft {failure.number} failed: ", style="yellow") + short(failure.reason, 200))
    if "proxy_used" in answer:
        output.print(_proxy(answer))
    times = answer.timings
    stages = ("retrieve", "proxy", "lookup", "embed", "cluster", "draft_max", "verify_max", "select")
    parts = ", ".join(f"{name} {1000 * getattr(times, name):.1f}" for name in stages if getattr(times, name))
    output.print(Text(f"ms: {parts}; wall {1000 * times.wall:.1f}; papers' model {1000 * times.parallel_model:.1f}"))


def _proxy(answer: "dspy.Prediction") -> Text:
    if answer.proxy is None:
        return Text("no stored question; passages embedded online")
    similarity = f"{answer.proxy_similarity:.2f}"
    if not answer.proxy_used:
        return Text(f"nearest question at {similarity} not used; passages embedded online")
    counts = f"{answer.n_looked_up} looked up, {answer.n_embedded} embedded online"
    return Text(f"seen from ({similarity}, {counts}): ") + short(answer.proxy.question.text, 120)


def _in_words(estimate: "PrecomputeEstimate") -> Text:
    return Text(
        f"{estimate.pairs:,} passes of the encoder for {estimate.questions:,} questions "
        f"({estimate.pairs_stored:,} are stored already): about {in_time(estimate.seconds)}, "
        f"{in_bytes(estimate.n_bytes)}"
    )


def in_bytes(number: int) -> str:
    """1234567 as "1.2 MB"."""
    for size, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if number >= size:
            return f"{number / size:.1f} {unit}"
    return f"{number} bytes"


def in_time(seconds: float) -> str:
    """5000 as "1 h 23 min"."""
    if seconds >= 3600:
        return f"{seconds // 3600:.0f} h {seconds % 3600 // 60:.0f} min"
    return f"{seconds // 60:.0f} min {seconds % 60:.0f} s" if seconds >= 60 else f"{seconds:.1f} s"
