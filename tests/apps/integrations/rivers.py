"""Makes a retriever over three chunks that a reader can work out, in both forms that a retriever may have."""

from collections.abc import Collection

import dspy

from kraq_dspy.extend import blocking, matches
from kraq_dspy.ports import Filters
from kraq_dspy.records import Chunk, Hit
from kraq_dspy.retrievers import RetrievalRequest, Retrieving

TEXTS = {"Rhine": "It flows into the North Sea.", "Danube": "It flows into the Black Sea.", "Trier": "A castle."}
CHUNKS = [
    Chunk(f"c-{title}", f"{title}.txt", 0, 0, len(text), text, 7, title, {"year": 2000 + number})
    for number, (title, text) in enumerate(TEXTS.items())
]


class Rivers(Retrieving):
    """Chunks by the words that they share with the question."""

    def find(self, request: RetrievalRequest) -> list[Hit]:
        words = set(request.question.lower().split())
        scores = {chunk.id: len(words & set(chunk.passage.lower().rstrip(".").split())) for chunk in CHUNKS}
        chosen = [chunk for chunk in CHUNKS if scores[chunk.id] and matches(chunk, request.filters)]
        ranked = sorted(chosen, key=lambda chunk: -scores[chunk.id])[: request.k]
        return [Hit(chunk, float(scores[chunk.id]), request.question, "words") for chunk in ranked]


class RiversModule(dspy.Module):
    """The same as a module, as retrievers that ask a model are."""

    keeps_contract = True

    async def aforward(
        self, question: str, k: int, *, filters: Filters | None = None, exclude: Collection[str] = ()
    ) -> list[Hit]:
        return Rivers()(question, k, filters=filters)

    forward = blocking(aforward)
