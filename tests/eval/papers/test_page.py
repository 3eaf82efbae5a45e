"""The page of the papers' tables: written by the generator from the figures that runs left, and from nothing else."""

from pathlib import Path

from kraq_dspy.eval.papers.catalogue import papers_tables
from kraq_dspy.eval.papers.listing import listed, page

RESULTS = Path(__file__).resolve().parents[3] / "docs" / "results"


def test_the_page_is_what_the_generator_writes_from_the_kept_figures() -> None:
    written = (RESULTS / "papers.md").read_text("utf-8")
    assert written == page(listed(RESULTS / "figures")), (
        "run: kraq eval list --markdown --runs docs/results/figures > docs/results/papers.md"
    )


def test_every_kept_figure_says_what_made_it_and_belongs_to_a_table() -> None:
    run = [each for each in listed(RESULTS / "figures") if each.ours is not None]
    assert run
    assert {each.table.id for each in run} <= set(papers_tables())
    for each in run:
        assert each.ours is not None
        assert each.ours["models"]["encoder"]
        assert each.ours["made_with"]["commit"]
