"""Makes examples for DSPy of rows: what a row says, put as the step is asked, and what is right beside it."""

from collections.abc import Callable
from typing import Any

import dspy

from kraq_dspy.errors import EvaluationError
from kraq_dspy.eval.metrics.answers import check_references
from kraq_dspy.optimize import step_metrics
from kraq_dspy.optimize.row_values import answers_in, example_of, optional_texts, text_in, texts_in, yes_or_no
from kraq_dspy.optimize.rows import Row
from kraq_dspy.programs.conversation import turns_of
from kraq_dspy.programs.qa_search.program import NO_MATCH, numbered

IN_LISTS = frozenset(("passages", "about", "names", "avoid"))
"""Inputs of the steps that make a test set which are lists of texts; one text is a list of one."""


def extraction(row: Row) -> dspy.Example:
    triples = [tuple(triple) for triple in row["triples"]]
    return example_of(row, {"passage": text_in(row, "passage")}, {"triples": step_metrics.checked_triples(triples)})


def gleaning(row: Row) -> dspy.Example:
    inputs = {"passage": text_in(row, "passage"), "found": text_in(row, "found")}
    return example_of(row, inputs, {"missed": texts_in(row["missed"])})


def description(row: Row) -> dspy.Example:
    inputs = {"name": text_in(row, "name"), "descriptions": texts_in(row["descriptions"])}
    return example_of(row, inputs, {"references": optional_texts(row, "description")})


def summary(row: Row) -> dspy.Example:
    references, mentions = optional_texts(row, "summary"), optional_texts(row, "mentions")
    if not references and not mentions:
        raise EvaluationError("there is neither a reference `summary` nor `mentions`")
    return example_of(row, {"elements": texts_in(row["elements"])}, {"references": references, "mentions": mentions})


def generation(row: Row) -> dspy.Example:
    questions = _reference_questions(row)
    gold = {"questions": questions, "question": questions[0], "chunk_ids": optional_texts(row, "chunk_ids")}
    return example_of(row, {"summary": text_in(row, "summary")}, gold)


def decomposition(row: Row) -> dspy.Example:
    questions = _reference_questions(row)
    gold = {"questions": questions, "sub_question": questions[0], "chunk_ids": optional_texts(row, "chunk_ids")}
    return example_of(row, {"information": text_in(row, "information")}, gold)


def _reference_questions(row: Row) -> list[str]:
    questions = texts_in(row["questions"] if "questions" in row else [row["question"]])
    if not questions:
        raise EvaluationError("there are no reference questions")
    return questions


def answering(row: Row) -> dspy.Example:
    gold = answers_in(row)
    inputs = {"question": text_in(row, "question"), "passages": texts_in(row["passages"])}
    return example_of(row, inputs, {**gold, "answer": gold["answers"][0]})


def drafting(row: Row) -> dspy.Example:
    gold = answers_in(row)
    inputs = {"question": text_in(row, "question"), "passages": texts_in(row["passages"])}
    return example_of(row, inputs, gold)


def verification(row: Row) -> dspy.Example:
    inputs = {name: text_in(row, name) for name in ("question", "response", "rationale")}
    return example_of(row, inputs, {"verdict": "Yes" if yes_or_no(row, "supported") else "No"})


def judging(row: Row) -> dspy.Example:
    references = [str(answer) for answer in check_references(row["answers"])]
    inputs = {
        "question": text_in(row, "question"),
        "reference_answers": references,
        "answer": text_in(row, "answer"),
    }
    return example_of(row, inputs, {"correct": yes_or_no(row, "right")})


def matching(row: Row) -> dspy.Example:
    questions, number = texts_in(row["catalogue"]), row["number"]
    if type(number) is not int or not (number == NO_MATCH or 1 <= number <= len(questions)):
        raise EvaluationError(f"number is {number!r}; expected 1 to {len(questions)}, or {NO_MATCH} for no match")
    listed = [numbered(place, text) for place, text in enumerate(questions, start=1)]
    return example_of(row, {"question": text_in(row, "question"), "catalogue": listed}, {"number": number})


def confirmation(row: Row) -> dspy.Example:
    inputs = {"first_question": text_in(row, "asked"), "second_question": text_in(row, "stored")}
    return example_of(row, inputs, {"same": yes_or_no(row, "same")})


def same_entity(row: Row) -> dspy.Example:
    inputs = {"first": text_in(row, "first"), "second": text_in(row, "second")}
    return example_of(row, inputs, {"same": yes_or_no(row, "same")})


def conversation(row: Row) -> dspy.Example:
    references = optional_texts(row, "complete")
    if not references:
        raise EvaluationError("there is no `complete` question to compare with")
    if not turns_of(row["turns"]):
        raise EvaluationError("turns is empty; expected what was said before the question")
    inputs = {"question": text_in(row, "question"), "turns": row["turns"]}
    return example_of(row, inputs, {"references": references})


def critics(row: Row) -> dspy.Example:
    inputs = {name: text_in(row, name) for name in ("question", "answer", "passage")}
    return example_of(row, inputs, {"rejected_by": not yes_or_no(row, "accepted")})


def inputs_alone(*inputs: str) -> Callable[[Row], dspy.Example]:
    """Make the example of a step that asks for a test set: nothing but its inputs, since a question
    is judged by itself. An input of `IN_LISTS` may be one text; the others are texts."""

    def value(row: Row, name: str) -> Any:
        if name not in IN_LISTS or isinstance(row[name], str):
            text = text_in(row, name)
            return [text] if name in IN_LISTS else text
        try:
            return texts_in(row[name])
        except EvaluationError as error:
            raise EvaluationError(f"{name}: {error}") from error

    return lambda row: example_of(row, {name: value(row, name) for name in inputs}, {})


def checked_row(output: str, *inputs: str) -> Callable[[Row], dspy.Example]:
    return lambda row: example_of(row, {name: text_in(row, name) for name in inputs}, {output: yes_or_no(row, output)})
