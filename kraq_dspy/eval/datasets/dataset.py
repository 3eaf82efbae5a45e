"""Defines a data set: questions with their answers and evidence, in one schema for every source."""

import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import dspy

from kraq_dspy.asset.corpus.tokens import count_tokens as tokens_of
from kraq_dspy.errors import EvaluationError
from kraq_dspy.records import Document


@dataclass(frozen=True, slots=True)
class Example:
    """A question and what is known about its answer.

    Any of `answers` is right; they are empty where the source says that the passages hold no answer. `answer_items` are
    the items of a list answer, each with its synonyms. `supporting_ids` are documents that hold the evidence;
    `context_ids` those that the source showed with the question. Other columns of the source are in `metadata`.
    """

    id: str
    question: str
    answers: tuple[str, ...]
    supporting_ids: tuple[str, ...] = ()
    type: str = ""
    answer_items: tuple[tuple[str, ...], ...] = ()
    context_ids: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def to_dspy(self) -> dspy.Example:
        """For DSPy's Evaluate and optimizers: `question` is the only input. Columns of `metadata` come along."""
        return dspy.Example(
            **{name: value for name, value in self.metadata.items() if name not in self.__slots__},
            id=self.id,
            question=self.question,
            answers=list(self.answers),
            answer_items=[list(synonyms) for synonyms in self.answer_items],
            supporting_ids=list(self.supporting_ids),
            type=self.type,
        ).with_inputs("question")


@dataclass(frozen=True, slots=True)
class PassageTriples:
    """What an extractor found in one document: entity names, and (subject, predicate, object) triples."""

    document_id: str
    entities: tuple[str, ...]
    triples: tuple[tuple[str, str, str], ...]
    extractor: str = ""


@dataclass(frozen=True, slots=True)
class Dataset:
    """A corpus and questions about it. Ids are unique, and every id that a question names is in the corpus.

    Raises EvaluationError, naming the row, where that is not so.
    """

    name: str
    documents: tuple[Document, ...]
    examples: tuple[Example, ...]
    triples: tuple[PassageTriples, ...] = ()

    def __post_init__(self) -> None:
        known = _unique(self.name, "documents", (document.id for document in self.documents))
        _unique(self.name, "questions", (example.id for example in self.examples))
        for example in self.examples:
            for document_id in (*example.supporting_ids, *example.context_ids):
                if document_id not in known:
                    raise EvaluationError(
                        f"{self.name}: question {example.id!r} names the document {document_id!r}, which is not in the "
                        f"corpus of {len(known)}."
                    )
            if not example.question.strip():
                raise EvaluationError(f"{self.name}: question {example.id!r} is blank.")
        for passage in self.triples:
            if passage.document_id not in known:
                raise EvaluationError(f"{self.name}: triples of {passage.document_id!r}, which is not in the corpus.")


def sample_to_tokens(
    dataset: Dataset, tokens: int, *, seed: int = 0, count_tokens: Callable[[str], int] | None = None
) -> Dataset:
    """Questions in random order with their evidence, until the evidence has `tokens` tokens or more (KRAQ paper 4.1).

    Evidence is a question's context and supporting documents; a document counts once.
    Questions without evidence are left out. The corpus of the sample is that evidence, in the order of the data set.
    `count_tokens` counts cl100k_base tokens of a text unless another counter is given. A data set with less evidence is
    kept whole; the seed alone decides the order, whatever the order of the questions. Raises EvaluationError when no
    question has evidence.
    """
    if tokens < 1:
        raise ValueError(f"tokens is {tokens}; it must be 1 or more.")
    count = count_tokens or tokens_of
    texts = {document.id: document for document in dataset.documents}
    chosen: list[Example] = []
    kept: set[str] = set()
    n_tokens = 0
    for example in _shuffled(dataset.examples, seed):
        evidence = {*example.context_ids, *example.supporting_ids}
        if not evidence:
            continue
        n_tokens += sum(count(texts[document_id].text) for document_id in evidence - kept)
        kept |= evidence
        chosen.append(example)
        if n_tokens >= tokens:
            break
    if not chosen:
        raise EvaluationError(
            f"{dataset.name}: none of the {len(dataset.examples)} questions has evidence to sample by."
        )
    documents: tuple[Document, ...] = tuple(document for document in dataset.documents if document.id in kept)
    triples = tuple(passage for passage in dataset.triples if passage.document_id in kept)
    return Dataset(dataset.name, documents, tuple(chosen), triples)


def _shuffled(examples: Sequence[Example], seed: int) -> list[Example]:
    ordered = sorted(examples, key=lambda example: example.id)
    random.Random(seed).shuffle(ordered)
    return ordered


def _unique(name: str, kind: str, ids: Any) -> set[str]:
    counts = Counter(ids)
    twice = [row_id for row_id, count in counts.items() if count > 1]
    if twice:
        raise EvaluationError(f"{name}: {len(twice)} id(s) of {kind} occur more than once, {twice[0]!r} first.")
    return set(counts)
