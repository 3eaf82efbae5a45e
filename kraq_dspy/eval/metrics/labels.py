"""Reads answers that are one label of a few from free text, and compares them."""

import re
from collections.abc import Mapping, Sequence

from kraq_dspy.errors import EvaluationError
from kraq_dspy.eval.metrics.references import check_prediction

Labels = Mapping[str, Sequence[str]]
"""Each label with the phrases, lower case, that mean it."""

PUBHEALTH_LABELS: Labels = {
    "true": ("true", "correct", "accurate", "not false", "isn't false", "supported"),
    "false": (
        "false",
        "untrue",
        "not true",
        "isn't true",
        "incorrect",
        "not correct",
        "inaccurate",
        "not accurate",
        "refuted",
        "not supported",
    ),
    "mixture": (
        "mixture",
        "mixed",
        "both true and false",
        "true and false",
        "half true",
        "partly true",
        "partly false",
        "partially true",
        "partially false",
        "not entirely true",
        "not completely true",
        "not entirely false",
        "not completely false",
    ),
}
"""The labels that the papers evaluate on. PubHealth's fourth, "unproven", is left out when the set is loaded, as in
them; an answer that says "unproven" names none of the three."""

YES_NO: Labels = {
    "yes": ("yes", "it is", "it does", "they do", "they are", "correct"),
    "no": ("no", "it is not", "it does not", "they do not", "they are not", "not correct"),
}
"""The exact answers of BioASQ's yes/no questions."""

_NO_LABEL = "unproven"
_UNPROVEN_PHRASES = ("unproven", "unverified", "not proven", "cannot be verified", "not verifiable")
_VERDICT = re.compile(
    r"^(?:the |this )?(?:claim|statement|answer|label|verdict|it|this)(?: is| was)?(?: a| an)? ?$|^$", re.ASCII
)


def label_accuracy(gold: str, predicted: str, labels: Labels = PUBHEALTH_LABELS) -> float:
    """1.0 if the label that the predicted answer names is `gold`, else 0.0 (KRAQ paper 4.1: PubHealth).

    An answer that names no label, or several without opening with one, is wrong; `parse_label` tells those apart.
    Raises EvaluationError when `gold` is not one of `labels`.
    """
    if gold not in labels:
        raise EvaluationError(f"The gold label is {gold!r}; expected one of {', '.join(labels)}.")
    return float(parse_label(predicted, labels) == gold)


def parse_label(text: str, labels: Labels = PUBHEALTH_LABELS) -> str | None:
    """The label that a free answer names, or None.

    Longer phrases win over shorter ones ("partly true" over "true"). If several labels are named, the first decides if
    the answer opens with it ("False: it is not true that ...", "The claim is a mixture of true and false").
    """
    phrases = {phrase: label for label, synonyms in labels.items() for phrase in (label, *synonyms)}
    phrases.update({phrase: _NO_LABEL for phrase in _UNPROVEN_PHRASES if phrase not in phrases})
    longest_first = "|".join(re.escape(phrase) for phrase in sorted(phrases, key=len, reverse=True))
    plain = " ".join(re.sub(r"[^\w']+", " ", check_prediction(text).lower().replace("’", "'")).split())
    matches = list(re.finditer(rf"\b(?:{longest_first})\b", plain))
    named = [phrases[match.group()] for match in matches]
    if not named:
        return None
    if len(set(named)) > 1 and not _VERDICT.match(plain[: matches[0].start()]):
        return None
    return named[0] if named[0] in labels else None
