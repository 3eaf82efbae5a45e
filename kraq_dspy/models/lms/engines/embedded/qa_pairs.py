"""Makes questions with their answers of passages, and rates such pairs by the words that they share."""

import re

from kraq_dspy.models.lms.engines.embedded.answer import DATE, NUMBER, Similar, short_answer
from kraq_dspy.models.lms.engines.embedded.ask import NOTHING_NAMED, defined_name, is_person, question_about
from kraq_dspy.models.lms.engines.embedded.judge import support
from kraq_dspy.models.lms.engines.embedded.names import names_in
from kraq_dspy.models.lms.engines.embedded.text import clipped, content_words, distinct, parted, sentences

IS = re.compile(r"(?P<verb>is|was|are|were) (?P<what>(?:an?|the|one of the) [^,;()]{3,120}?)(?:[.,;]| \()")
DOES = re.compile(
    r"(?P<rest>(?:wrote|directed|founded|invented|composed|painted|married|designed|played) .{3,120}?)\.$"
)
"""What somebody does, rather than something."""
POINTING = re.compile(
    r"\b(?:the|this|that|these|those|above|following) (?:\w+ )?(?:documents?|texts?|passages?|articles?|sections?|"
    r"tables?|figures?|authors?|papers?|reports?|pages?|chapters?|excerpts?|stud(?:y|ies)|examples?)\b"
    r"|\baccording to (?:the|this)\b|\b(?:mentioned|described|listed|shown) (?:here|above|below|in the)\b"
    r"|\bthis (?!year|month|week|day|century)\w+",
    re.IGNORECASE,
)
DEFINITE = re.compile(r"\bthe (?!(?:most|best|first|last|world|sun|moon|earth|internet)\b)[a-z]\w+", re.IGNORECASE)
PRONOUN = re.compile(r"\b(?:he|she|it|they|him|her|his|hers|its|their|theirs|them|this|these|those)\b", re.IGNORECASE)


def factoid_pair(passage: str, similar: Similar) -> dict[str, str]:
    """From the first sentence that says what a named thing is or what somebody did; else about what is told most."""
    for sentence in sentences(parted(passage)[1]):
        name = next(iter(names_in(sentence, known=frozenset(sentence.split()[:1]))), "")
        after = sentence.removeprefix(name).lstrip() if name else ""
        if not name or not sentence.startswith(name):
            continue
        kind = defined_name(sentence)[2]
        if kind and (stated := IS.match(after)):
            who = "Who" if is_person(kind, sentence, name) else "What"
            return {"question": f"{who} {stated['verb']} {name}?", "answer": stated["what"]}
        if (done := DOES.match(after)) and names_in(done["rest"]) and not PRONOUN.search(done["rest"]):
            return {"question": f"Who {done['rest']}?", "answer": name}
    question = question_about(passage)
    response, _ = short_answer(question, [passage], similar)
    return {"question": question, "answer": response or clipped(passage, 30)}


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


def question_answer_pairs(passage: str) -> list[dict[str, str]]:
    """One pair for each sentence that names something; sentences that do not go on with the answer before them.

    An answer that does not have the title in it begins with the title, so that it stands alone.
    """
    title, body = parted(passage)
    pairs: list[dict[str, str]] = []
    for sentence in distinct(sentences(body)):
        question = question_about(sentence)
        if question == NOTHING_NAMED:
            if pairs:
                pairs[-1]["answer"] += f" {sentence}"
                continue
            question = f"What is told of {title}?" if title else question
        answer = f"{title}: {sentence}" if title and title not in sentence else sentence
        pairs.append({"question": question, "answer": answer})
    return pairs
