"""Finds questions, entities and passages for what somebody types."""

import re
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from kraq_dspy.apps.serve.replies import Found
from kraq_dspy.apps.serve.requests import BY_WORDS, KINDS
from kraq_dspy.apps.serve.served import ServedIndex

T = TypeVar("T")


def with_words(items: Iterable[T], q: str, text: Callable[[T], str]) -> list[T]:
    """Return those whose `text` has every word of `q`, in small or capital letters."""
    words = q.casefold().split()
    return [each for each in items if all(word in text(each).casefold() for word in words)]


def search(
    served: ServedIndex, text: str, *, limit: int, kinds: tuple[str, ...] = KINDS, retriever: str = BY_WORDS
) -> Found:
    """Return what each kind has for the text, best first; nothing for a text without words.

    `retriever` finds the passages. With another one than by words, questions are found by meaning as well.
    """
    answer: dict[str, Any] = {"query": text, **{kind: [] for kind in kinds}}
    words = re.findall(r"\w+", text.casefold())
    if not words:
        return Found(**answer)

    atlas = served.atlas
    if "questions" in kinds:
        matches = _by_words(words, atlas.questions, lambda question: question.text, limit)
        if retriever != BY_WORDS and atlas.questions:
            near = [hit.question for hit in served.space.questions()(text, limit)]
            matches = list({question.id: question for question in [*matches[: limit // 2], *near]}.values())[:limit]
        answer["questions"] = list(map(atlas.question, matches))

    if "entities" in kinds:
        answer["entities"] = _by_words(words, atlas.entities.values(), lambda entity: entity.name, limit)
    if "passages" in kinds:
        hits = served.retriever(retriever)(text, limit)
        if not hits and retriever == BY_WORDS and len(words) > 1:  # the last word is still being typed
            hits = served.retriever(retriever)(" ".join(words[:-1]), limit)
        answer["passages"] = list(map(atlas.found, hits))
    return Found(**answer)


def _by_words(words: list[str], items: Iterable[T], text: Callable[[T], str], limit: int) -> list[T]:
    """Return those with all the words, the last one as a beginning; first those that begin so, then
    in their order."""
    *whole, last = words
    has_each_word = "".join(rf"(?=.*\b{re.escape(word)}\b)" for word in whole)
    pattern = re.compile(rf"{has_each_word}.*\b{re.escape(last)}", re.S)

    ranked: list[tuple[bool, Any]] = []
    for item in items:
        folded = text(item).casefold()
        if last in folded and pattern.match(folded):
            ranked.append((not folded.startswith(words[0]), item))
            if len(ranked) >= 50 * limit:
                break

    ranked.sort(key=lambda pair: pair[0])
    return [item for _, item in ranked[:limit]]
