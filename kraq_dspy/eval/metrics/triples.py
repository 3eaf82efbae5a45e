"""Measures whether an extraction states the given names and triples: precision and recall, in [0, 1]."""

from collections.abc import Sequence

from kraq_dspy.errors import EvaluationError
from kraq_dspy.eval.metrics.answers import token_f1
from kraq_dspy.eval.metrics.normalise import normalise_answer

Triple = tuple[str, str, str]
"""Subject, predicate, object."""


def triple_f1(gold: Sequence[Triple], predicted: Sequence[Triple]) -> float:
    """Harmonic mean of precision and recall of the triples, in [0, 1].

    Two triples are of one fact when subjects and objects are equal after normalisation; the credit is the word F1 of
    their predicates, since no two readers choose the same verb. Each triple counts once, with its best partner first.
    No prediction scores 0.0. Raises EvaluationError when `gold` is empty or has a blank part.
    """
    return _f1([_credits(triple, predicted, by_predicate=True) for triple in _checked(gold)], len(predicted))


def link_f1(gold: Sequence[Triple], predicted: Sequence[Triple]) -> float:
    """As `triple_f1`, without regard to the predicates."""
    return _f1([_credits(triple, predicted, by_predicate=False) for triple in _checked(gold)], len(predicted))


def _credits(triple: Triple, predicted: Sequence[Triple], *, by_predicate: bool) -> list[float]:
    ends = _ends(triple)
    credits = []
    for other in predicted:
        if _ends(other) != ends:
            credits.append(0.0)
        elif by_predicate:
            credits.append(token_f1([triple[1]], other[1]))
        else:
            credits.append(1.0)
    return credits


def _f1(credit: Sequence[Sequence[float]], n_predicted: int) -> float:
    return 2 * best_pairs(credit) / (len(credit) + n_predicted)


def best_pairs(credit: Sequence[Sequence[float]]) -> float:
    """The credit of the best pairs, each row and column used once."""
    pairs = sorted(
        ((value, row, column) for row, values in enumerate(credit) for column, value in enumerate(values) if value),
        key=lambda pair: (-pair[0], pair[1], pair[2]),
    )
    rows: set[int] = set()
    columns: set[int] = set()
    total = 0.0
    for value, row, column in pairs:
        if row not in rows and column not in columns:
            rows.add(row)
            columns.add(column)
            total += value
    return total


def _ends(triple: Triple) -> tuple[str, str]:
    return normalise_answer(triple[0]), normalise_answer(triple[2])


def _checked(gold: Sequence[Triple]) -> Sequence[Triple]:
    if not gold:
        raise EvaluationError("There are no gold triples, so precision and recall are undefined.")
    for position, triple in enumerate(gold):
        if len(triple) != 3 or not all(isinstance(part, str) and part.strip() for part in triple):
            raise EvaluationError(f"Gold triple {position} is {triple!r}; expected subject, predicate and object.")
    return gold
