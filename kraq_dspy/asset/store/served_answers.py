"""Serves the approved entries of an index's FAQ cache to QA search, with the embeddings of their questions."""

import dataclasses
import threading
from collections.abc import Sequence

from kraq_dspy._internal.concurrency import SharedByCopies
from kraq_dspy.asset.store.faq import FaqCache, question_key
from kraq_dspy.asset.store.sync import TextVectors
from kraq_dspy.errors import ScopeError
from kraq_dspy.ports import Embedder, VectorStore
from kraq_dspy.records import AnswerEvidence, FaqEntry

STAGE = "faq"


class ServedAnswers(SharedByCopies):
    """`PreparedAnswers` over an FAQ cache; what a review approves or withdraws counts from the next question on.

    The questions are embedded when a nearest one is first asked for, and after a change only those that changed. Safe
    for threads.

    With `readable`, ids of documents, only answers are served that rest on documents, all of which are among these;
    and nothing of what a program said or saw before the answer was written.
    """

    def __init__(
        self, faq: FaqCache, store: VectorStore, embedder: Embedder, *, readable: frozenset[str] | None = None
    ) -> None:
        self._faq = faq
        self.readable = readable
        self._store = store
        self._embedder = embedder
        self._lock = threading.Lock()
        self._revision = -1
        self._entries: dict[int, FaqEntry] = {}
        self._by_key: dict[str, FaqEntry] = {}
        self._vectors: TextVectors | None = None  # None where entries have changed since they were embedded

    @property
    def faq(self) -> FaqCache:
        """The FAQ cache with all its entries. Raises ScopeError if only some of them may be read."""
        if self.readable is not None:
            raise ScopeError("The FAQ cache holds answers from documents that may not be read here: see entries().")
        return self._faq

    def close(self) -> None:
        self._faq.close()

    def exact(self, question: str) -> FaqEntry | None:
        with self._lock:
            self._refresh()
            return self._by_key.get(question_key(question))

    def entries(self) -> Sequence[FaqEntry]:
        with self._lock:
            self._refresh()
            return [self._entries[number] for number in sorted(self._entries)]

    def nearest(self, question: str, k: int, similarity: float = 0.0) -> Sequence[FaqEntry]:
        with self._lock:
            self._refresh()
            if not self._entries:
                return []

        vector = self._embedder.encode_queries([question])[0]
        with self._lock:
            self._refresh()
            if self._vectors is None:
                texts = {str(number): entry.question for number, entry in self._entries.items()}
                self._vectors = TextVectors(self._store, self._embedder, texts)
                self._vectors.sync(STAGE)
            scored = self._vectors(question, k, vector=vector)
            return [self._entries[int(number)] for number, cosine in scored if similarity <= 0 or cosine >= similarity]

    def collect(self, question: str, answer: str, evidence: Sequence[AnswerEvidence], failure: str = "") -> None:
        """Nothing is noted where the FAQ cache can be read alone."""
        if self._faq.can_be_changed:
            self._faq.collect(question, answer, evidence, failure)

    def _refresh(self) -> None:
        """Follow what has changed in the FAQ cache since the last look."""
        self._revision, changed = self._faq.changed_since(self._revision)
        for number, entry in changed.items():
            old = self._entries.pop(number, None)
            if old is not None:
                del self._by_key[question_key(old.question)]

            entry = self._served(entry)
            if entry is not None:
                self._entries[number] = entry
                self._by_key[question_key(entry.question)] = entry

            if (old is not None) != (number in self._entries):
                self._vectors = None

    def _served(self, entry: FaqEntry | None) -> FaqEntry | None:
        """The entry as it is served; None if it is not approved, or may not be read."""
        if entry is None or entry.status != "approved":
            return None
        if self.readable is None:
            return entry

        rests_on = {source.document_id for source in entry.sources}
        if not rests_on or not rests_on <= self.readable:
            return None
        return dataclasses.replace(entry, given="", evidence=(), asked=0, failure="")
