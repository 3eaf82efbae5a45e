"""Recognizes what people say to a chat that asks nothing: thanks, greetings, a word of assent, in English."""

import re

MOST_WORDS = 8
"""Words of a social turn at most."""

THANKS, GREETING, ASSENT = "thanks", "greeting", "assent"
_KIND_OF = {
    **dict.fromkeys(("thanks", "thank", "thx", "cheers"), THANKS),
    **dict.fromkeys(("hello", "hi", "hey", "goodbye", "bye", "morning", "evening"), GREETING),
    **dict.fromkeys(("ok", "okay", "great", "perfect", "cool", "understood"), ASSENT),
}
_FILLERS = frozenset(
    (
        "you",
        "very",
        "much",
        "so",
        "many",
        "a",
        "lot",
        "that",
        "is",
        "was",
        "for",
        "your",
        "the",
        "help",
        "there",
        "good",
    )
)
_WORD = re.compile(r"\w+(?:['’]\w+)?")
_REPLIES = {
    THANKS: "You are welcome.",
    GREETING: "Hello. Ask a question that the documents may answer.",
    ASSENT: "Good. Ask on whenever you like.",
}


def social_kind(text: str) -> str:
    """THANKS, GREETING or ASSENT for a text that is nothing else; "" for all others, a question among them.

    >>> social_kind("ok great, thank you very much"), social_kind("Thanks! And who owns the mill?")
    ('thanks', '')
    """
    if len(text) > 20 * MOST_WORDS or "?" in text:
        return ""
    words = _WORD.findall(text.casefold())
    kinds = {_KIND_OF[word] for word in words if word in _KIND_OF}
    if len(words) > MOST_WORDS or not all(word in _KIND_OF or word in _FILLERS for word in words):
        return ""
    return next((kind for kind in (THANKS, GREETING, ASSENT) if kind in kinds), "")


def social_reply(kind: str) -> str:
    """What is said in return."""
    return _REPLIES[kind]
