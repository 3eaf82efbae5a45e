"""Measures a question set: what of the corpus it covers, how far it repeats itself, and how it ranks retrievers."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import spearmanr

from kraq_dspy.eval.metrics.generation import bleu
from kraq_dspy.eval.metrics.questions import coverage, nearest_chunks
from kraq_dspy.eval.metrics.retrieval import mrr, recall_at_k
from kraq_dspy.ports import Embedder, Retriever, Vectors
from kraq_dspy.programs.kraq.question_text import mark_duplicates
from kraq_dspy.records import Question

DEPTH = 10
MOST_WORDS = 40
BEGINNING = re.compile(r"(who|whom|whose|what|which|where|when|why|how)\b", re.IGNORECASE)
RETRIEVERS = (
    "dense", "bm25", "hybrid", "fusion", "mmr", "combined", "pagerank", "adaptive", "sentence-window",
    "reranked",
)  # fmt: skip
SCORES: Mapping[str, Callable[[Collection[str], Sequence[str]], float]] = {
    "recall@1": lambda gold, ranked: recall_at_k(gold, ranked, 1),
    "recall@5": lambda gold, ranked: recall_at_k(gold, ranked, 5),
    "mrr": lambda gold, ranked: mrr(gold, ranked, DEPTH),
}
PerRetriever = Mapping[str, Sequence[float]]
"""The score of each question, by the name of the retriever."""


@dataclass(frozen=True)
class MadeQuestion:
    """`sources` are the documents that its generator was shown, or, of a person's question, the one that answers it."""

    text: str
    sources: tuple[str, ...]


@dataclass(frozen=True)
class Covered:
    """Shares in [0, 1] of the passages that are the nearest of some question, of those among the five nearest of some,
    and of the corpus's names that some question has."""

    nearest: float
    among_five: float
    names: float


def covered(questions: Vectors, passages: Vectors, texts: Sequence[str], names: Collection[str]) -> Covered:
    """`questions` are the vectors of `texts`; all rows are L2-normalised."""
    near = nearest_chunks(questions, passages, 5)
    mentioned = [name for name in names if any(mentions(text, name) for text in texts)]
    return Covered(coverage(near[:, :1], len(passages)), coverage(near, len(passages)), len(mentioned) / len(names))


def mentions(text: str, name: str) -> bool:
    """Whether the name stands in the text as whole words, in any case."""
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text, re.IGNORECASE) is not None


def repeats(texts: Sequence[str], vectors: Vectors, similarity: float) -> list[bool]:
    """Of each question whether an earlier one asks the same, by the rule of `kraq index`."""
    records = [Question(str(n), text, "", None, 0, (), ()) for n, text in enumerate(texts)]
    return [question.duplicate_of is not None for question in mark_duplicates(records, vectors, similarity)]


def self_bleu(texts: Sequence[str]) -> list[float]:
    """BLEU of each question against all others together: 1 where each of its runs of words stands in another (Zhu et
    al., 2018). Needs two."""
    return [bleu([*texts[:place], *texts[place + 1 :]], text) for place, text in enumerate(texts)]


def is_question(text: str) -> bool:
    """Whether it ends in a question mark or begins with a question word, and has no more words than anybody asks in.

    People leave the mark out; a statement that a generator took for a question is none."""
    text = text.strip()
    return len(text.split()) <= MOST_WORDS and (text.endswith("?") or BEGINNING.match(text) is not None)


def nearest_source(question: Vectors, sources: Sequence[str], vectors: Mapping[str, Vectors]) -> str:
    """Of the sources the one whose passage is nearest to the question."""
    return max(sources, key=lambda id: float(vectors[id] @ question))


def found_documents(retrieve: Retriever, question: str) -> list[str]:
    """Documents of the passages that are found, best first, each once."""
    return list(dict.fromkeys(hit.chunk.document_id for hit in retrieve(question, k=2 * DEPTH)))[:DEPTH]


def scored(
    questions: Sequence[MadeQuestion], found: Mapping[str, Mapping[str, Sequence[str]]], score: str
) -> PerRetriever:
    """`found` has, by retriever and the text of a question, the ids of documents."""
    return {
        name: [SCORES[score](question.sources, by_text[question.text]) for question in questions]
        for name, by_text in found.items()
    }


def rank_agreement(ours: PerRetriever, people: PerRetriever) -> float | None:
    """Spearman's rank correlation of the retrievers' means; None where one side tells no two retrievers apart."""
    names = sorted(ours)
    return _spearman(*(np.array([np.mean(side[name]) for name in names]) for side in (ours, people)))


def agreement_interval(
    ours: PerRetriever, people: PerRetriever, *, resamples: int = 2000, seed: int = 0
) -> tuple[float, float] | None:
    """Where 95 % of the agreements lie when both sides' questions are drawn anew, with replacement.

    Draws that tell no two retrievers apart are left out; None where all are such.
    """
    names, rng = sorted(ours), np.random.default_rng(seed)
    sides = [np.array([side[name] for name in names]) for side in (ours, people)]
    values = []
    for _ in range(resamples):
        means = [side[:, rng.integers(0, side.shape[1], side.shape[1])].mean(axis=1) for side in sides]
        if (value := _spearman(*means)) is not None:
            values.append(value)
    if not values:
        return None
    low, high = np.quantile(values, (0.025, 0.975))
    return float(low), float(high)


def same_sized(
    people: PerRetriever, size: int, *, draws: int = 500, seed: int = 0
) -> tuple[float, float, float] | None:
    """What agreement to expect of `size` questions that people asked: the mean over draws of so many of theirs, each
    compared with those not drawn, and where 95 % of them lie."""
    names, rng = sorted(people), np.random.default_rng(seed)
    scores = np.array([people[name] for name in names])
    values = []
    for _ in range(draws):
        order = rng.permutation(scores.shape[1])
        value = _spearman(scores[:, order[:size]].mean(axis=1), scores[:, order[size:]].mean(axis=1))
        if value is not None:
            values.append(value)
    if not values:
        return None
    low, high = np.quantile(values, (0.025, 0.975))
    return float(np.mean(values)), float(low), float(high)


def encoded(embedder: Embedder, texts: Sequence[str]) -> Vectors:
    vectors: Vectors = embedder.encode_queries(list(texts))
    return vectors


def _spearman(first: np.ndarray, second: np.ndarray) -> float | None:
    first, second = np.round(first, 9), np.round(second, 9)  # equal means differ in their last bits
    if np.ptp(first) == 0 or np.ptp(second) == 0:
        return None
    return float(spearmanr(first, second).statistic)
