"""Says whether a predicted answer is right, by matching strings, words and meanings; all in [0, 1], higher is better.

`gold` is always a sequence of answers any of which is right, except if a docstring says otherwise. Every function
raises EvaluationError when `gold` is empty or blank, or when the prediction is not a string. An empty prediction is a
wrong answer and scores 0.0.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from kraq_dspy.errors import EvaluationError
from kraq_dspy.ports import Embedder


def exact_match(gold: Sequence[str], predicted: str) -> float:
    """1.0 if the predicted answer equals a gold one after normalisation, else 0.0: SQuAD's (Rajpurkar et al., 2016).

    >>> exact_match(["Paris"], "Paris."), exact_match(["Paris"], "It is Paris.")
    (1.0, 0.0)
    """
    normalised = normalise_answer(check_prediction(predicted))
    return float(any(normalise_answer(reference) == normalised for reference in check_references(gold)))


def substring_match(gold: Sequence[str], predicted: str) -> float:
    """1.0 if a gold answer occurs in the predicted one, after normalisation, else 0.0.

    The KRAQ papers call this exact match (paper 4.2; thesis 4.2.1). A long answer, or a copied passage, wins it, and so
    does "It is not Paris but Rome." where Paris is right.
    The gold answer must occur as whole words, so that "no" is not found in "I do not know" nor "ham" in "Birmingham".
    As articles are dropped, "vitamin A" is found wherever "vitamin" is.

    >>> substring_match(["Paris"], "It is Paris.")
    1.0
    """
    searched = f" {normalise_answer(check_prediction(predicted))} "
    return float(any(f" {normalise_answer(reference)} " in searched for reference in check_references(gold)))


def token_f1(gold: Sequence[str], predicted: str) -> float:
    """Harmonic mean of word precision and recall against the best gold answer, in [0, 1] (Rajpurkar et al., 2016).

    Words of scripts without spaces are single characters (Cui et al., 2019).
    """
    words = answer_words(check_prediction(predicted))
    return max(_f1(answer_words(reference), words) for reference in check_references(gold))


def substring_match_items(gold: Sequence[Sequence[str]], predicted: str) -> float:
    """1.0 if at least half of the gold items occur in the predicted answer, else 0.0 (KRAQ thesis 4.2.3).

    An item is a sequence of synonyms; any of them counts, and an item counts once.
    """
    if isinstance(gold, str) or not gold:
        raise EvaluationError(
            f"The gold items are {gold!r}; expected a sequence with one sequence of synonyms per item."
        )

    named = 0.0
    for position, synonyms in enumerate(gold):
        try:
            named += substring_match(synonyms, predicted)
        except EvaluationError as error:
            raise EvaluationError(f"Item {position}: {error}") from error
    return float(named >= len(gold) / 2)


def answer_similarity(gold: Sequence[str], predicted: str, embedder: Embedder) -> float:
    """Cosine of the predicted answer's embedding with the most similar gold one, in [0, 1] (K2RAG, section 4).

    Negative cosines count as 0.0. Figures of different embedders must not be compared.
    """
    references = check_references(gold)
    if not check_prediction(predicted).strip():
        return 0.0
    answer, *others = embedder.encode_passages([predicted, *references]).astype(np.float64)
    return float(np.clip(max(other @ answer for other in others), 0.0, 1.0))


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


# Scripts that put no space between words: each character counts as a word, as CMRC 2018's own scorer does for Chinese
# (Cui et al., 2019). CJK ideographs, kana, Thai, Lao, Myanmar, Khmer.
_UNSPACED = (
    "\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
)
_UNSPACED_CHARACTER = re.compile(f"[{_UNSPACED}]")
_MARKS = (
    *range(0x591, 0x5BE), 0x5BF, 0x5C1, 0x5C2, 0x5C4, 0x5C5, 0x5C7, *range(0x610, 0x61B), 0x640,
    *range(0x64B, 0x660), 0x670, *range(0x6D6, 0x6DD),
)  # fmt: skip
"""Vowel marks that writers of Arabic and Hebrew leave out."""
_ARTICLE = re.compile(r"\b(a|an|the)\b")
_ASCII_SYMBOLS = frozenset("$+<=>^`|~")
_FUNCTION_WORDS = """and are as at be been by can for from has have he her his in into is it its of on or she such that
their them they this through to was were which who will with within while also not but more most than these those there
during about over under between both each other many"""
FUNCTION_WORDS = frozenset(_FUNCTION_WORDS.split())
ENDINGS = ("ations", "ation", "ings", "ing", "ies", "ied", "es", "ed", "s")


def normalise_answer(text: str) -> str:
    """Lower case, no punctuation nor English articles, single spaces (Rajpurkar et al., 2016; KRAQ thesis 4.2.1).

    On ASCII text this is SQuAD's. Beyond it: compatibility forms and cases are unified (NFKC, case folding), digits of
    any script are ASCII's, vowel marks of Arabic and Hebrew are left out, all Unicode punctuation counts, and
    characters of scripts without spaces (Chinese, Japanese, Thai, ...) are words of their own. Unlike SQuAD's, a text
    of nothing but an article ("The") or punctuation ("+") is kept: an empty gold answer would match everything.
    """
    folded = unicodedata.normalize("NFKC", text).casefold()
    lowered = folded.translate(dict.fromkeys(_MARKS)).replace("i\u0307", "i")  # which is left of a Turkish capital
    unpunctuated = "".join(
        str(unicodedata.decimal(each, each))
        for each in lowered
        if each not in _ASCII_SYMBOLS and not unicodedata.category(each).startswith("P")
    )
    spaced = _UNSPACED_CHARACTER.sub(r" \g<0> ", unpunctuated)
    for candidate in (_ARTICLE.sub(" ", spaced), spaced, lowered):
        words = candidate.split()
        if words:
            return " ".join(words)
    return ""


def answer_words(text: str) -> list[str]:
    """The words of the normalised text; for scripts without spaces, the characters."""
    return normalise_answer(text).split()


def content_words(text: str) -> set[str]:
    """Normalised words without function words and English endings."""
    return {_stem(word) for word in answer_words(text) if word not in FUNCTION_WORDS}


def has_unspaced_script(text: str) -> bool:
    """Whether some of the text is in a script that puts no space between words."""
    return _UNSPACED_CHARACTER.search(text) is not None


def split_words(text: str) -> list[str]:
    """Runs of letters and digits, lower case, punctuation dropped; characters of scripts without spaces stand alone.

    Keeps articles: for metrics of word order (ROUGE, METEOR), where they count.
    """
    spaced = _UNSPACED_CHARACTER.sub(r" \g<0> ", unicodedata.normalize("NFKC", text).lower())
    return re.findall(r"(?:[^\W_]|(?<=\w)[\u0300-\u036f])+", spaced)


def _stem(word: str) -> str:
    for ending in ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)] + ("y" if ending in ("ies", "ied") else "")
    return word


def check_references(gold: Sequence[str]) -> Sequence[str]:
    """`gold` itself. Raises EvaluationError when it is a bare string, is empty, or holds a blank or another type."""
    if isinstance(gold, str):
        raise EvaluationError(
            f"The gold answers are the string {gold!r}; expected a sequence of strings. Write [{gold!r}]."
        )
    if not gold:
        raise EvaluationError(
            "There are no gold answers, so the metric is undefined. Leave unanswerable questions out, or score them by "
            "another metric."
        )

    for position, reference in enumerate(gold):
        if not isinstance(reference, str) or not reference.strip():
            raise EvaluationError(
                f"Gold answer {position} is {reference!r}; expected text. A blank reference would match every answer."
            )
    return gold


def check_prediction(predicted: str) -> str:
    """`predicted` itself; the empty string is a (wrong) answer. Raises EvaluationError when it is not a string."""
    if not isinstance(predicted, str):
        raise EvaluationError(
            f"The predicted answer is {predicted!r}; expected a string. A question without an answer is a failed row, "
            "not a score."
        )
    return predicted


Labels = Mapping[str, Sequence[str]]
"""Each label with the phrases, lower case, that mean it."""

_PHRASES = {
    "true": "true, correct, accurate, not false, isn't false, supported",
    "false": "false, untrue, not true, isn't true, incorrect, not correct, inaccurate, not accurate, refuted, "
    "not supported",
    "mixture": "mixture, mixed, both true and false, true and false, half true, partly true, partly false, "
    "partially true, partially false, not entirely true, not completely true, not entirely false, not completely false",
}
PUBHEALTH_LABELS: Labels = {label: tuple(phrases.split(", ")) for label, phrases in _PHRASES.items()}
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

    opens_with_the_first = _VERDICT.match(plain[: matches[0].start()])
    if len(set(named)) > 1 and not opens_with_the_first:
        return None
    return named[0] if named[0] in labels else None
