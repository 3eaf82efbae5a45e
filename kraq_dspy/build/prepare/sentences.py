"""Embeds the sentences of an index's passages once, and keeps them beside those of the passages."""

from kraq_dspy.asset.corpus.sentences import sentence_spans
from kraq_dspy.asset.store.index import Index
from kraq_dspy.asset.store.text_vectors import TextVectors
from kraq_dspy.errors import IndexStateError
from kraq_dspy.ports import Embedder, Progress
from kraq_dspy.programs.retrievers.sentence_window import sentence_id
from kraq_dspy.records import Chunk


def sentence_vectors(index: Index, embedder: Embedder, progress: Progress | None = None) -> TextVectors:
    """Each sentence under its chunk's title, filtered as its chunk is; embedded where that was not done yet.

    Costs an embedding and a point for each sentence, so four to six times those of the passages, and holds the texts in
    memory while it is open. Raises IndexStateError for an index without passages.
    """
    texts: dict[str, str] = {}
    payloads = {}
    for chunk in index.all(Chunk):
        for number, (start, end) in enumerate(sentence_spans(chunk.text)):
            name = sentence_id(chunk.id, number)
            texts[name] = f"{chunk.title}\n{chunk.text[start:end]}" if chunk.title else chunk.text[start:end]
            payloads[name] = {**chunk.metadata, "document_id": chunk.document_id}
    if not texts:
        raise IndexStateError(f"{str(index.path)!r} has no passages. Build it again: kraq index CORPUS --out DIR")
    vectors = TextVectors(index.vectors_named("sentences"), embedder, texts, payloads)
    vectors.sync("embed sentences", progress)
    return vectors
