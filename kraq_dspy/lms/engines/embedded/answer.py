"""Answers by pointing: the sentences nearest to the question, and in front of them the span that it asks for."""

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kraq_dspy.lms.engines.embedded.names import kind_of, names_in
from kraq_dspy.lms.engines.embedded.text import clipped, content_words, sentences
from kraq_dspy.lms.engines.embedded.vocabulary import NO_NAMES

UNKNOWN = "I do not know"
CLOSED = re.compile(r"^(?:is|are|was|were|do|does|did|has|have|had|can|could|will|would)\b", re.IGNORECASE)
EITHER = re.compile(
    r"^.*?\b(?:who|which|what|whose)\b.*?[,:]?\s(?P<a>(?:the )?[\"“]?[A-Z0-9][^,?]*?)[\"”]?,? or (?P<b>[^?]+)\?", re.I
)
DATE = re.compile(
    r"\b(?:\d{1,2} )?(?:January|February|March|April|May|June|July|August|September|October|November|December)"
    r"(?: \d{1,2})?,? \d{4}\b|\b(?:1[0-9]|20)\d\d\b"
)
NUMBER = re.compile(
    r"\b(?:\d[\d,.]*\d|\d|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|dozen|hundred|million)\b"
)
LATER = re.compile(r"\b(later|latest|younger|youngest|newer|more recent(ly)?|last|second)\b", re.IGNORECASE)
EARLIER = re.compile(r"\b(first|earlier|earliest|older|oldest|before)\b", re.IGNORECASE)

ENCODED = 6
"""How many of the nearest sentences the encoder sees: most of the time of an answer."""

Similar = Callable[[str, Sequence[str]], Sequence[float]]
"""Similarities of a question to texts; the encoder's cosines, or zeros without one."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """A sentence, the title of its passage, and how near it is to the question."""

    text: str
    title: str
    passage: int
    score: float


def answer(question: str, passages: Sequence[str], similar: Similar) -> str:
    """The asked span, then its sentence and a second one; "I do not know" when no word of the question is there."""
    evidence = nearest(question, passages, similar)
    if not evidence:
        return UNKNOWN
    support = _two(question, evidence)
    text = " ".join(clipped(part.text, 60) for part in support)
    span = _span(question, passages, evidence, support)
    return f"{span}. {text}" if span else text


def short_answer(question: str, passages: Sequence[str], similar: Similar) -> tuple[str, str]:
    """(response, rationale) of a draft: the span alone where there is one, and the sentences that hold it."""
    evidence = nearest(question, passages, similar)
    if not evidence:
        return UNKNOWN, "The passages share no word with the question."
    support = _two(question, evidence)
    rationale = " ".join(clipped(part.text, 60) for part in support)
    return _span(question, passages, evidence, support) or clipped(support[0].text, 30), rationale


def nearest(question: str, passages: Sequence[str], similar: Similar, count: int = 12) -> list[Evidence]:
    """Up to `count` sentences, nearest first: rare shared words, the words of the title, and the encoder's opinion."""
    question_words = set(content_words(question))
    parts: list[tuple[str, str, int]] = []
    for number, passage in enumerate(passages):
        title, body = _parted(passage)
        parts += [(text, title, number) for text in sentences(body)]
    bags = [set(content_words(text)) for text, _, _ in parts]
    titles = [set(content_words(title)) for _, title, _ in parts]
    spread = Counter(word for bag, title in zip(bags, titles, strict=True) for word in bag | title)
    worth = {word: math.log(1 + len(parts) / spread[word]) for word in question_words if spread[word]}
    scored = []
    for (text, title, number), bag, named in zip(parts, bags, titles, strict=True):
        score = sum(worth.get(word, 0.0) * (1.0 if word in bag else 0.8) for word in question_words & (bag | named))
        if score:
            scored.append(Evidence(text, title, number, score))
    scored.sort(key=lambda part: -part.score)
    top = scored[:count]
    if not top:
        return []
    best = top[0].score
    texts = [f"{part.title}: {part.text}" if part.title else part.text for part in top[:ENCODED]]
    near = [float(cosine) for cosine in similar(question, texts)]
    near += [min(near)] * (len(top) - len(near))
    top = [
        Evidence(part.text, part.title, part.passage, part.score / best + cosine)
        for part, cosine in zip(top, near, strict=True)
    ]
    return sorted(top, key=lambda part: -part.score)


def _parted(passage: str) -> tuple[str, str]:
    title, _, body = passage.strip().partition("\n")
    return (title.strip(), body) if body.strip() and len(title) <= 150 else ("", passage)


def _two(question: str, evidence: list[Evidence]) -> list[Evidence]:
    """The nearest sentence, and the one that best goes on from it: it says what the first leaves unsaid of the
    question, or is about a name that the first brings in."""
    first = evidence[0]
    question_words = set(content_words(question))
    left = question_words - set(content_words(first.text)) - set(content_words(first.title))
    fresh = [name for name in names_in(first.text) if name not in question]

    def gain(part: Evidence) -> float:
        bag = set(content_words(f"{part.title} {part.text}"))
        bridge = any(name in part.title or part.title in name for name in fresh if part.title)
        return part.score + len(left & bag) / (len(left) or 1) + 0.5 * bridge - 0.3 * (part.passage == first.passage)

    return [first, *sorted(evidence[1:], key=lambda part: -gain(part))[:1]]


def _span(question: str, passages: Sequence[str], evidence: list[Evidence], support: list[Evidence]) -> str:
    either = EITHER.match(question)
    if either and not CLOSED.match(question):
        return _of_two(question, either["a"].strip(' "“”'), either["b"].strip(' "“”'), evidence)
    if CLOSED.match(question):
        return _yes_or_no(question, passages, evidence)
    lowered = question.lower()
    text = " ".join(part.text for part in support)
    if re.search(r"\bwhen\b|\b(what|which) (year|date|day|month)\b", lowered):
        return _first(DATE.findall(text), question)
    if re.search(r"\bhow (many|much|old|long|tall|far|large|big)\b|\bpopulation\b|\bwhat number\b", lowered):
        return _first([m[0] for m in NUMBER.finditer(text)], question)
    names = [name for part in support for name in [*([part.title] if part.title else []), *names_in(part.text)]]
    fresh = [name for name in dict.fromkeys(names) if name.lower() not in lowered]
    kind = "person" if re.search(r"\bwho(m|se)?\b", lowered) else "place" if re.search(r"\bwhere\b", lowered) else ""
    of_kind = [name for name in fresh if kind and kind_of(name, text) == kind]
    return (of_kind or ([] if not kind else fresh) or [""])[0]


def _yes_or_no(question: str, passages: Sequence[str], evidence: list[Evidence]) -> str:
    """Of two things compared: does what is told of each have what the question asks for, or do both have the same of
    it? Else: is what the question says of the thing told somewhere?"""
    names = names_in(question[question.find(" ") + 1 :])
    accounts = [text for text in (_told_of(name, passages) for name in names[:2]) if text]
    question_words = set(content_words(question)) - {word for name in names for word in content_words(name)}
    if len(accounts) == 2:
        first, second = (set(content_words(text)) for text in accounts)
        if re.search(r"\b(nationality|country)\b", question):
            one, two = (set(re.findall(r"\w+", text)) & NO_NAMES for text in accounts)
            return "yes" if one & two else "no"
        if re.search(r"\bsame\b", question):
            return "yes" if len((first & second) - question_words) >= 2 else "no"
        return "yes" if all(len(question_words & bag) * 2 > len(question_words) for bag in (first, second)) else "no"
    covered = question_words & set(content_words(" ".join(part.text for part in evidence[:2])))
    return "yes" if len(covered) * 2 >= len(question_words) else "no"


def _told_of(name: str, passages: Sequence[str]) -> str:
    """The first two sentences of the passage that has the name in its title, or else of one that mentions it."""
    for passage in sorted(passages, key=lambda passage: (not _parted(passage)[0].startswith(name), len(passage))):
        if name in passage:
            return " ".join(sentences(_parted(passage)[1])[:2])
    return ""


def _of_two(question: str, one: str, two: str, evidence: list[Evidence]) -> str:
    """Of two named things, the one whose date or number fits the comparison, else the one nearer to the question."""
    lead = set(content_words(question)) - set(content_words(one)) - set(content_words(two))

    def of(name: str) -> list[Evidence]:
        words_of = set(content_words(name))
        return [part for part in evidence if words_of & set(content_words(f"{part.title} {part.text}"))]

    values = [
        [int(year) for part in of(name) for year in re.findall(r"\b1[0-9]\d\d\b|\b20\d\d\b", part.text)]
        for name in (one, two)
    ]
    if all(values) and (LATER.search(question) or EARLIER.search(question)):
        later = bool(LATER.search(question)) and not EARLIER.search(question)
        return one if (min(values[0]) > min(values[1])) == later else two
    fit = [max((len(lead & set(content_words(part.text))) for part in of(name)), default=0) for name in (one, two)]
    return one if fit[0] >= fit[1] else two


def _first(candidates: list[str], question: str) -> str:
    return next((text for text in candidates if text not in question), "")
