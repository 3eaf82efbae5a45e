"""Measures how far a judge agrees with labels: `kraq eval judges`."""

import dataclasses
from pathlib import Path
from typing import Annotated

import typer

from kraq_dspy.apps.cli.eval_options import Data, OneDataset, RunOut, interval
from kraq_dspy.apps.cli.progress import Bars
from kraq_dspy.apps.cli.options import Calls, Json
from kraq_dspy.apps.cli.terminal import output, print_json, two_columns
from kraq_dspy.errors import ConfigError


def judges(
    data: Data,
    calls: Calls,
    labelled: Annotated[
        Path | None,
        typer.Argument(metavar="LABELLED.jsonl", help="Lines with id, question, answers, answer, right (true, false)."),
    ] = None,
    dataset: OneDataset = None,
    judge: Annotated[str, typer.Option(help="binary, or rubric (grades 1 to 5; 4 and 5 are right).")] = "binary",
    out: RunOut = None,
    json: Json = False,
) -> None:
    """How far a judge agrees with labels: accuracy and Cohen's kappa, with intervals."""
    from importlib.metadata import version

    from kraq_dspy.eval.rows import RunHeader
    from kraq_dspy.eval.tables.data import load
    from kraq_dspy.eval.tables.judge_calibration import calibrate_judge, made_from, read_labelled
    from kraq_dspy.models.lms.roles import LanguageModels

    settings = calls.settings()
    if labelled is not None and dataset is None:
        answers, name = read_labelled(labelled)[: data.limit], labelled.stem
    elif dataset is not None and labelled is None:
        answers = made_from(load(data.data, dataset, limit=data.limit, seed=data.seed), seed=data.seed)
        name = dataset
    else:
        raise ConfigError("Give a file of labelled answers, or --dataset NAME to make them from its gold answers.")
    models = LanguageModels(settings)
    header = RunHeader(
        name="judges",
        dataset=name,
        settings={"judge": judge, "answers": len(answers)},
        seeds={"seed": data.seed},
        models={"judge": models["judge"].model},
        library_version=version("kraq-dspy"),
    )
    with Bars(settings, quiet=json) as bars:
        result = calibrate_judge(
            answers,
            judge,
            models["judge"],
            header,
            out or Path("runs") / "judges" / name / judge,
            concurrency=settings.run.concurrency,
            progress=bars,
        )
    models.close()
    if json:
        confusion = [
            {"label": gold, "judged": judged, "answers": count} for (gold, judged), count in result.confusion.items()
        ]
        fields = {field.name: getattr(result, field.name) for field in dataclasses.fields(result)}
        print_json({**fields, "confusion": confusion})
        return
    rows = {
        "judge": result.judge,
        "accuracy": interval(result.accuracy),
        "Cohen's kappa": interval(result.kappa),
        **{f"label {gold}, judged {judged}": count for (gold, judged), count in result.confusion.items()},
        "judged": f"{result.n} of {result.n + result.n_failed}",
    }
    output.print(two_columns(f"{name}: agreement with the labels", rows))
