"""Finds passages by one sentence, and hands that over with those around it (sentence window)."""

from bisect import bisect_right
from dataclasses import dataclass, replace

from kraq_dspy._internal.options import require_options
from kraq_dspy.asset.corpus.sentences import sentence_spans
from kraq_dspy.asset.corpus.tokens import count_tokens
from kraq_dspy.ports import ChunkSource, Embedder, NearestTexts
from kraq_dspy.records import Chunk, Hit
from kraq_dspy.retrievers.hits import RetrievalRequest, Retrieving
from kraq_dspy.spec import RetrieverSpec, option

_SENTENCES_A_CHUNK = 4  # asked for at first; more where they turn out to be of the same few chunks


def sentence_id(chunk_id: str, span: tuple[int, int]) -> str:
    """Names a sentence of a chunk by its place in the text: where sentences end otherwise, it has another id.

    >>> sentence_id("c1", (0, 21))
    'c1/0-21'
    """
    start, end = span
    return f"{chunk_id}/{start}-{end}"


def _start_of(name: str) -> int:
    """The first character of the sentence that an id names."""
    return int(name.rpartition("/")[2].partition("-")[0])


@dataclass(frozen=True)
class SentenceWindowOptions:
    window: int | None = option(2, "Sentences on either side; none for the whole passage.", least=0)


class SentenceWindowRetriever(Retrieving):
    """Searches single sentences, and returns each found sentence with the sentences around it. `why` is "sentence".

    Args:
        chunks: the source of the passages (`space.index`).
        sentences: finds sentences by their embeddings (`space.sentence_vectors`).
        embedder: the encoder of the questions.
        window: sentences of the chunk on either side, 0 or more; None returns the whole chunk.

    Raises:
        ValueError: for a `window` below 0.

    `score` is the cosine of the question and the sentence, in [-1, 1]. The chunk of a hit keeps the id of the
    passage, but has only these sentences as text.

    >>> from kraq_dspy import Workspace
    >>> space = Workspace.open("ada.kraq")
    >>> sentences = SentenceWindowRetriever(space.index, space.sentence_vectors, space.embedder, window=1)
    >>> [hit.chunk.text for hit in sentences("Where did Ada live?", 1)]
    ['Ada lived in London.']
    """

    def __init__(
        self,
        chunks: ChunkSource,
        sentences: NearestTexts,
        embedder: Embedder,
        *,
        window: int | None = SentenceWindowOptions.window,
    ) -> None:
        if window is not None:
            require_options(SentenceWindowOptions, window=window)
        self.chunks = chunks
        self.sentences = sentences
        self.embedder = embedder
        self.window = window

    def find(self, request: RetrievalRequest) -> list[Hit]:
        k, vector = request.k, request.embedded_by(self.embedder)
        excluded = set(request.exclude)
        size = _SENTENCES_A_CHUNK * (k + len(excluded))
        while True:
            scored = self.sentences(request.question, size, filters=request.filters, vector=vector)
            nearest: dict[str, tuple[int, float]] = {}  # where the sentence begins and its cosine, by chunk id
            for name, cosine in scored:
                chunk_id = name.rpartition("/")[0]
                if chunk_id not in excluded:
                    nearest.setdefault(chunk_id, (_start_of(name), cosine))
            if len(nearest) >= k or len(scored) < size:
                break
            size *= 2

        best = dict(list(nearest.items())[:k])
        chunks = self.chunks.chunks_by_id(list(best))
        return [
            Hit(self._around(chunk, begin), cosine, request.question, "sentence")
            for chunk, (begin, cosine) in zip(chunks, best.values(), strict=True)
        ]

    def _around(self, chunk: Chunk, begin: int) -> Chunk:
        """The sentence that begins there, with those around it."""
        if self.window is None:
            return chunk
        spans = sentence_spans(chunk.text)
        number = bisect_right([start for start, _ in spans], begin) - 1
        start = spans[max(0, number - self.window)][0]
        end = spans[min(len(spans) - 1, number + self.window)][1]
        text = chunk.text[start:end]
        return replace(chunk, text=text, start=chunk.start + start, end=chunk.start + end, n_tokens=count_tokens(text))


SENTENCE_WINDOW = RetrieverSpec(
    "sentence-window",
    "Found by one sentence, handed over with those around it.",
    lambda space, options: SentenceWindowRetriever(
        space.index, space.sentence_vectors, space.embedder, window=options.window
    ),
    "SentenceWindowRetriever",
    SentenceWindowOptions,
)
