"""Judges by overlap: whether evidence supports a claim, two names mean one thing, two questions ask the same, and
how good a question and its answer are."""

import re
from collections.abc import Sequence

from rapidfuzz import fuzz

from kraq_dspy.models.lms.engines.embedded.answer import DATE, NUMBER, Similar
from kraq_dspy.models.lms.engines.embedded.names import names_in
from kraq_dspy.models.lms.engines.embedded.text import content_words, parted, sentences, words
from kraq_dspy.models.lms.engines.embedded.vocabulary import STOP

POINTING = re.compile(
    r"\b(?:the|this|that|these|those|above|following) (?:\w+ )?(?:documents?|texts?|passages?|articles?|sections?|"
    r"tables?|figures?|authors?|papers?|reports?|pages?|chapters?|excerpts?|stud(?:y|ies)|examples?)\b"
    r"|\baccording to (?:the|this)\b|\b(?:mentioned|described|listed|shown) (?:here|above|below|in the)\b"
    r"|\bthis (?!year|month|week|day|century)\w+",
    re.IGNORECASE,
)
DEFINITE = re.compile(r"\bthe (?!(?:most|best|first|last|world|sun|moon|earth|internet)\b)[a-z]\w+", re.IGNORECASE)
PRONOUN = re.compile(r"\b(?:he|she|it|they|him|her|his|hers|its|their|theirs|them|this|these|those)\b", re.IGNORECASE)


def support(claim: str, evidence: str) -> float:
    """Share of the claim's content words that the evidence has, in [0, 1]; 0 for a claim without any."""
    claim_words = set(content_words(claim))
    return len(claim_words & set(content_words(evidence))) / len(claim_words) if claim_words else 0.0


def agreement(answer: str, references: Sequence[str]) -> float:
    """How well the answer gives one of the references, in [0, 1]: 1 when it contains one word for word, else the best
    F1 of their words."""
    own = words(answer)
    best = 0.0
    for reference in references:
        expected = words(reference)
        if not expected:
            continue
        if any(own[i : i + len(expected)] == expected for i in range(len(own) - len(expected) + 1)):
            return 1.0
        common = len(set(own) & set(expected))
        best = max(best, 2 * common / (len(set(own)) + len(set(expected))) if common else 0.0)
    return best


def probability(share: float) -> float:
    """A share in [0, 1] as a probability that is never certain: 0.05 to 0.95."""
    return 0.05 + 0.9 * min(max(share, 0.0), 1.0)


NUMBERED = re.compile(r"^(\d+): ")
NO_MATCH = -1
FOUND, SURE = 0.6, 0.76
"""Least likeness of a question that is named, and of one that is confirmed, chosen by what passes of right and of wrong
pairs (docs/results/qa-search.md)."""


def same_thing(first: str, second: str) -> bool:
    """Each is "name: description", "name (type): description" or a name alone."""
    (one, about_one), (two, about_two) = _parted(first), _parted(second)
    tokens_one, tokens_two = _tokens(one), _tokens(two)
    if tokens_one == tokens_two:
        return True
    if _numbers(one) != _numbers(two):
        return False
    if _initials_of(one, two) or _initials_of(two, one):
        return True
    short, long = sorted((tokens_one, tokens_two), key=len)
    if short and short[0] == long[0] and short[-1] == long[-1]:
        return True  # a middle name or initial
    shared = _overlap(about_one, about_two)
    if set(short) < set(long):
        return shared >= 0.3  # a surname may be a namesake's: the descriptions must agree
    if len(short) == len(long) and len(short) > 1 and sum(a != b for a, b in zip(short, long, strict=True)) == 1:
        different = next((a, b) for a, b in zip(short, long, strict=True) if a != b)
        return fuzz.ratio(*different) >= 80 or _abbreviates(*different)
    return fuzz.ratio("".join(tokens_one), "".join(tokens_two)) >= 90


def _parted(text: str) -> tuple[str, str]:
    name, _, description = text.strip().partition("\n") if "\n" in text.strip() else text.strip().partition(": ")
    return re.sub(r"\s*\([^)]*\)\s*$", "", name).strip(), description


def _tokens(name: str) -> list[str]:
    return [word for word in words(name) if word not in STOP]


def _numbers(name: str) -> list[str]:
    return re.findall(r"\d+|\b[IVX]+\b", name)


def _initials_of(short: str, long: str) -> bool:
    letters = re.sub(r"[^\w]", "", short)
    initials = "".join(word[0] for word in _tokens(long))
    return 2 <= len(letters) <= 6 and letters.isupper() and letters.lower() == initials


def _abbreviates(one: str, two: str) -> bool:
    short, long = sorted((one, two), key=len)
    return len(short) <= 2 and long.startswith(short[0])


def _overlap(one: str, two: str) -> float:
    a, b = set(content_words(one)), set(content_words(two))
    return len(a & b) / min(len(a), len(b)) if a and b else 0.0


def matching_number(question: str, catalogue: Sequence[str], similar: Similar) -> int:
    """The number of the entry most like the question, -1 where none is like it."""
    entries = [(int(match[1]), line[match.end() :]) for line in catalogue if (match := NUMBERED.match(line))]
    scores = likenesses(question, [text for _, text in entries], similar)
    likeness, number = max(zip(scores, (number for number, _ in entries), strict=True), default=(0.0, NO_MATCH))
    return number if likeness >= FOUND else NO_MATCH


def is_same_question(question: str, stored: str, similar: Similar) -> bool:
    return not _has_other_word(question, stored) and likenesses(question, [stored], similar)[0] >= SURE


def _has_other_word(question: str, stored: str) -> bool:
    """Whether the two are alike word for word but for one that carries meaning: "the red boat", "the blue boat"."""
    first, second = words(question), words(stored)
    if len(first) != len(second):
        return False
    apart = [pair for pair in zip(first, second, strict=True) if pair[0] != pair[1]]
    if len(apart) != 1:
        return False
    one, other = (content_words(word) for word in apart[0])
    return bool(one and other) and one != other


def likenesses(question: str, others: Sequence[str], similar: Similar) -> list[float]:
    """Of each of `others`, in [0, 1]: cosine, and the share of content words that both have."""
    question_words = set(content_words(question))
    scores = []
    for cosine, other in zip(similar(question, others), others, strict=True):
        bag = set(content_words(other))
        shared = 2 * len(question_words & bag) / (len(question_words) + len(bag) or 1)
        scores.append(0.8 * max(0.0, float(cosine)) + 0.2 * shared)
    return scores


def grounded(question: str, answer: str, passage: str) -> tuple[int, str]:
    """Rating and evaluation: are the answer's words there, in the sentence that has most of the question's, and is it
    of the kind that was asked for?"""
    if not answer.strip():
        return 1, "There is no answer."
    there = support(answer, passage) if content_words(answer) else float(answer.strip().lower() in passage.lower())
    lowered = answer.strip().lower()
    title, body = parted(passage)
    parts = sentences(body)
    bearing = [part for part in parts if support(answer, part) >= 0.8 or lowered in part.lower()]
    near = max((support(question, f"{title} {part} {answer}") for part in bearing), default=0.0)
    beside, nearest = (
        max((support(question, f"{title} {one}") for one in some), default=0.0) for some in (bearing, parts)
    )
    fits = min(1.0, 1.5 * near) * (beside / nearest if nearest else 1.0)
    if not _is_of_kind(question, answer):
        return 1 + round(2 * there * fits), "The answer is not of the kind that is asked for."
    evaluation = f"The passage has {there:.0%} of the answer, beside {near:.0%} of the question."
    return 1 + round(4 * there * fits), evaluation


def _is_of_kind(question: str, answer: str) -> bool:
    """Numbers and dates are asked for by other words than names."""
    lowered, has_digit = question.lower(), any(letter.isdigit() for letter in answer)
    if re.search(r"\b(?:when|what year|which year|what date|how many|how much|how old)\b", lowered):
        return has_digit or bool(NUMBER.search(answer.lower()) or DATE.search(answer))
    if re.search(r"\bwho(?:m|se)?\b", lowered):
        return not answer.strip()[:1].isdigit()
    return True


def relevant(question: str, audience: str) -> tuple[int, str]:
    """Rating and evaluation: a question that names something, or says enough, is worth an answer; the more so where
    it speaks of what the audience cares for."""
    own = set(content_words(question))
    names = names_in(question.partition(" ")[2])
    shared = own & set(content_words(audience))
    rating = 1 if not own else min(5, 2 + 2 * bool(names) + (len(own) >= 2) + (len(own) >= 4) + bool(shared))
    return rating, f"It names {', '.join(names) or 'nothing'} and says {len(own)} words that carry meaning."


def stands_alone(question: str) -> tuple[int, str]:
    """Rating and evaluation: nothing points outside the question."""
    if pointing := POINTING.search(question):
        return 2, f"It points to something unseen: {pointing[0]!r}."
    names = names_in(question.partition(" ")[2])
    pronoun = PRONOUN.search(question)
    if pronoun and not any(name in question[: pronoun.start()] for name in names):
        return 2, f"Who or what is meant by {pronoun[0]!r} is not said."
    if not content_words(question):
        return 1, "It says nothing by itself."
    if not names and len(set(content_words(question))) < 2:
        return 3, "It says very little by itself."
    if not names and (thing := DEFINITE.search(question)):
        return 4, f"Which one is meant by {thing[0]!r} is not said."
    return 5, "It can be understood by itself."
