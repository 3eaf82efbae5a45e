"""Tells, before anything is asked, how many calls a table will take of models: for its indexes, and for its answers."""

from pathlib import Path

from kraq_dspy.errors import counted
from kraq_dspy.eval.judges import JUDGED
from kraq_dspy.eval.rows import ROWS_FILE, read_rows
from kraq_dspy.indexing.index.estimate import estimate_corpus
from kraq_dspy.papers.tables import systems
from kraq_dspy.papers.tables.indexes import is_indexed, place_of_index
from kraq_dspy.papers.tables.run import Run
from kraq_dspy.papers.tables.table import System
from kraq_dspy.settings import Settings


def cost_in_words(run: Run, folder: Path) -> str:
    """How many calls the rows that `folder` lacks take at least, and about how many the indexes that are not there."""
    name = run.questions.dataset.name
    chosen, _ = run.systems()
    there = len(read_rows(folder / ROWS_FILE)) if (folder / ROWS_FILE).exists() else 0
    n_rows = len(run.questions.examples) * len(chosen)
    calls = sum(_calls_of_an_answer(run, system) for system, _ in chosen) * len(run.questions.examples)
    left = round(calls * max(0, n_rows - there) / max(1, n_rows))
    return (
        f"{name}: {counted(len(run.questions.examples), 'question')} and {counted(len(chosen), 'system')}, "
        f"of whose answers {there:,} are there; at least {counted(left, 'call')} to answer and judge the others. "
        f"{_cost_of_indexes(run, chosen)}"
    )


def _calls_of_an_answer(run: Run, system: System) -> int:
    """At least: a program asks a model once, or as often as it does at a time; each judge once more."""
    if run.table.kind == "answers":
        choice = systems.program_of(system, paper=run.table.of_papers)
        return choice.calls_at_once + len(JUDGED.keys() & set(run.table.metrics))
    if run.table.kind == "qa_search" and system.use != "first of two":
        return 2  # one to word the question otherwise or to judge the answer
    return 0


def _cost_of_indexes(run: Run, chosen: list[tuple[System, Settings]]) -> str:
    if run.table.kind == "qa_search" and run.table.faq != "synthetic":
        return "It needs no index."
    dataset, setup = run.questions.dataset, run.table.as_paper
    of_place: dict[Path, Settings] = {}
    for system, settings in chosen:
        states = [Path(system.options["state"])] if run.table.kind == "questions" and "state" in system.options else []
        of_place[place_of_index(dataset, run.options.indexes, settings, states, setup)[0]] = settings
    lacking = [settings for place, settings in of_place.items() if not is_indexed(place)]
    if not lacking:
        return "Its indexes are there."
    calls = sum(estimate_corpus(dataset.documents, settings).expected.calls for settings in lacking)
    made = "index is" if len(lacking) == 1 else "indexes are"
    documents = counted(len(dataset.documents), "document")
    return f"{len(lacking)} {made} to be made of {documents}: about {counted(calls, 'call')}."
