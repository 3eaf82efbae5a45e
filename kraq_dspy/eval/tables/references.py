"""Replaces the gold answers by what a model answers from the gold evidence, as QA-RAG's tables do (its section 4)."""

import dataclasses
import json
from pathlib import Path

import dspy

from kraq_dspy._internal.concurrency import as_done
from kraq_dspy._internal.files import append_line, drop_torn_line, json_objects
from kraq_dspy.errors import EvaluationError
from kraq_dspy.eval.datasets import Example
from kraq_dspy.eval.tables.data import ExampleSet
from kraq_dspy.eval.tables.run import Run
from kraq_dspy.models.lms.meter import working_on
from kraq_dspy.models.lms.structured.adapter import KraqAdapter
from kraq_dspy.signatures import AnswerQuestion

STAGE = "references"


def with_model_references(run: Run, folder: Path) -> ExampleSet:
    """The questions of the run that name their evidence, each with the answer that the role "teacher" gives from it.

    Answers are kept in `folder`/references.jsonl: another run of the command asks for none again. Raises
    EvaluationError where no question names evidence.
    """
    questions, progress = run.questions, run.progress
    named = [example for example in questions.examples if example.supporting_ids]
    if not named:
        raise EvaluationError(f"No question of {questions.dataset.name} names the documents that hold its evidence.")
    texts = {document.id: document.text for document in questions.dataset.documents}
    file = folder / f"{STAGE}.jsonl"
    folder.mkdir(parents=True, exist_ok=True)
    known: dict[str, str] = {}
    if file.exists():
        drop_torn_line(file)
        known = {row["id"]: row["answer"] for _, row in json_objects(file, EvaluationError, "the references")}
    models = run.models(run.settings)
    answer, lm = dspy.Predict(AnswerQuestion), models["teacher"]

    def ask(example: Example) -> tuple[str, str]:
        passages = [texts[document_id] for document_id in example.supporting_ids]
        with working_on(STAGE, example.id), dspy.context(lm=lm, adapter=KraqAdapter(), disable_history=True):
            return example.id, str(answer(passages=passages, question=example.question).answer)

    todo = [example for example in named if example.id not in known]
    progress.start(STAGE, len(named))
    progress.advance(STAGE, len(named) - len(todo))
    for example_id, text in as_done(ask, todo, limit=run.settings.run.concurrency):
        append_line(file, json.dumps({"id": example_id, "answer": text}, ensure_ascii=False))
        known[example_id] = text
        progress.advance(STAGE)
    progress.finish(STAGE)
    models.close()
    examples = tuple(
        dataclasses.replace(example, answers=(known[example.id],), answer_items=(), type="")
        for example in named
        if known[example.id].strip()
    )
    return ExampleSet(questions.dataset, examples, questions.left_out + len(questions.examples) - len(examples))
