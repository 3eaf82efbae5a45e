"""The page of the papers' tables: written by the generator from the figures that runs left, and from nothing else."""

from pathlib import Path

from kraq_dspy.eval.papers.catalogue import paper_table, papers_tables
from kraq_dspy.eval.papers.listing import differences, listed, page

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


def test_a_run_says_how_many_questions_over_how_many_documents_it_asked() -> None:
    ours = {"models": {"answerer": "m", "encoder": "e"}, "datasets": [], "notes": [], "made_with": {"asked": 200}}
    assert differences(paper_table("kraq-2"), ours).endswith("; 200 questions a data set.")
    over = {**ours, "made_with": {"asked": 15, "documents": 1500}}
    assert "; 15 questions a data set over 1,500 documents, too few" in differences(paper_table("kraq-2"), over)
