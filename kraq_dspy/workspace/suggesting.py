"""Suggests questions that the index itself answers: a dozen to start with, and the next ones after an answer."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from operator import itemgetter

from kraq_dspy._internal.one_blas_thread import product
from kraq_dspy.asset.store.index import Index
from kraq_dspy.ports import QuestionFinder, Vectors
from kraq_dspy.records import Chunk, Hit, Question
from kraq_dspy.workspace.topics import broad_by_template

STARTERS = 12  # questions to begin with
CANDIDATES = 400  # questions that starters are chosen among, the broadest first
OFFERED_AMONG = 24  # stored questions nearest to one that is refused, among which others are offered
NEAR = 12  # stored questions near the user's, among which the next ones are chosen
SAME = 0.9  # a cosine above which two questions ask the same
LEADING = 3  # passages of an answer that tell what it is about
RELATED = 0.7  # a next question is at least so near to the user's, as a share of what the nearest one is


@dataclass(frozen=True, slots=True)
class SuggestedQuestion:
    """A stored question, and the best of the passages that answer it."""

    question: Question
    passage: Chunk

    @property
    def text(self) -> str:
        return self.question.text

    def to_dict(self) -> dict[str, str | None]:
        """Write that by which the question and its passage are found again."""
        return {
            "text": self.text,
            "question_id": self.question.id,
            "community_id": self.question.community_id,
            "chunk_id": self.passage.id,
            "document_id": self.passage.document_id,
            "title": self.passage.title,
        }


def answered(index: Index, questions: Iterable[Question]) -> list[SuggestedQuestion]:
    """Those of the questions that have evidence, in their order."""
    with_evidence = [question for question in questions if question.evidence]
    chunks = index.chunks_by_id([question.evidence[0] for question in with_evidence])
    return [SuggestedQuestion(question, chunk) for question, chunk in zip(with_evidence, chunks, strict=True)]


def starters(index: Index, count: int = STARTERS) -> list[SuggestedQuestion]:
    """Questions to begin with: each answerable, no two alike, together covering as many passages as can be.

        [each.text for each in starters(space.index)]

    The choice is greedy: the next question is the one with most passages that answer it and no earlier question. What a
    template asked about a broad community comes only after all others. Fewer if there are fewer; none if the index has
    no questions.
    """
    questions = sorted(index.questions(source="kraq"), key=lambda each: (each.level, -len(each.chunk_ids), each.id))
    broad = broad_by_template(index, questions)
    telling = [each for each in questions if each.id not in broad]
    chosen = _together_telling_most(index, telling[:CANDIDATES], [], count)
    if len(chosen) < count:
        rest = [each for each in questions if each.id in broad]
        chosen = _together_telling_most(index, rest[:CANDIDATES], chosen, count)
    return chosen


def _together_telling_most(
    index: Index, questions: Sequence[Question], before: Sequence[SuggestedQuestion], count: int
) -> list[SuggestedQuestion]:
    """Return those chosen `before`, and so many of the questions that there are `count`."""
    left = answered(index, questions)
    for each in before:
        left = _unlike(index, left, each) if left else left
    covered = {chunk_id for each in before for chunk_id in each.question.evidence}

    def take_most_telling(left: Sequence[SuggestedQuestion]) -> SuggestedQuestion:
        best = max(left, key=lambda each: len(set(each.question.evidence) - covered))
        covered.update(best.question.evidence)
        return best

    return [*before, *_differing(index, left, count - len(before), take_most_telling)]


def _differing(
    index: Index,
    left: Sequence[SuggestedQuestion],
    count: int,
    take: Callable[[Sequence[SuggestedQuestion]], SuggestedQuestion] = itemgetter(0),
) -> list[SuggestedQuestion]:
    """At most `count` of them, no two alike, each the one that is taken of those left: the first, unless `take` says
    otherwise."""
    chosen: list[SuggestedQuestion] = []
    while left and len(chosen) < count:
        chosen.append(take(left))
        left = _unlike(index, left, chosen[-1])
    return chosen


def next_questions(
    index: Index,
    nearest: QuestionFinder,
    question: str,
    count: int = 3,
    *,
    evidence: Sequence[object] = (),
) -> list[SuggestedQuestion]:
    """Choose stored questions near `question`, each answerable here and asking something else.

    `evidence` are the answer's passages, best first: a next question is answered by a document of the best of them, or
    its community has one of them, so that it belongs to the answer. None without stored questions.
    """
    if count < 1 or not question.strip() or not index.question_vectors.count():
        return []
    asked_text = question.strip().casefold()
    hits = [
        hit for hit in nearest(question, NEAR) if hit.similarity < SAME and hit.question.text.casefold() != asked_text
    ]
    related = [hit.question for hit in hits if hit.similarity >= RELATED * hits[0].similarity]
    left = _belonging(answered(index, related), [hit for hit in evidence if isinstance(hit, Hit)][:LEADING])
    return _differing(index, left, count)


def offered_questions(
    index: Index,
    nearest: QuestionFinder,
    holds: Callable[[Sequence[str], Vectors], list[bool]],
    question: str,
    count: int = 3,
) -> list[SuggestedQuestion]:
    """Choose the nearest stored questions that the index answers, for a question that it does not.

    A passage answers each, and `holds` says that the passages hold the answer. All of them differ in
    meaning. There are none without stored questions.
    """
    if count < 1 or not question.strip() or not index.question_vectors.count():
        return []

    candidates = answered(index, [hit.question for hit in nearest(question, OFFERED_AMONG)])
    vectors = index.question_vectors.vectors([each.question.id for each in candidates])
    are_held = holds([each.text for each in candidates], vectors)
    return _differing(index, [each for each, is_held in zip(candidates, are_held, strict=True) if is_held], count)


def _belonging(suggested: list[SuggestedQuestion], leading: Sequence[Hit]) -> list[SuggestedQuestion]:
    """Return those that go on from the leading passages of an answer; all if there are no passages
    to tell by."""
    if not leading:
        return suggested
    chunk_ids = {hit.chunk.id for hit in leading}
    document_ids = {hit.chunk.document_id for hit in leading}
    return [
        each
        for each in suggested
        if each.passage.document_id in document_ids or not chunk_ids.isdisjoint(each.question.chunk_ids)
    ]


def _unlike(index: Index, suggested: Sequence[SuggestedQuestion], chosen: SuggestedQuestion) -> list[SuggestedQuestion]:
    """Return those that ask something else than `chosen`."""
    vectors = index.question_vectors.vectors([each.question.id for each in suggested])
    (like,) = index.question_vectors.vectors([chosen.question.id])
    cosines = product(vectors, like)
    return [each for each, cosine in zip(suggested, cosines, strict=True) if cosine < SAME]
