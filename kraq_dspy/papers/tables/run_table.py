"""Runs a table: each system over each question of each data set, a row on disk as soon as it is there."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from kraq_dspy.eval.questions import learned_by, learned_note
from kraq_dspy.eval.scoring import require_metric
from kraq_dspy.models.lms.roles import LanguageModels
from kraq_dspy.papers.tables import asking, faq_search, question_quality
from kraq_dspy.papers.tables.cost import cost_in_words
from kraq_dspy.papers.tables.data import load
from kraq_dspy.papers.tables.indexes import prepared
from kraq_dspy.papers.tables.replies import with_model_references
from kraq_dspy.papers.tables.run import Run, RunOptions
from kraq_dspy.papers.tables.systems import require_looked_up, with_equal_questions
from kraq_dspy.papers.tables.table import EvalTable
from kraq_dspy.ports import Progress, SilentProgress
from kraq_dspy.settings import Settings

MEASURES: Mapping[str, Callable[[Run, Path], None]] = {
    "questions": question_quality.measure,
    "answers": asking.measure,
    "retrievers": asking.measure,
    "qa_search": faq_search.measure,
}
"""What writes the rows of a table, by its kind."""


def run_table(
    table: EvalTable, names: Sequence[str], settings: Settings, options: RunOptions, progress: Progress | None = None
) -> list[Path]:
    """The folders of the runs, one for each data set. What an earlier run of the same table did is not done again.

    Before the run, raises ConfigError for an unknown metric, and MissingExtraError or
    EvaluationError for a metric whose package or data are not on this machine. Raises
    EvaluationError if a data set is missing or a folder holds another run, and ModelError if a
    system only fails; it keeps finished rows.
    """
    progress = progress or SilentProgress()
    check: Callable[[str], object] = question_quality.threshold_of if table.kind == "questions" else require_metric
    for metric in table.metrics:
        check(metric)
    if table.kind == "questions":
        options.bertscore().layer  # noqa: B018 (raises where the package is not there)
    if not options.ablations:
        unvaried = tuple(system for system in table.systems if not system.varied)
        table = replace(table, systems=unvaried)

    learned = learned_by(LanguageModels(settings).names().values())
    questions_of = {
        name: load(
            options.data,
            name,
            tokens=options.tokens,
            limit=options.limit_of(name),
            seed=options.seed,
            needs_corpus=table.kind != "qa_search",
            learned=learned,
        )
        for name in names
    }
    require_looked_up(table, settings)
    settings, embedder = prepared(settings)
    folders = []
    for name, questions in questions_of.items():
        folder = options.out / name
        equal, notes = with_equal_questions(settings, table.systems_for(name))
        if questions.learned:
            notes.append(learned_note(questions.learned))
        run = Run(table, questions, equal, embedder, options, progress, notes)
        if options.tell:
            options.tell(cost_in_words(run, folder))
        if table.references == "model":
            models = run.models(equal)
            run.questions = with_model_references(questions, folder, models, progress)
            models.close()
        MEASURES[table.kind](run, folder)
        folders.append(folder)
    return folders
