"""Embeds a passage as the mean of its sentences, weighted by how near each is to the question."""

import threading
from collections import OrderedDict
from collections.abc import Sequence

import numpy as np

from kraq_dspy.copies import SharedByCopies
from kraq_dspy.corpus.sentences import sentence_spans
from kraq_dspy.ports import Embedder, Vectors

SHARPNESS = 10.0
KEPT = 20_000


class WeightedSentences(SharedByCopies):
    """softmax(`sharpness` x cosine of sentence and question) of a passage's sentence vectors, summed and normalised.

    A sentence encoder reads each sentence once, whatever the number of questions: seen from another question a
    passage costs a product of small matrices. What it can: another question shows other sentences. What it cannot: see
    anything in a sentence that the encoder did not put there for all questions. Sharpness 0 is the mean of all
    sentences, a large one the nearest sentence alone.

    The sentences of the last `kept` passages stay in memory (some 8 kB each with MiniLM). Safe for threads.
    """

    def __init__(self, embedder: Embedder, *, sharpness: float = SHARPNESS, kept: int = KEPT) -> None:
        self.embedder = embedder
        self.sharpness = sharpness
        self.name = f"sentences:{embedder.name}@{sharpness:g}"
        self.dimension = embedder.dimension
        self.kept = kept
        self._known: OrderedDict[str, Vectors] = OrderedDict()
        self._lock = threading.Lock()

    def encode(self, question: str, passages: Sequence[str]) -> Vectors:
        """float32 `[n_passages, dimension]`, rows L2-normalised."""
        vectors = np.zeros((len(passages), self.dimension), dtype=np.float32)
        if not passages:
            return vectors
        [query] = self.embedder.encode_queries([question])
        for row, sentences in zip(vectors, self._sentences(passages), strict=True):
            weights = np.exp(self.sharpness * (sentences @ query - 1))  # cosines: the largest exponent is 0
            total = weights @ sentences
            row[:] = total / max(float(np.linalg.norm(total)), 1e-12)
        return vectors

    def read(self, passages: Sequence[str]) -> None:
        """Encode their sentences now, so that no question waits for it."""
        self._sentences(passages)

    def _sentences(self, passages: Sequence[str]) -> list[Vectors]:
        """Of each passage `[n_sentences, dimension]`; an encoder's rows are of length 1."""
        with self._lock:
            known = {passage: self._known[passage] for passage in passages if passage in self._known}
        fresh = [passage for passage in dict.fromkeys(passages) if passage not in known]
        parts = [[passage[start:end] for start, end in sentence_spans(passage)] or [passage] for passage in fresh]
        rows = self.embedder.encode_passages([sentence for sentences in parts for sentence in sentences])
        ends = np.cumsum([len(sentences) for sentences in parts])
        known |= dict(zip(fresh, np.split(rows, ends[:-1]), strict=True)) if fresh else {}
        with self._lock:
            for passage in passages:
                self._known[passage] = known[passage]
                self._known.move_to_end(passage)
            while len(self._known) > self.kept:
                self._known.popitem(last=False)
        return [known[passage] for passage in passages]
