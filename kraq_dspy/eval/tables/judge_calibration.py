"""Measures how far to believe a judge, by its verdicts on answers whose rightness is known."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dspy

from kraq_dspy._internal.files import json_objects
from kraq_dspy.errors import ConfigError, EvaluationError
from kraq_dspy.eval.datasets import Example
from kraq_dspy.eval.judging.agreement import Agreement, judge_agreement, write_agreement
from kraq_dspy.eval.judging.judges import AnsweredQuestion, BinaryJudge, Judge, RubricJudge, judge_answers
from kraq_dspy.eval.metrics.normalise import normalise_answer
from kraq_dspy.eval.rows import ResultRow, RowWriter, RunHeader, read_run
from kraq_dspy.eval.tables.data import ExampleSet
from kraq_dspy.models.lms.adapter import KraqAdapter
from kraq_dspy.ports import Progress, SilentProgress

JUDGES: dict[str, type[Judge]] = {"binary": BinaryJudge, "rubric": RubricJudge}
METRIC = "judged_right"


@dataclass(frozen=True, slots=True)
class LabelledAnswer:
    """An answer, and whether people (or the way it was made) say that it is right."""

    answered: AnsweredQuestion
    right: bool


def read_labelled(path: Path) -> list[LabelledAnswer]:
    """JSON lines with id, question, answers (gold), answer and right (true or false); for lists `answer_items`.

    Raises EvaluationError naming the line.
    """
    labelled = []
    for place, row in json_objects(path, EvaluationError, "the labelled answers"):
        try:
            right = row["right"]
            answered = AnsweredQuestion(
                str(row["id"]),
                row["question"],
                tuple(row["answers"]),
                row["answer"],
                tuple(tuple(item) for item in row.get("answer_items", ())),
            )
        except (KeyError, TypeError) as error:
            raise EvaluationError(
                f"{place}: {type(error).__name__} {error}. Expected an object with id, question, "
                "answers, answer and right."
            ) from error
        if not isinstance(right, bool):
            raise EvaluationError(f"{place}: right is {right!r}; expected true or false.")
        labelled.append(LabelledAnswer(answered, right))
    return labelled


def made_from(questions: ExampleSet, *, seed: int = 0) -> list[LabelledAnswer]:
    """Two answers to each question: a gold one, and the gold one of another question of the same type.

    An easy set: a judge that fails it is useless, one that passes it may still misjudge what programs answer. Where a
    question has several gold answers, the judge is shown the first, and judges the last. Questions without a gold
    answer, or with one that is yes or no, are left out.
    """
    usable = [
        each for each in questions.examples if each.answers and normalise_answer(each.answers[0]) not in ("yes", "no")
    ]
    labelled = []
    for example, other in zip(usable, _others(usable, seed), strict=True):
        gold = (example.answers[0],)
        right = AnsweredQuestion(f"{example.id}/right", example.question, gold, example.answers[-1])
        labelled.append(LabelledAnswer(right, True))
        if other is not None:
            wrong = AnsweredQuestion(f"{example.id}/wrong", example.question, gold, other)
            labelled.append(LabelledAnswer(wrong, False))
    if not labelled:
        raise EvaluationError(f"{questions.dataset.name}: no question has a gold answer to calibrate a judge by.")
    return labelled


def calibrate_judge(
    labelled: Sequence[LabelledAnswer],
    kind: str,
    lm: dspy.LM,
    header: RunHeader,
    folder: Path,
    *,
    concurrency: int = 8,
    progress: Progress | None = None,
) -> Agreement:
    """Asks the judge about what `folder` has no row of yet, then compares all its verdicts with the labels.

    Raises ConfigError for an unknown kind, EvaluationError when nothing could be judged.
    """
    if kind not in JUDGES:
        raise ConfigError(f"There is no judge {kind!r}; there are: {', '.join(JUDGES)}.")
    judge = JUDGES[kind]()
    judge.set_lm(lm)
    progress = progress or SilentProgress()
    writer = RowWriter(folder, header)
    todo = [each.answered for each in labelled if (kind, each.answered.id) not in writer.done]
    progress.start(f"{kind} judge", len(labelled))
    progress.advance(f"{kind} judge", len(labelled) - len(todo))
    for start in range(0, len(todo), 4 * concurrency):
        for row in _judged(judge, kind, todo[start : start + 4 * concurrency], concurrency):
            writer.write(row)
            progress.advance(f"{kind} judge")
    _, rows = read_run(folder)
    agreement = agreement_of(labelled, rows, kind, str(lm.model))
    write_agreement(agreement, header.dataset, folder)
    return agreement


def agreement_of(labelled: Sequence[LabelledAnswer], rows: Sequence[ResultRow], kind: str, model: str) -> Agreement:
    gold = {each.answered.id: each.right for each in labelled}
    judged = {
        row.question_id: bool(row.metrics[METRIC]) for row in rows if row.system == kind and METRIC in row.metrics
    }
    return judge_agreement(gold, judged, judge=f"{kind} judge, {model}")


def _judged(judge: Judge, kind: str, answered: Sequence[AnsweredQuestion], concurrency: int) -> Iterator[ResultRow]:
    with dspy.context(adapter=KraqAdapter()):
        verdicts = judge_answers(judge, answered, concurrency=concurrency)
    reasons = {failure.item_id: failure.reason for failure in verdicts.failures}
    graded = {verdict.question_id: verdict for verdict in verdicts.verdicts}
    for each in answered:
        extra: dict[str, Any] = {"question": each.question, "gold": list(each.gold)}
        if each.id in reasons:
            yield ResultRow(each.id, kind, answer=each.answer, failure=reasons[each.id], extra=extra)
            continue
        verdict = graded[each.id]
        extra |= {"grade": verdict.grade, "feedback": verdict.feedback}
        yield ResultRow(each.id, kind, answer=each.answer, metrics={METRIC: verdict.score}, extra=extra)


def _others(examples: Sequence[Example], seed: int) -> list[str | None]:
    """For each example, a gold answer of another one of its type that is none of its own; None where there is none."""
    rng = random.Random(seed)
    by_type: dict[str, list[Example]] = {}
    for example in examples:
        by_type.setdefault(example.type, []).append(example)
    others: list[str | None] = []
    for example in examples:
        own = {normalise_answer(answer) for answer in example.answers}
        candidates = by_type[example.type]
        start = rng.randrange(len(candidates))
        turned = candidates[start:] + candidates[:start]
        others.append(next((each.answers[0] for each in turned if normalise_answer(each.answers[0]) not in own), None))
    return others
