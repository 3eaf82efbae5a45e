"""Measures how much of what is known to be true an extracted graph states, without a judge.

For facts: MINE (Mo et al., 2025, KGGen, section 4) asks a language model whether a fact follows from the part of the
graph around the nodes most like it. Here that part is chosen in the same way and words are counted instead: a
paraphrase is missed and a copied sentence counts in full. On the 3,600 verdicts of MINE's own judge the measure has an
area under the curve of .78, so it ranks extractions of one kind and is no substitute for the judge between kinds.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from kraq_dspy.errors import EvaluationError
from kraq_dspy.eval.metrics.answers import content_words, token_f1
from kraq_dspy.optimize.step_metrics import Triple, best_pairs
from kraq_dspy.ports import Embedder, Vectors

NEAREST = 5  # entities; with 8 and their neighbours' links, as MINE has it, the area is .76


@dataclass(frozen=True, slots=True)
class ExtractedGraph:
    """What an extractor made of a text: names, and links whose parts are read together. Blank names are left out."""

    entities: Sequence[str]
    links: Sequence[Triple]


def fact_coverages(facts: Sequence[str], graph: ExtractedGraph, embedder: Embedder) -> list[float]:
    """For each fact the share of its content words, in [0, 1], that the links of the five entities most like it have.

    Words are compared without their endings; function words are left out. A graph without entities covers nothing.
    Raises EvaluationError for a fact without content words.
    """
    words = [content_words(fact) for fact in facts]
    if blank := [fact for fact, of_fact in zip(facts, words, strict=True) if not of_fact]:
        raise EvaluationError(f"The fact {blank[0]!r} has no words to look for.")
    entities = list(dict.fromkeys(name for name in graph.entities if name.strip()))
    if not facts or not entities:
        return [0.0] * len(facts)
    names = embedder.encode_passages(entities)
    stated: dict[str, set[str]] = {}
    for link in graph.links:
        for end in (link[0], link[2]):
            stated.setdefault(end, set()).update(content_words(" ".join(link)))
    return [
        _covered(of_fact, [entities[n] for n in _nearest(vector, names)], stated)
        for of_fact, vector in zip(words, embedder.encode_queries(list(facts)), strict=True)
    ]


def _nearest(vector: Vectors, names: Vectors) -> list[int]:
    order: list[int] = (-(names @ vector)).argsort(kind="stable")[:NEAREST].tolist()
    return order


def _covered(words: set[str], entities: Sequence[str], stated: dict[str, set[str]]) -> float:
    union = set[str]().union(*(stated.get(name, set()) for name in entities))
    return len(words & union) / len(words)


def name_matches(gold: Sequence[str], predicted: Sequence[str]) -> tuple[float, float]:
    """Precision and recall of names: how well the best partner of each shares its words (word F1), on average.

    "Mercury Wonder Show" finds most of "The Mercury Wonder Show for Service Men". No prediction scores (0.0, 0.0).
    Raises EvaluationError when `gold` is empty.
    """
    if not gold:
        raise EvaluationError("There are no gold names, so precision and recall are undefined.")
    named = [name for name in predicted if name.strip()]
    return _mean_best(named, gold), _mean_best(gold, named)


def link_matches(gold: Sequence[Triple], predicted: Sequence[Triple]) -> tuple[float, float]:
    """Precision and recall of links between two names, whatever their direction and predicate, each counted once.

    The credit of a pair is the lower word F1 of its two ends, so that a date or a title beside a name costs a part of
    the link and not the whole. No prediction scores (0.0, 0.0).
    """
    credit = [[_alike(triple, other) for other in predicted] for triple in gold]
    total = best_pairs(credit)
    return (total / len(predicted) if predicted else 0.0), total / len(gold)


def _mean_best(names: Sequence[str], partners: Sequence[str]) -> float:
    if not names or not partners:
        return 0.0
    return sum(max(token_f1([partner], name) for partner in partners) for name in names) / len(names)


def _alike(triple: Triple, other: Triple) -> float:
    (a, _, b), (c, _, d) = triple, other
    if not (c.strip() and d.strip()):
        return 0.0
    return max(min(token_f1([a], c), token_f1([b], d)), min(token_f1([a], d), token_f1([b], c)))
