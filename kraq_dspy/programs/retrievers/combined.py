"""Combined retrieval: part of the budget for the question, the rest for the stored questions nearest to it."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from fractions import Fraction

from kraq_dspy.ports import Filters, QuestionFinder, Retriever, Vectors
from kraq_dspy.programs.retrievers.hits import Retrieving, check_request
from kraq_dspy.records import Hit, QuestionHit


@dataclass(frozen=True, slots=True)
class Budget:
    """How many passages the question itself finds, and how many each auxiliary question."""

    main: int
    each: int


def share_budget(k: int, n: int, alpha: float, *, strict: bool = False) -> Budget:
    """Line 2 of Algorithm 1: `floor(alpha * k)` passages for the question, `floor(rest / n)` for each of `n` others.

    The floors can lose up to n - 1 passages of the budget: of 10, with alpha=.5 and n=3, the paper retrieves 8.
    `strict` does so too; otherwise what is lost goes to the question. `alpha` is taken as the decimal it is written as:
    .29 of 100 is 29, although 0.29 * 100 is less in binary.
    """
    main = int(Fraction(repr(float(alpha))) * k)
    each = (k - main) // n
    return Budget(main if strict else k - n * each, each)


@dataclass(frozen=True, slots=True)
class CombinedHits:
    """What combined retrieval found, and the auxiliary questions that it asked, nearest first."""

    hits: list[Hit]
    auxiliary_questions: list[QuestionHit]


class CombinedRetriever(Retrieving):
    """Algorithm 1 of the KRAQ paper (section 3.1) without its last line: evidence for any program.

    The main query's hits come first, then those of each auxiliary question, nearest question first, `why` "auxiliary"
    and `query` its text. Each retrieval leaves out what was found before. Auxiliary questions are not encoded again:
    their stored vectors are used.

    Where an auxiliary question finds fewer than its share (a small corpus, filters), hits of the main query fill the
    budget up, at the end; not with `strict`, which retrieves as the paper does. `alpha=1` is `retrieve` alone and needs
    no stored questions. Scores are those of `retrieve` and fall within the hits of each query only.
    """

    def __init__(
        self,
        retrieve: Retriever,
        questions: QuestionFinder,
        *,
        n: int = 2,
        alpha: float = 0.5,
        strict: bool = False,
    ) -> None:
        if n < 1:
            raise ValueError(f"n is {n}; expected 1 or more auxiliary questions (alpha=1 goes without them).")
        if not 0 <= alpha <= 1:
            raise ValueError(f"alpha is {alpha}; expected the main query's share of the budget, from 0 to 1.")
        self.retrieve = retrieve
        self.questions = questions
        self.n = n
        self.alpha = alpha
        self.strict = strict

    def __call__(
        self,
        question: str,
        k: int,
        *,
        exclude: Collection[str] = frozenset(),
        filters: Filters | None = None,
        vector: Vectors | None = None,
    ) -> list[Hit]:
        return self.search(question, k, exclude=exclude, filters=filters, vector=vector).hits

    def search(
        self,
        question: str,
        k: int,
        *,
        exclude: Collection[str] = frozenset(),
        filters: Filters | None = None,
        vector: Vectors | None = None,
    ) -> CombinedHits:
        """As a call, and says which auxiliary questions were asked."""
        check_request(question, k)
        budget = share_budget(k, self.n, self.alpha, strict=self.strict)
        if budget.each == 0:
            return CombinedHits(self._main(question, budget.main, exclude, filters, vector), [])
        if vector is None:
            vector = self.questions.encode(question)
        auxiliary = self.questions(question, self.n, vector=vector)

        # Without `strict`, the main query's whole ranking is fetched at once: what fills up at the end comes from it,
        # on the same scale of scores and without a second search.
        ranking = self._main(question, budget.main if self.strict else k, exclude, filters, vector)
        hits = ranking[: budget.main]
        found = {hit.chunk.id for hit in hits}
        if auxiliary:
            stored = self.questions.vectors([hit.question.id for hit in auxiliary])
            for asked, row in zip(auxiliary, stored, strict=True):
                more = self.retrieve(
                    asked.question.text, budget.each, exclude={*exclude, *found}, filters=filters, vector=row
                )
                hits += [replace(hit, why="auxiliary") for hit in more]
                found.update(hit.chunk.id for hit in more)
        if not self.strict:
            hits += [hit for hit in ranking if hit.chunk.id not in found][: k - len(hits)]
        return CombinedHits(hits, auxiliary)

    def _main(
        self, question: str, k: int, exclude: Collection[str], filters: Filters | None, vector: Vectors | None
    ) -> list[Hit]:
        """`k` may be 0 here: with alpha=0 all goes to the auxiliary questions."""
        return self.retrieve(question, k, exclude=exclude, filters=filters, vector=vector) if k else []
