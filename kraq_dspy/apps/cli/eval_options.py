"""Declares the options that the commands of `kraq eval` share."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

import typer

if TYPE_CHECKING:
    from kraq_dspy.eval.metrics.bertscore import BertScorer
    from kraq_dspy.eval.statistics import Interval

RunOut = Annotated[
    Path | None, typer.Option("--out", "-o", metavar="DIR", help="Rows and report. Default: runs/TABLE.")
]
Baseline = Annotated[str | None, typer.Option("--baseline", help="The system that the others are compared with.")]
OneDataset = Annotated[str | None, typer.Option("--dataset", "-d", help="Take its questions and gold answers.")]


@dataclass(frozen=True)
class Data:
    PANEL: ClassVar[str] = "Data"

    data: Annotated[
        Path, typer.Option(metavar="DIR", help="Folder of data sets, or one (questions.jsonl and corpus.jsonl).")
    ] = Path("data")
    limit: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Questions of each data set, drawn by the seed; a larger number goes on where a smaller one ended.",
        ),
    ] = None
    seed: Annotated[int, typer.Option(help="Of the sample, the clusters and the bootstrap.")] = 0


@dataclass(frozen=True)
class Bertscore:
    bertscore: Annotated[
        str,
        typer.Option(
            metavar="MODEL",
            help="roberta-large (the papers'), minilm (packaged, offline), a hub name, or FOLDER:LAYER.",
        ),
    ] = "roberta-large"

    def scorer(self) -> "BertScorer":
        return named_scorer(self.bertscore)


def named_scorer(name: str) -> "BertScorer":
    from kraq_dspy.eval.metrics.bertscore import BertScorer

    if name == "minilm":
        return BertScorer.packaged()
    folder, _, layer = name.rpartition(":")
    if folder and layer.isdecimal():
        return BertScorer(folder, int(layer))
    return BertScorer(name)


def interval(value: "Interval", sign: str = "") -> str:
    low, high = (format(end, f"{sign}.3f") for end in (value.low, value.high))
    return f"{value.estimate:{sign}.3f} [{low}, {high}]"
