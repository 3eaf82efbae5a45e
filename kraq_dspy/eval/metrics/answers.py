"""Says whether a predicted answer is right, by matching strings, words and meanings; all in [0, 1], higher is better.

`gold` is always a sequence of answers any of which is right, except where a docstring says otherwise. Every function
raises EvaluationError when `gold` is empty or blank, or when the prediction is not a string. An empty prediction is a
wrong answer and scores 0.0.
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kraq_dspy.errors import EvaluationError
from kraq_dspy.eval.metrics.normalise import answer_words, normalise_answer
from kraq_dspy.eval.metrics.references import check_prediction, check_references
from kraq_dspy.ports import Embedder


def exact_match(gold: Sequence[str], predicted: str) -> float:
    """1.0 if the predicted answer equals a gold one after normalisation, else 0.0: SQuAD's (Rajpurkar et al., 2016).

    >>> exact_match(["Paris"], "Paris."), exact_match(["Paris"], "It is Paris.")
    (1.0, 0.0)
    """
    normalised = normalise_answer(check_prediction(predicted))
    return float(any(normalise_answer(reference) == normalised for reference in check_references(gold)))


def contains(gold: Sequence[str], predicted: str, *, whole_words: bool = True) -> float:
    """1.0 if a gold answer occurs in the predicted one, after normalisation, else 0.0.

    The KRAQ papers call this exact match (paper 4.2; thesis 4.2.1). A long answer, or a copied passage, wins it, and so
    does "It is not Paris but Rome." where Paris is right.
    The gold answer must occur as whole words, so that "no" is not found in "I do not know" nor "ham" in "Birmingham".
    `whole_words=False` compares characters alone, the paper's wording taken literally; it finds more ("cat" in "cats").
    As articles are dropped, "vitamin A" is found wherever "vitamin" is.

    >>> contains(["Paris"], "It is Paris.")
    1.0
    """
    check_prediction(predicted)
    return float(any(_occurs(reference, predicted, whole_words) for reference in check_references(gold)))


def token_f1(gold: Sequence[str], predicted: str) -> float:
    """Harmonic mean of word precision and recall against the best gold answer, in [0, 1] (Rajpurkar et al., 2016).

    Words of scripts without spaces are single characters (Cui et al., 2019).
    """
    words = answer_words(check_prediction(predicted))
    return max(_f1(answer_words(reference), words) for reference in check_references(gold))


def contains_items(
    gold: Sequence[Sequence[str]], predicted: str, *, share: float = 0.5, whole_words: bool = True
) -> float:
    """1.0 if at least `share` of the gold items occur in the predicted answer, else 0.0 (KRAQ thesis 4.2.3).

    An item is a sequence of synonyms; any of them counts, and an item counts once. `share` is in (0, 1].
    """
    if not 0 < share <= 1:
        raise ValueError(f"share is {share}; it must be above 0 and at most 1.")
    named = items_found(gold, predicted, whole_words=whole_words)
    return float(sum(named) >= share * len(named))


def items_found(gold: Sequence[Sequence[str]], predicted: str, *, whole_words: bool = True) -> list[bool]:
    """For each gold item, whether one of its synonyms occurs in the predicted answer."""
    if isinstance(gold, str) or not gold:
        raise EvaluationError(
            f"The gold items are {gold!r}; expected a sequence with one sequence of synonyms per item."
        )
    named = []
    for position, synonyms in enumerate(gold):
        try:
            named.append(bool(contains(synonyms, predicted, whole_words=whole_words)))
        except EvaluationError as error:
            raise EvaluationError(f"Item {position}: {error}") from error
    return named


def answer_similarity(gold: Sequence[str], predicted: str, embedder: Embedder) -> float:
    """Cosine of the predicted answer's embedding with the most similar gold one, in [0, 1] (K2RAG, section 4).

    Negative cosines count as 0.0. For many answers `answer_similarities` is faster; figures of different embedders
    must not be compared.
    """
    return float(answer_similarities([gold], [predicted], embedder)[0])


def answer_similarities(
    gold: Sequence[Sequence[str]], predicted: Sequence[str], embedder: Embedder
) -> NDArray[np.float64]:
    """`answer_similarity` of each row, float64 `[n_rows]`; every distinct text is encoded once."""
    if len(gold) != len(predicted):
        raise EvaluationError(f"There are {len(gold)} rows of gold answers and {len(predicted)} predicted answers.")
    for row, (references, answer) in enumerate(zip(gold, predicted, strict=True)):
        try:
            check_references(references)
            check_prediction(answer)
        except EvaluationError as error:
            raise EvaluationError(f"Row {row}: {error}") from error
    answered = [row for row, answer in enumerate(predicted) if answer.strip()]
    scores = np.zeros(len(predicted))
    if not answered:
        return scores
    texts = {text: 0 for row in answered for text in (*gold[row], predicted[row])}
    position = {text: index for index, text in enumerate(texts)}
    vectors = embedder.encode_passages(list(texts)).astype(np.float64)
    for row in answered:
        cosines = vectors[[position[reference] for reference in gold[row]]] @ vectors[position[predicted[row]]]
        scores[row] = cosines.max()
    return np.clip(scores, 0.0, 1.0)


def _occurs(reference: str, predicted: str, whole_words: bool) -> bool:
    sought, searched = normalise_answer(reference), normalise_answer(predicted)
    if whole_words:
        return f" {sought} " in f" {searched} "
    return sought in searched


def token_overlap(gold: Sequence[str], predicted: str) -> tuple[float, float]:
    """Precision and recall of the predicted words, against the gold answer with the best F1; each in [0, 1].

    What `token_f1` is made of. An answer without words has a precision of 0.0 unless the gold one has none either.
    """
    words = answer_words(check_prediction(predicted))
    best = max((answer_words(reference) for reference in check_references(gold)), key=lambda each: _f1(each, words))
    common = sum((Counter(best) & Counter(words)).values())
    if not words or not best:
        return float(words == best), float(words == best)
    return common / len(words), common / len(best)


def _f1(gold: list[str], predicted: list[str]) -> float:
    common = sum((Counter(gold) & Counter(predicted)).values())
    # Equal to 2PR/(P+R), without its division by zero.
    return 2 * common / (len(gold) + len(predicted))
