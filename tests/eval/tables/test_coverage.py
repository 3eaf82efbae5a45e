"""Coverage of a real little index by its questions."""

from collections.abc import Iterator

import pytest

from kraq_dspy.errors import EvaluationError
from kraq_dspy.eval.metrics.bertscore import BertScorer
from kraq_dspy.eval.tables.coverage import SubsetPlan, foretell_relevance, index_coverage
from kraq_dspy.eval.tables.report import coverage_page
from kraq_dspy.workspace import Workspace
from tests.eval.tables.conftest import Toy


@pytest.fixture(scope="module")
def space(toy: Toy) -> Iterator[Workspace]:
    run = toy.run(toy.table("retrievers"), limit=1, ablations=False)
    with Workspace.open(toy.index_of(run)) as opened:
        yield opened


def test_curves_rise_to_the_share_that_all_questions_cover(space: Workspace) -> None:
    coverage = index_coverage(space.index, k=3, budget=1000)
    assert 0 < coverage.share <= 1
    for curve in coverage.curves.values():
        assert list(curve) == sorted(curve)
        assert curve[-1] == pytest.approx(coverage.share)
    assert len(coverage.curves["by chance"]) == coverage.n_questions


def test_greedy_choice_covers_no_less_than_any_other_order(space: Workspace) -> None:
    coverage = index_coverage(space.index, k=3, budget=5)
    greedy, chance, broadest = (coverage.curves[name][4] for name in ("greedy", "by chance", "broadest first"))
    assert greedy >= max(chance, broadest)
    assert len(coverage.chosen) == 5
    assert len({question.id for question in coverage.chosen}) == 5


def test_how_well_coverage_foretells_relevance_is_a_correlation_over_subsets(space: Workspace) -> None:
    references = [
        "Tysons Galleria is located in what county?",
        "Which is higher, Time Warner Center or One Manhattan Square?",
    ]
    vectors = space.embedder.encode_queries(references)
    plan = SubsetPlan(sizes=2, draws=2)
    correlations = foretell_relevance(space.index, references, vectors, BertScorer.packaged(), k=3, tau=0.5, plan=plan)
    assert len(correlations.subsets) == 8
    assert correlations.with_relevance is not None
    assert -1 <= correlations.with_relevance <= 1
    assert {subset.chosen_by for subset in correlations.subsets} == {"chance", "greedy", "crowded"}
    assert all(0 <= subset.coverage <= 1 and 0 <= subset.relevance <= 1 for subset in correlations.subsets)
    text = coverage_page(index_coverage(space.index, k=3), correlations)
    assert text.count("<svg") == 2
    assert "Does coverage foretell Relevance?" in text


def test_an_index_without_such_questions_is_refused(space: Workspace) -> None:
    with pytest.raises(EvaluationError, match="no questions of the source 'magic'"):
        index_coverage(space.index, source="magic")
