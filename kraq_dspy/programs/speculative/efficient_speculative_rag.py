"""Looks E(d|q*) up in place of E(d|Q): Efficient Speculative RAG (KRAQ paper, 3.2, Algorithm 2)."""

from collections.abc import Sequence
from dataclasses import replace
from operator import attrgetter
from time import perf_counter
from typing import Any

import dspy

from kraq_dspy._internal.options import require_options
from kraq_dspy._internal.step import SignatureLike
from kraq_dspy.ports import (
    Embedder,
    InstructedEmbedder,
    PrecomputedVectors,
    QuestionFinder,
    Retriever,
    RetrieverLike,
    SentenceVectors,
    Vectors,
)
from kraq_dspy.programs.speculative.scoring import Scorer
from kraq_dspy.programs.speculative.speculative_rag import (
    DRAFTED,
    TRIVIAQA,
    EfficientOptions,
    SeenPassages,
    SpeculativeRAG,
    notes,
    stage_seconds,
)
from kraq_dspy.records import Hit, QuestionHit
from kraq_dspy.retrievers.combined import as_question_finder
from kraq_dspy.spec import ProgramSpec, Space


class EfficientSpeculativeRAG(SpeculativeRAG):
    """Speculative RAG over prepared vectors of passages, as seen from stored questions (KRAQ paper, Algorithm 2).

    Args:
        retrieve: a retriever, or any function that takes a question and returns texts (`as_retriever`).
        find_questions: the stored questions: a list of texts, or a question finder (`space.questions()`).
        precomputed: the stored vectors of passages, as seen from the stored questions:
            `corpus.precomputed(questions)`, or `space.precomputed()` of an index.
        embedder: the encoder that made the stored vectors. It embeds passages without a stored vector.
        min_similarity: the least cosine of the nearest stored question and the user's question, in [-1, 1].
        n: passages to retrieve.
        k: the number of clusters, and of passages in a draft.
        m: the number of drafts.
        scorer: scores drafts; by default `KraqScore`.
        seed: the random seed of clusters and subsets.
        in_flight: the most concurrent model calls; None for all.
        signature: a signature, or instructions, for the step that drafts.

    Raises:
        TypeError: for `precomputed` without stored vectors.
        ValueError: for a number out of range.

    Let q* be the stored question nearest to the user's question. The program clusters vectors of passages as seen
    from q*. If a passage has no stored vector for q*, the program embeds the passage as seen from q*. The program
    uses the user's question in place of q* in two cases: if the cosine of both is below `min_similarity`, or if no
    passage has a stored vector for q*. In both cases the program embeds all passages, as Speculative RAG does.

    Our variant "sentences" needs no stored question. This variant computes the vector of a passage, as seen from the
    user's question, from the vectors of the passage's sentences (`SentenceVectors`). The prediction names the variant
    in `seen_by`.

    The question finder and the retriever share one embedding of the question, so both need the same encoder.

    The prediction has the keys of SpeculativeRAG, and `proxy` (QuestionHit or None), `proxy_similarity` (or None),
    `proxy_used`, `n_looked_up` and `n_embedded` (passages), and `seen_by`: the name of the encoder.

    >>> from kraq_dspy import Corpus, make_lm
    >>> corpus = Corpus.from_texts(["Ada lived in London.", "Byron wrote Don Juan.", "Charles lived in London."])
    >>> questions = ["Who lived in London?"]
    >>> prepared = corpus.precomputed(questions)
    >>> rag = EfficientSpeculativeRAG(corpus.retriever, questions, prepared, corpus.embedder, n=2, k=1, m=2)
    >>> rag.set_lm(make_lm("embedded"))
    >>> prediction = rag(question="Where did Ada live?")
    >>> prediction.answer, prediction.proxy.question.text, prediction.n_looked_up
    ('London', 'Who lived in London?', 2)
    """

    def __init__(
        self,
        retrieve: RetrieverLike,
        find_questions: QuestionFinder | Sequence[str],
        precomputed: PrecomputedVectors | SentenceVectors,
        embedder: InstructedEmbedder | Embedder | dspy.Embedder,
        *,
        min_similarity: float = EfficientOptions.min_similarity,
        n: int = TRIVIAQA.n,
        k: int = TRIVIAQA.k,
        m: int = TRIVIAQA.m,
        scorer: Scorer | None = None,
        seed: int = 0,
        in_flight: int | None = None,
        signature: SignatureLike = None,
    ) -> None:
        super().__init__(
            retrieve, embedder, n=n, k=k, m=m, scorer=scorer, seed=seed, in_flight=in_flight, signature=signature
        )
        require_options(EfficientOptions, min_similarity=min_similarity)
        if not isinstance(precomputed, PrecomputedVectors | SentenceVectors):
            raise TypeError(
                f"precomputed is {precomputed!r:.60} ({type(precomputed).__name__}); expected stored vectors: "
                "corpus.precomputed(questions), or space.precomputed() after `kraq precompute DIR`."
            )
        self.find_questions = as_question_finder(find_questions)
        self.precomputed = precomputed
        self.min_similarity = min_similarity

    def find(self, question: str) -> tuple[list[Hit], Vectors | None]:
        vector = self.find_questions.encode(question)
        return self.retrieve(question, self.n, vector=vector), vector

    def see(self, question: str, hits: Sequence[Hit], vector: Vectors | None) -> SeenPassages:
        """E(d|q*) of every hit, by look-up if it is stored; in the variant "sentences", E(d|Q)."""
        if isinstance(self.precomputed, SentenceVectors):
            seen = _seen_from_sentences(self.precomputed, question, hits)
        else:
            seen = self._seen_from_stored(self.precomputed, question, hits, vector)
        return replace(seen, facts={**seen.facts, "seen_by": self.embedder.name})

    def _seen_from_stored(
        self,
        precomputed: PrecomputedVectors,
        question: str,
        hits: Sequence[Hit],
        vector: Vectors | None,
    ) -> SeenPassages:
        """See the passages from the nearest stored question; from the user's if none is near
        enough, or none of the passages is stored for it."""
        started = perf_counter()
        proxy = next(iter(self.find_questions(question, 1, vector=vector)), None)
        seconds = {"proxy": perf_counter() - started}

        if proxy is not None and proxy.similarity >= self.min_similarity:
            started = perf_counter()
            vectors, is_stored = precomputed.lookup(proxy.question.id, [hit.chunk.id for hit in hits])
            seconds["lookup"] = perf_counter() - started
            if is_stored.any():
                missing = []
                for hit, has_vector in zip(hits, is_stored, strict=True):
                    if not has_vector:
                        missing.append(hit.chunk.passage)
                if missing:
                    started = perf_counter()
                    vectors[~is_stored] = self.embedder.encode(proxy.question.text, missing)
                    seconds["embed"] = perf_counter() - started
                n_looked_up = int(is_stored.sum())
                facts = _facts(proxy, used=True, n_looked_up=n_looked_up, n_embedded=len(missing))
                return SeenPassages(vectors, seconds, facts)

        passages = super().see(question, hits, vector)
        facts = _facts(proxy, used=False, n_looked_up=0, n_embedded=len(hits))
        return SeenPassages(passages.vectors, {**seconds, **passages.seconds}, facts)


def _seen_from_sentences(precomputed: SentenceVectors, question: str, hits: Sequence[Hit]) -> SeenPassages:
    """See the passages from the user's question, by the vectors of their sentences."""
    started = perf_counter()
    vectors, is_stored = precomputed.seen_from(question, [hit.chunk for hit in hits])
    n_stored = int(is_stored.sum())
    facts = _facts(None, used=False, n_looked_up=n_stored, n_embedded=len(hits) - n_stored)
    return SeenPassages(vectors, {"lookup": perf_counter() - started}, facts)


def _facts(proxy: QuestionHit | None, *, used: bool, n_looked_up: int, n_embedded: int) -> dict[str, Any]:
    """What the prediction tells of the look-up."""
    return {
        "proxy": proxy,
        "proxy_similarity": proxy.similarity if proxy else None,
        "proxy_used": used,
        "n_looked_up": n_looked_up,
        "n_embedded": n_embedded,
    }


def make_efficient(space: Space, retrieve: Retriever, options: EfficientOptions) -> EfficientSpeculativeRAG:
    """Make the program over what `kraq precompute` stored.

    Raises IndexStateError for an index without such questions or without embeddings for them, EncoderMismatchError if
    another encoder made them; each names the command that mends it.
    """
    return EfficientSpeculativeRAG(
        retrieve,
        space.questions(options.questions),
        space.precomputed(options.questions),
        space.instructed_embedder,
        min_similarity=options.min_similarity,
        **options.settings(space),
    )


EFFICIENT = ProgramSpec(
    "efficient",
    "The same over prepared vectors: passages as seen from the nearest KRAQ question.",
    make_efficient,
    "EfficientSpeculativeRAG",
    EfficientOptions,
    prepared=("instructed",),
    role="drafter",
    roles={"scorer": "verifier"},
    budget=attrgetter("sizes.n"),
    calls_at_once=attrgetter("sizes.m"),
    settings=("instructed",),
    keys=(*DRAFTED, "proxy", "proxy_similarity", "proxy_used", "n_looked_up", "n_embedded", "seen_by"),
    seconds=stage_seconds,
    notes=notes,
    source="KRAQ paper, Algorithm 2",
)
