"""Asks a model about each question of a table, and keeps its replies: references, and the wordings of a question."""

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import dspy

from kraq_dspy._internal.concurrency import as_done
from kraq_dspy.errors import EvaluationError
from kraq_dspy.eval.datasets import Example
from kraq_dspy.models.lms.adapter import KraqAdapter
from kraq_dspy.models.lms.meter import working_on
from kraq_dspy.models.lms.roles import LanguageModels
from kraq_dspy.papers.tables.data import ExampleSet
from kraq_dspy.ports import Progress
from kraq_dspy.signatures import AnswerQuestion
from kraq_dspy.steps.journal import JournalFile

STAGE = "references"


def with_model_references(
    questions: ExampleSet, folder: Path, models: LanguageModels, progress: Progress
) -> ExampleSet:
    """The questions that name their evidence, each with the answer that the role "teacher" gives from it.

    Answers are kept in `folder`/references.jsonl: another run of the command asks for none again. Raises
    EvaluationError where no question names evidence.
    """
    named = [example for example in questions.examples if example.supporting_ids]
    if not named:
        raise EvaluationError(f"No question of {questions.dataset.name} names the documents that hold its evidence.")
    texts = {document.id: document.text for document in questions.dataset.documents}
    answer = dspy.Predict(AnswerQuestion)

    def ask(example: Example) -> str:
        passages = [texts[document_id] for document_id in example.supporting_ids]
        return str(answer(passages=passages, question=example.question).answer)

    file, at_once = folder / f"{STAGE}.jsonl", models.settings.run.concurrency
    known = kept_replies(file, STAGE, named, ask, models["teacher"], at_once=at_once, progress=progress)
    examples = tuple(
        dataclasses.replace(example, answers=(known[example.id],), answer_items=(), type="")
        for example in named
        if known[example.id].strip()
    )
    return ExampleSet(questions.dataset, examples, questions.left_out + len(questions.examples) - len(examples))


def kept_replies(
    file: Path,
    stage: str,
    examples: Sequence[Example],
    ask: Callable[[Example], Any],
    lm: dspy.BaseLM,
    *,
    at_once: int,
    progress: Progress,
) -> dict[str, Any]:
    """Return what `ask` makes of the model's reply to each question, JSON values by the question's id.

    A line of `file` keeps each as it comes, so that another run asks for none again. What another model replied is
    asked again.
    """
    model = str(lm.model)
    journal: JournalFile[tuple[str, str], Any] = JournalFile(
        file,
        lambda line: ((line["id"], line.get("model", model)), line["reply"]),  # 1.0.0rc1 wrote no model
        f"the {stage}",
        EvaluationError,
    )
    todo = [example for example in examples if (example.id, model) not in journal]
    progress.start(stage, len(examples))
    progress.advance(stage, len(examples) - len(todo))

    def one(example: Example) -> tuple[str, Any]:
        with working_on(stage, example.id), dspy.context(lm=lm, adapter=KraqAdapter(), disable_history=True):
            return example.id, ask(example)

    for example_id, reply in as_done(one, todo, limit=at_once):
        journal.keep({"id": example_id, "reply": reply, "model": model})
        progress.advance(stage)
    progress.finish(stage)
    return {example.id: journal[example.id, model] for example in examples}
