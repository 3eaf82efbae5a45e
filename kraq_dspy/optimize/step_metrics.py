"""Scores single steps for DSPy's optimizers: what each should find, keep or decide, in [0, 1]."""

from collections.abc import Callable, Sequence
from typing import Any

import networkx

from kraq_dspy.errors import EvaluationError, counted
from kraq_dspy.eval.metrics import generation
from kraq_dspy.eval.metrics.answers import answer_words, content_words, normalise_answer, token_f1
from kraq_dspy.eval.metrics.for_dspy import Metric
from kraq_dspy.eval.metrics.generation import BertScorer
from kraq_dspy.ports import Retriever

Triple = tuple[str, str, str]
"""Subject, predicate, object."""

SHOWN = 5  # of what is missing, in a feedback
FOUND_AMONG = 10  # hits, among which a question's own passages are looked for


# Extraction: triples


def triple_f1(gold: Sequence[Triple], predicted: Sequence[Triple]) -> float:
    """Harmonic mean of precision and recall of the triples, in [0, 1].

    Two triples are of one fact when subjects and objects are equal after normalisation; the credit is the word F1 of
    their predicates, since no two readers choose the same verb. Each triple counts once, in the best pairs of all.
    No prediction scores 0.0. Raises EvaluationError when `gold` is empty or has a blank part.
    """
    credits = [
        [token_f1([triple[1]], other[1]) if _ends(triple) == _ends(other) else 0.0 for other in predicted]
        for triple in checked_triples(gold)
    ]
    return 2 * best_pairs(credits) / (len(credits) + len(predicted))


def link_f1(gold: Sequence[Triple], predicted: Sequence[Triple]) -> float:
    """Score as `triple_f1` does, without regard to the predicates, which models below two billion
    parameters do not write."""
    return triple_f1(_without_predicates(gold), _without_predicates(predicted))


def best_pairs(credit: Sequence[Sequence[float]]) -> float:
    """The credit of the best pairs, each row and column used once."""
    pairs = networkx.Graph()
    for row, credits in enumerate(credit):
        pairs.add_weighted_edges_from(
            (("row", row), ("column", column), value) for column, value in enumerate(credits) if value > 0
        )
    matched = sorted(networkx.max_weight_matching(pairs))  # sorted, so that the sum is the same in each run
    return float(sum(pairs.edges[pair]["weight"] for pair in matched))


def checked_triples(gold: Sequence[Triple]) -> Sequence[Triple]:
    """The triples as they are. Raises EvaluationError when there is none, or one has a blank part."""
    if not gold:
        raise EvaluationError("There are no gold triples, so precision and recall are undefined.")

    for position, triple in enumerate(gold):
        if len(triple) != 3 or not all(isinstance(part, str) and part.strip() for part in triple):
            raise EvaluationError(f"Gold triple {position} is {triple!r}; expected subject, predicate and object.")
    return gold


def _ends(triple: Triple) -> tuple[str, str]:
    return normalise_answer(triple[0]), normalise_answer(triple[2])


def _without_predicates(triples: Sequence[Triple]) -> list[Triple]:
    return [(subject, "links", object_) for subject, _, object_ in triples]


def _triples(prediction: Any) -> list[Triple]:
    return [(link.source, link.predicate, link.target) for link in prediction.relationships]


def _extraction_metric(function: Callable[[Sequence[Triple], Sequence[Triple]], float]) -> Metric:
    def score(example: Any, prediction: Any) -> float:
        return function(example.triples, _triples(prediction))

    def explain(example: Any, prediction: Any, score: float) -> str:
        links = set(map(_ends, _triples(prediction)))
        missing = [" | ".join(triple) for triple in example.triples if _ends(triple) not in links]
        return (
            f"Of {counted(len(example.triples), 'triple')} these are missing: {'; '.join(missing[:SHOWN]) or 'none'}."
        )

    return Metric(function.__name__, score, explain, threshold=0.5)


TRIPLE_F1 = _extraction_metric(triple_f1)
LINK_F1 = _extraction_metric(link_f1)


# Gleaning: names that a first reading missed


def missed_f1(missed: Sequence[str], found: Sequence[str]) -> float:
    """Harmonic mean of precision and recall of the names found, equal after normalisation, in [0, 1].

    >>> missed_f1(["Ada Lovelace"], ["ada lovelace", "London"])
    0.6666666666666666

    Where nothing was missed, to find nothing is right: 1.0, and 0.0 for anything found.
    """
    gold_names = {normalise_answer(name) for name in missed}
    named = {normalise_answer(name) for name in found}
    if not gold_names:
        return 0.0 if named else 1.0
    return 2 * len(gold_names & named) / (len(gold_names) + len(named))


def _names(prediction: Any) -> list[str]:
    return [entity.name for entity in prediction.entities]


def _explain_missed(example: Any, prediction: Any, score: float) -> str:
    named = {normalise_answer(name) for name in _names(prediction)}
    still_missing = [name for name in example.missed if normalise_answer(name) not in named]
    if still_missing:
        return f"Still missing: {', '.join(still_missing[:SHOWN])}."
    return "Nothing that was missed is missing." if score == 1 else "List only what the first reading missed."


MISSED_F1 = Metric(
    "missed_f1",
    lambda example, prediction: missed_f1(example.missed, _names(prediction)),
    _explain_missed,
    threshold=0.5,
)


# Description: many descriptions in one


def facts_kept(descriptions: Sequence[str], merged: str) -> float:
    """Tell how far one description has the words of all the given ones, each once, in [0, 1].

    The harmonic mean of the share of the content words of `descriptions` that `merged` has, and of the share of the
    content words of `merged` that come from there and were not said before. Raises EvaluationError if the given
    descriptions have no content word.

    >>> facts_kept(["Ada wrote notes.", "Ada lived in London."], "Ada wrote notes and lived in London.")
    1.0
    >>> round(facts_kept(["Ada wrote notes.", "Ada lived in London."], "Ada wrote notes. Ada wrote notes."), 2)
    0.55
    """
    given = {word for text in descriptions for word in content_words(text)}
    if not given:
        raise EvaluationError("the descriptions have no word that tells something, so none can be kept")

    merged_words = [word for token in answer_words(merged) for word in content_words(token)]
    preserved = given & set(merged_words)
    if not preserved:
        return 0.0
    recall, precision = len(preserved) / len(given), len(preserved) / len(merged_words)
    return 2 * precision * recall / (precision + recall)


def _explain_facts(example: Any, prediction: Any, score: float) -> str:
    given = {word for text in example.descriptions for word in content_words(text)}
    lost = sorted(given - set(content_words(prediction.description)))
    if lost:
        return f"These words of the descriptions are lost: {', '.join(lost[:10])}."
    return "Every fact is kept." if score == 1 else "Every fact is kept, but something is said twice or added."


FACTS_KEPT = Metric(
    "facts_kept",
    lambda example, prediction: facts_kept(example.descriptions, prediction.description),
    _explain_facts,
    threshold=0.8,
)


# Summaries


def _mentions(example: Any, prediction: Any) -> float:
    names = example.get("mentions")
    if not names:
        raise EvaluationError("the example has no `mentions`, names that a good summary has; or use rouge_l")
    return 1 - len(_unmentioned(example, prediction)) / len(names)


def _unmentioned(example: Any, prediction: Any) -> list[str]:
    text = f" {normalise_answer(prediction.title + ' ' + prediction.summary)} "
    return [name for name in example.mentions if f" {normalise_answer(name)} " not in text]


def _explain_mentions(example: Any, prediction: Any, score: float) -> str:
    missing = _unmentioned(example, prediction)
    return f"Not mentioned: {', '.join(missing)}." if missing else "All that matters is mentioned."


MENTIONS = Metric("mentions", _mentions, _explain_mentions, threshold=0.8)
"""Share of the example's `mentions` that the title or the summary names."""


def reference_metric(field: str) -> Metric:
    """ROUGE-L of the output `field` against the example's `references`."""

    def references(example: Any) -> list[str]:
        if not example.get("references"):
            raise EvaluationError(f"the example has no reference `{field}` to compare with")
        return list(example.references)

    return Metric(
        "rouge_l",
        lambda example, prediction: generation.rouge_l(references(example), prediction[field]),
        lambda example, prediction, score: f"ROUGE-L is {score:.2f} against: {references(example)[0]}",
        threshold=0.4,
    )


# Questions


def relevance_metric(scorer: BertScorer, threshold: float = 0.7, *, field: str = "question") -> Metric:
    """BERTScore F1 of the generated question with the nearest of the example's `questions` (KRAQ paper 4.2).

    The model's name is part of the metric's: figures of different ones must not be compared.
    """

    def relevance(example: Any, prediction: Any) -> float:
        references = list(example.questions)
        generated = prediction[field]
        if not generated.strip():
            return 0.0
        return float(scorer.score(references, [generated] * len(references)).max())

    def explain(example: Any, prediction: Any, score: float) -> str:
        return f"{prediction[field]!r} scores {score:.2f}; people asked: {' or '.join(example.questions[:3])}"

    return Metric(f"relevance({scorer.name})", relevance, explain, threshold)


def leads_back_metric(retriever: Retriever, *, field: str = "question") -> Metric:
    """Whether one of the example's `chunk_ids` is among the first passages that the generated question finds.

    It needs no reference: a question that does not lead to what it was made from stands for nothing (KRAQ paper, 3).
    """

    def score(example: Any, prediction: Any) -> float:
        question = prediction[field]
        if not example.get("chunk_ids"):
            raise EvaluationError("the example has no `chunk_ids`, the passages that the question should find")
        if not question.strip():
            return 0.0
        hits = retriever(question, FOUND_AMONG)
        return float(any(hit.chunk.id in example.chunk_ids for hit in hits))

    def explain(example: Any, prediction: Any, score: float) -> str:
        if score:
            return f"{prediction[field]!r} finds the passages that it was made from."
        return f"{prediction[field]!r} finds other passages than those that it was made from; name what they are about."

    return Metric("leads_back", score, explain)


# Conversations


def _word_f1(example: Any, prediction: Any) -> float:
    return token_f1(example.references, prediction.question)


def _explain_words(example: Any, prediction: Any, score: float) -> str:
    if score == 1:
        return f"{prediction.question!r} is complete, with nothing added."
    return f"{prediction.question!r} should be: {example.references[0]}"


WORD_F1 = Metric("word_f1", _word_f1, _explain_words, threshold=0.9)
"""F1 of the words of a question that was made complete with those of the nearest that the example gives."""


# Decisions


def agreement_metric(field: str, label: Callable[[Any], Any] = lambda value: value) -> Metric:
    """Whether the output `field` is what the example says, both as `label` reads them."""

    def score(example: Any, prediction: Any) -> float:
        return float(label(prediction.get(field)) == example[field])

    def explain(example: Any, prediction: Any, score: float) -> str:
        decision = label(prediction.get(field))
        return f"{decision} is right." if score else f"{decision} is wrong; people said {example[field]}."

    return Metric("agreement", score, explain)


# Test sets

USABLE = Metric(
    "usable",
    lambda example, prediction: float(not prediction.rejected),
    lambda example, prediction, score: (
        "The question may be used." if score else f"{prediction.question!r} is dropped: {prediction.rejected}."
    ),
)
"""Whether a question for a test set passes the checks of words: it stands alone, and its passages have the answer."""


def other_words(avoid: Sequence[str], before: str, after: str) -> float:
    """Share of the words to do without that are gone; 0.0 if the question stayed as it was, 1.0 with none to avoid.

    >>> other_words(["live"], "Where did Ada live?", "Where was Ada's home?")
    1.0
    """
    if not avoid:
        return 1.0
    words = set(answer_words(after))
    return 0.0 if after == before else sum(word.lower() not in words for word in avoid) / len(avoid)


OTHER_WORDS = Metric(
    "other_words",
    lambda example, prediction: other_words(example.avoid, example.question, prediction.question),
    lambda example, prediction, score: f"{prediction.question!r} is to do without: {', '.join(example.avoid)}.",
    threshold=0.6,
)
