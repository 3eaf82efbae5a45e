"""Measures how much of an index its questions cover: `kraq eval coverage`."""

from typing import Annotated

import typer

from kraq_dspy.cli.research.eval.options import Bertscore, Data, OneDataset, RunOut
from kraq_dspy.cli.shared.opened import opened
from kraq_dspy.cli.shared.options import Config, IndexDir, Json, QuestionSource, Source
from kraq_dspy.cli.shared.terminal import output, print_json, say, short
from kraq_dspy.cli.shared.writable import require_writable


def coverage(
    index_dir: IndexDir,
    data: Data,
    bertscore: Bertscore,
    config: Config,
    k: Annotated[
        int, typer.Option("--k", "-k", min=1, help="A chunk is covered if it is among so many of a question.")
    ] = 5,
    budget: Annotated[int, typer.Option("--budget", min=1, help="Questions to choose greedily.")] = 100,
    source: Source = QuestionSource.kraq,
    dataset: OneDataset = None,
    tau: Annotated[float, typer.Option(min=0.0, max=1.0, help="Of Relevance@tau.")] = 0.7,
    out: RunOut = None,
    json: Json = False,
) -> None:
    """How much of an index its questions cover, and the few that cover most: no reference questions needed.

    With --dataset, also how well coverage foretells the Relevance of its questions.
    """
    from kraq_dspy.eval.tables.coverage import SubsetPlan, foretell_relevance, index_coverage
    from kraq_dspy.eval.tables.data import load
    from kraq_dspy.eval.tables.report import coverage_page, print_grid
    from kraq_dspy.eval.tables.report.grids import Grid, foretelling_grid

    if out is not None:
        require_writable(out)
    foretelling = None
    with opened(index_dir, config) as space:
        result = index_coverage(space.index, k=k, budget=budget, source=source, seed=data.seed)
        if dataset is not None:
            examples = load(data.data, dataset, limit=data.limit, seed=data.seed).examples
            references = [example.question for example in examples]
            foretelling = foretell_relevance(
                space.index,
                references,
                space.embedder.encode_queries(references),
                bertscore.scorer(),
                k=k,
                source=source,
                tau=tau,
                plan=SubsetPlan(seed=data.seed),
            )
    file = None
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        file = out / "coverage.html"
        file.write_text(coverage_page(result, foretelling), "utf-8")
    if json:
        print_json({"coverage": result, "foretelling": foretelling})
        return
    say(
        f"{result.share:.1%} of {result.n_chunks:,} chunks are among the {result.k} nearest of one of "
        f"{result.n_questions:,} questions."
    )
    steps = sorted({1, 10, 100, 1000, len(result.chosen), result.n_questions})
    rows = tuple(
        (f"{step:,}", *(f"{curve[step - 1]:.3f}" if step <= len(curve) else "" for curve in result.curves.values()))
        for step in steps
        if step <= result.n_questions
    )
    print_grid(Grid("Share covered by the first questions", ("questions", *result.curves), rows), output)
    if foretelling is not None:
        print_grid(foretelling_grid(foretelling), output)
    for place, question in enumerate(result.chosen[:10], start=1):
        say(f"{place:3} ", short(question.text, 200))
    if file is not None:
        say(f"Page: {file}")
