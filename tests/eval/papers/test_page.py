"""The page of the papers' tables: written by the generator from the figures that runs left, and from nothing else."""

from pathlib import Path

from kraq_dspy.eval.papers import paper_table, papers_tables
from kraq_dspy.eval.papers.listing import TableStatus, differences, listed, page

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
    assert "; 200 questions a data set; " in differences(paper_table("kraq-2"), ours)
    over = {**ours, "made_with": {"asked": 15, "documents": 1500}}
    assert "; 15 questions a data set over 1,500 documents, too few" in differences(paper_table("kraq-2"), over)


def test_a_run_says_its_settings_or_that_they_are_not_known() -> None:
    ours = {"models": {"answerer": "m"}, "datasets": [], "notes": [], "made_with": {}}
    assert differences(paper_table("kraq-2"), ours).endswith("; the run did not keep whether `--paper` was set.")
    kept = {**ours, "made_with": {"settings": {"[questions] names": 0, "[summaries] context": "model"}}}
    assert differences(paper_table("kraq-2"), kept).endswith("; [questions] names = 0, [summaries] context = model.")


def test_a_row_of_the_papers_tuned_generator_says_what_asked_here() -> None:
    table = paper_table("kraq-4")
    ours = {
        "rows": ["Fine-tuned KRAQ", "Random Baseline"], "columns": ["EM"], "ours": [[1.0], [2.0]], "datasets": [],
        "models": {"generator": "embedded"}, "notes": [], "made_with": {},
    }  # fmt: skip
    written = page([TableStatus(table, ours)])
    assert "| Fine-tuned KRAQ (here: embedded templates) | 1 (67.5) |" in written
    assert "| Random Baseline | 2 (65.3) |" in written
