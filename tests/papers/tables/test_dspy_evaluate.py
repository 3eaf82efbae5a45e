"""Runs our programs and metrics under DSPy's own Evaluate."""

from pathlib import Path
from statistics import fmean

import dspy
import pytest

from kraq_dspy.eval import exact_match, named_metric
from kraq_dspy.eval.reports.summary import scores_of
from kraq_dspy.eval.rows import read_run
from kraq_dspy.extend import KraqAdapter
from kraq_dspy.papers.tables.data import load
from kraq_dspy.papers.tables.table import EvalTable, System
from kraq_dspy.workspace import Workspace
from tests.papers.tables.conftest import Toy

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "hotpotqa-mini"


def test_dspy_evaluate_and_the_benchmark_agree(toy: Toy) -> None:
    systems = (System("combined", "combined", {"k": 4}),)
    table = EvalTable("t", "T", "answers", "combined", systems, metrics=("exact_match", "recall"))
    run = toy.run(table)
    _, rows = read_run(run)
    devset = [example.to_dspy() for example in load(EXAMPLE, "hotpotqa-mini", tokens=2500).examples]
    with Workspace.open(toy.index_of(run)) as space, dspy.context(adapter=KraqAdapter()):
        program = space.program("combined", k=4)
        for metric, name in ((exact_match, "exact_match"), (named_metric("recall@4"), "recall")):
            result = dspy.Evaluate(devset=devset, metric=metric, num_threads=2, display_progress=False)(program)
            assert result.score == pytest.approx(100 * fmean(scores_of(rows, name).values()), abs=0.01)
