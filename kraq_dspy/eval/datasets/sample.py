"""Samples as the papers do: draws questions until their evidence reaches a number of tokens."""

import random
from collections.abc import Callable, Sequence

from kraq_dspy.errors import EvaluationError
from kraq_dspy.eval.datasets.dataset import Dataset, Example
from kraq_dspy.records import Document


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
    count = count_tokens or _default_counter()
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


def _default_counter() -> Callable[[str], int]:
    from kraq_dspy.corpus.tokens import count_tokens

    return count_tokens


def _shuffled(examples: Sequence[Example], seed: int) -> list[Example]:
    ordered = sorted(examples, key=lambda example: example.id)
    random.Random(seed).shuffle(ordered)
    return ordered
