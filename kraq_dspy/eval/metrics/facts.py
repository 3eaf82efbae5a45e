"""Measures how much of a given fact an extracted graph states, without a judge.

MINE (Mo et al., 2025, KGGen, section 4) asks a language model whether a fact follows from the part of the graph around
the nodes most like it. Here that part is chosen in the same way and words are counted instead: a paraphrase is missed
and a copied sentence counts in full. On the 3,600 verdicts of MINE's own judge the measure has an area under the curve
of .78, so it ranks extractions of one kind and is no substitute for the judge between kinds.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from kraq_dspy.errors import EvaluationError
from kraq_dspy.eval.metrics.normalise import answer_words
from kraq_dspy.eval.metrics.triples import Triple
from kraq_dspy.ports import Embedder, Vectors

NEAREST = 5  # entities; with 8 and their neighbours' links, as MINE has it, the area is .76
_FUNCTION_WORDS = """and are as at be been by can for from has have he her his in into is it its of on or she such that
their them they this through to was were which who will with within while also not but more most than these those there
during about over under between both each other many"""
FUNCTION_WORDS = frozenset(_FUNCTION_WORDS.split())
ENDINGS = ("ations", "ation", "ings", "ing", "ies", "ied", "es", "ed", "s")


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


def content_words(text: str) -> set[str]:
    """Normalised words without function words and English endings."""
    return {_stem(word) for word in answer_words(text) if word not in FUNCTION_WORDS}


def _nearest(vector: Vectors, names: Vectors) -> list[int]:
    order: list[int] = (-(names @ vector)).argsort(kind="stable")[:NEAREST].tolist()
    return order


def _covered(words: set[str], entities: Sequence[str], stated: dict[str, set[str]]) -> float:
    union = set[str]().union(*(stated.get(name, set()) for name in entities))
    return len(words & union) / len(words)


def _stem(word: str) -> str:
    for ending in ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)] + ("y" if ending in ("ies", "ied") else "")
    return word
