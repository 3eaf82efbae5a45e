"""Finds the passages that answer a question in the text itself: what unlike retrievers bring, and near-duplicates.

A graph or a community says where to look and never what is gold: a set whose gold came from the graph would flatter
retrievers that walk the graph. A passage may be gold if it has the answer; a reader then says whether it is.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from kraq_dspy.asset.corpus.sentences import sentence_spans
from kraq_dspy.language.text import UNSPACED, content_words
from kraq_dspy.ports import ChunkSource, Retriever, VectorSearch
from kraq_dspy.programs.kraq.element_list import plain_words
from kraq_dspy.records import Chunk

UNLIKE = ("bm25", "dense", "pagerank")
"""By words, by meaning, by the graph. Where there is no graph, the first two."""
POOLED = 10
"""Passages that each of them brings."""
SOLVED_AT = 5
"""Passages among which a retriever has to find all of a question's documents to have solved it."""
_NEAR = 0.9
_SAME_WORDS = 0.8
"""A passage is a near-duplicate from this cosine on, if so many of its words are the other's."""
_AS_NEAR = 0.95
"""Share of the words that the source says of a question, from which on another passage says as much of something
else."""
_FIRST_SEEN = 4
"""Neighbours that are looked at for near-duplicates; four times as many as long as all of them are near."""


@dataclass(frozen=True)
class Pool:
    """The results of the retrievers for a question: chunks by id, and each retriever's ranking."""

    chunks: Mapping[str, Chunk]
    rankings: Mapping[str, Sequence[str]]

    def found_by(self, chunk_id: str) -> tuple[str, ...]:
        return tuple(name for name, ranking in self.rankings.items() if chunk_id in ranking)

    def solved_by(self, documents: Collection[str]) -> tuple[str, ...]:
        """The retrievers whose first passages come from all of the documents."""
        solved = []
        for name, ranking in self.rankings.items():
            documents_found = {self.chunks[chunk_id].document_id for chunk_id in ranking[:SOLVED_AT]}
            if documents and documents_found.issuperset(documents):
                solved.append(name)
        return tuple(solved)


@dataclass(frozen=True)
class GoldFinder:
    """Pools what the retrievers bring. `vectors` and `chunks` are those of the index, to find near-duplicates."""

    retrievers: Mapping[str, Retriever]
    vectors: VectorSearch
    chunks: ChunkSource
    _twins: dict[str, list[Chunk]] = field(default_factory=dict)

    def pool(self, question: str) -> Pool:
        chunks: dict[str, Chunk] = {}
        rankings: dict[str, list[str]] = {}
        for name, retrieve in self.retrievers.items():
            hits = retrieve(question, POOLED)
            chunks |= {hit.chunk.id: hit.chunk for hit in hits}
            rankings[name] = [hit.chunk.id for hit in hits]
        return Pool(chunks, rankings)

    def twins(self, source: Chunk) -> list[Chunk]:
        """Passages whose text is nearly that of the source, in the order of their likeness."""
        if source.id not in self._twins:
            alike = self.chunks.chunks_by_id(self._near(source))
            self._twins[source.id] = [chunk for chunk in alike if are_twins(source.text, chunk.text)]
        return self._twins[source.id]

    def _near(self, source: Chunk) -> list[str]:
        """The ids of all passages whose vectors are near that of the source, the nearest first."""
        vector = self.vectors.vectors([source.id])
        seen = _FIRST_SEEN
        while True:
            [found] = self.vectors.search(vector, seen, exclude=[source.id])
            near = [chunk_id for chunk_id, cosine in found if cosine >= _NEAR]
            if len(near) < seen:
                return near
            seen *= 4


def are_twins(first: str, second: str) -> bool:
    """Whether either text has nearly all words of the other.

    >>> are_twins("Ada lived in London.", "Ada lived in London, then."), are_twins("Ada lived.", "Eve left.")
    (True, False)
    """
    first_words, second_words = set(plain_words(first).split()), set(plain_words(second).split())
    if not first_words or not second_words:
        return False
    return len(first_words & second_words) >= _SAME_WORDS * max(len(first_words), len(second_words))


def says_answer(answer: str, passage: str) -> bool:
    """Whether the passage has the answer, word for word; in scripts that part no words, letter for letter.

    >>> says_answer("2004年", "他于2004年加入。"), says_answer("Ada", "Adam lived in London.")
    (True, False)
    """
    words = _plain(answer)
    if UNSPACED.search(words):
        return bool(words.strip()) and words.strip() in _plain(passage)
    return bool(answer.strip()) and words in _plain(passage)


_plain = lru_cache(maxsize=4096)(plain_words)
"""`plain_words` of texts that many questions look at."""


def says_all_names(names: Sequence[str], passage: str) -> str:
    """Return the first sentence that has all of the names, where the title stands for one that it
    leaves out; "" for none.

    >>> says_all_names(["Rhine", "Cologne"], "Rhine\\nIt is long. It flows through Cologne.")
    'It flows through Cologne.'
    """
    title, _, body = passage.partition("\n")
    text, named = (body, title) if body else (passage, "")
    for start, end in sentence_spans(text):
        sentence = text[start:end]
        words = plain_words(f"{named} {sentence}")
        if names and all(plain_words(name) in words for name in names):
            return sentence.strip()
    return ""


def nearness(question: str, passage: str) -> float:
    """Share of the question's telling words that one sentence of the passage has, with the title's among them."""
    question_words = set(content_words(question))
    if not question_words:
        return 0.0
    shared = [len(question_words & words) for words in _words_of_sentences(passage)]
    return max(shared, default=0) / len(question_words)


@lru_cache(maxsize=4096)
def _words_of_sentences(passage: str) -> tuple[frozenset[str], ...]:
    """Return the telling words of each sentence, with the title's; many questions look at the same passages."""
    title, _, body = passage.partition("\n")
    text, named = (body, frozenset(content_words(title))) if body else (passage, frozenset())
    return tuple(named.union(content_words(text[start:end])) for start, end in sentence_spans(text))


def says_it_of_another(question: str, answers: Sequence[str], source: Chunk, pool: Pool) -> bool:
    """Whether a passage without any of the answers says as much of what is asked as the source: then the question has
    other right answers, as "Who is an English poet?" has."""
    own = nearness(question, source.passage)
    for chunk in pool.chunks.values():
        has_answer = any(says_answer(answer, chunk.passage) for answer in answers)
        if not has_answer and chunk.id != source.id and nearness(question, chunk.passage) >= _AS_NEAR * own:
            return True
    return False
