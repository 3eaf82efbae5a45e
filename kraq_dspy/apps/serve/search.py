"""Searches while somebody types: questions and entities by beginnings of words, passages by words or a retriever."""

import re
from typing import Any

from kraq_dspy.apps.serve.listing import entity_brief, passage_json, question_json
from kraq_dspy.apps.serve.requests import BY_WORDS, KINDS
from kraq_dspy.apps.serve.served import ServedIndex


def search(
    served: ServedIndex, text: str, *, limit: int = 8, kinds: tuple[str, ...] = KINDS, retriever: str = BY_WORDS
) -> dict[str, Any]:
    """What each kind has for the text, best first; nothing for a text without words.

    `retriever` finds the passages. With another one than by words, questions are found by meaning as well.
    """
    answer: dict[str, Any] = {"query": text, **{kind: [] for kind in kinds}}
    words = re.findall(r"\w+", text.casefold())
    if not words:
        return answer
    atlas = served.atlas
    if "questions" in kinds:
        matches = _by_words(words, [(question.text.casefold(), question) for question in atlas.questions], limit)
        if retriever != BY_WORDS and atlas.questions:
            near = [hit.question for hit in served.space.questions()(text, limit)]
            matches = list({question.id: question for question in [*matches[: limit // 2], *near]}.values())[:limit]
        answer["questions"] = [question_json(question) for question in matches]
    if "entities" in kinds:
        names = [(entity.folded, entity) for entity in atlas.entities.values()]
        answer["entities"] = [entity_brief(entity) for entity in _by_words(words, names, limit)]
    if "passages" in kinds:
        hits = served.retriever(retriever)(text, limit)
        if not hits and retriever == BY_WORDS and len(words) > 1:  # the last word is still being typed
            hits = served.retriever(retriever)(" ".join(words[:-1]), limit)
        answer["passages"] = [
            {**passage_json(hit.chunk, atlas), "score": hit.score, "why": hit.why, "query": hit.query} for hit in hits
        ]
    return answer


def _by_words(words: list[str], texts: list[tuple[str, Any]], limit: int) -> list[Any]:
    """Those with all the words, the last one as a beginning; first those that begin so, then in their order."""
    *whole, last = words
    pattern = re.compile("".join(rf"(?=.*\b{re.escape(word)}\b)" for word in whole) + rf".*\b{re.escape(last)}", re.S)
    ranked: list[tuple[bool, Any]] = []
    for folded, thing in texts:
        if last in folded and pattern.match(folded):
            ranked.append((not folded.startswith(words[0]), thing))
            if len(ranked) >= 50 * limit:
                break
    ranked.sort(key=lambda pair: pair[0])
    return [thing for _, thing in ranked[:limit]]
