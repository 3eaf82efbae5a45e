"""Scores answers that were given already: rows with a response and the passages that it was read from, and no system.

    evaluate(None, rows)      # rows of RAGAS, DeepEval or TruLens, or of your own log
    kraq eval FILE

RAGAS calls them `response` and `retrieved_contexts` (before 0.2 `answer` and `contexts`), DeepEval `actual_output` and
`retrieval_context`, TruLens `output` and `contexts`. `retrieved_context_ids` name the passages' documents, for recall.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import dspy

from kraq_dspy.asset.corpus.tokens import count_tokens
from kraq_dspy.errors import ConfigError, EvaluationError, counted
from kraq_dspy.eval.datasets import Example
from kraq_dspy.eval.gold import document_names, first_column, gold_answers, plain_names
from kraq_dspy.records import Chunk, Hit, content_id

RESPONSES = ("response", "actual_output", "output", "generated_answer", "prediction", "model_answer")
"""Columns of an answer that was given."""
CONTEXTS = ("retrieved_contexts", "retrieval_context", "retrieved_context", "contexts", "context")
"""Columns of the passages that it was read from."""
CONTEXT_IDS = ("retrieved_context_ids", "retrieved_ids", "retrieved_document_ids")
"""Columns of the ids of these passages' documents, in the same order."""
OF_REFERENCES = ("ground_truth", "ground_truths", "reference", "expected_output", "expected_answer")
"""Columns of a right answer beside which "answer" is the one that was given (RAGAS before 0.2)."""


def names_answer_given(row: Mapping[Any, Any]) -> bool:
    """Whether the column "answer" of a row is the answer that was given, since another one has the right answer.

    >>> names_answer_given({"question": "?", "answer": "Oslo", "contexts": ["..."], "ground_truth": "Oslo"})
    True
    """
    names = plain_names(row).keys()
    return "answer" in names and bool(names & {*CONTEXTS}) and bool(names & {*OF_REFERENCES})


class RecordedAnswers:
    """Stands for the system that gave the answers: it says of each question what its row says."""

    name = "recorded"

    def of(self, example: Example) -> dspy.Prediction:
        """The answer and the passages of a row. Raises EvaluationError for a row without an answer."""
        column = _response_column(example.metadata)
        if not column:
            known = ", ".join(map(repr, example.metadata)) or "none besides the question"
            raise EvaluationError(
                f"The row has no recorded answer; its columns are: {known}. Expected one of {', '.join(RESPONSES)}."
            )
        answer = str(example.metadata[column])
        texts = texts_of(example.metadata)
        if texts is None:
            return dspy.Prediction(answer=answer)
        return dspy.Prediction(answer=answer, hits=hits_of(example.question, texts, _ids_of(example.metadata)))


def require_recorded(examples: Sequence[Example]) -> None:
    """Raise ConfigError if there is neither a system nor a recorded answer."""
    if not any(_response_column(example.metadata) for example in examples):
        raise ConfigError(
            "There is no system to ask, and no row has a recorded answer. Expected a column response and "
            "retrieved_contexts (RAGAS), actual_output and retrieval_context (DeepEval) or output and contexts "
            "(TruLens); or name an index: kraq eval INDEX QUESTIONS."
        )


def has_passages(examples: Sequence[Example]) -> bool:
    """Whether any row tells the passages that its answer was read from."""
    return any(texts_of(example.metadata) is not None for example in examples)


def has_document_ids(examples: Sequence[Example]) -> bool:
    """Whether any row names the documents of its passages, without which there is no recall."""
    return any(first_column(example.metadata, CONTEXT_IDS) for example in examples)


def without_recorded(example: Example) -> Example:
    """The example without what was recorded, which no metric may take for gold."""
    recorded = {*RESPONSES, *CONTEXTS, *CONTEXT_IDS}
    if names_answer_given(example.metadata):
        recorded.add("answer")
    left_out = {name for plain, name in plain_names(example.metadata).items() if plain in recorded}
    metadata = {name: value for name, value in example.metadata.items() if name not in left_out}
    return dataclasses.replace(example, metadata=metadata)


def texts_of(row: Mapping[Any, Any]) -> list[str] | None:
    """The passages that a row or a reply names, a text or a list of them; None if it names none."""
    column = first_column(row, CONTEXTS)
    if not column:
        return None
    return list(gold_answers(row[column]).answers)


def hits_of(question: str, texts: Sequence[str], document_ids: Sequence[str] = ()) -> list[Hit]:
    """Passages as hits, scored 1 / rank. Without ids, a passage's document is the hash of its text.

    Raises EvaluationError for ids of another number than the passages.
    """
    if document_ids and len(document_ids) != len(texts):
        raise EvaluationError(
            f"There are {counted(len(texts), 'passage')} and {counted(len(document_ids), 'id')} of their documents; "
            "expected one for each."
        )
    hits = []
    for rank, text in enumerate(texts, start=1):
        id = content_id("text", text)
        document = document_ids[rank - 1] if document_ids else id
        chunk = Chunk(id, document, rank - 1, 0, len(text), text, count_tokens(text))
        hits.append(Hit(chunk, 1 / rank, question, RecordedAnswers.name))
    return hits


def prediction_of(question: str, reply: Any) -> dspy.Prediction | None:
    """What a function answered, as a prediction: a text, or a mapping or an object with an answer; None for anything
    else, such as passages that were found."""
    if isinstance(reply, dspy.Prediction):
        return reply if {"answer", "response"} & set(reply.keys()) else None
    if isinstance(reply, str):
        return dspy.Prediction(answer=reply)
    row = reply if isinstance(reply, Mapping) else getattr(reply, "__dict__", None)
    if not isinstance(row, Mapping):
        return None
    column = first_column(row, ("answer", *RESPONSES, "result"))
    if not column:
        return None
    texts = texts_of({**row, "context": row.get("context") or row.get("passages")})
    hits = {} if texts is None else {"hits": hits_of(question, texts)}
    return dspy.Prediction(answer=str(row[column]), **hits)


def _response_column(row: Mapping[Any, Any]) -> Any:
    return first_column(row, ("answer", *RESPONSES) if names_answer_given(row) else RESPONSES)


def _ids_of(row: Mapping[Any, Any]) -> tuple[str, ...]:
    column = first_column(row, CONTEXT_IDS)
    return document_names(row[column]) if column else ()
