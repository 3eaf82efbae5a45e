"""Puts a question in other words, and in its parts."""

import re
import tomllib
from collections.abc import Collection
from pathlib import Path

from kraq_dspy.embedded.names import names_in
from kraq_dspy.language.text import WORD, sentences, words
from kraq_dspy.language.vocabulary import STOP

CLAUSE = re.compile(
    r"(?:,? and|;|,)\s+(?=(?:who|what|which|when|where|why|how|in what|in which)\b)|(?<=\?)\s+", re.IGNORECASE
)
EITHER = re.compile(
    r"^(?P<lead>.*?\b(?:who|which|what|whose)\b[^,:]*?)[,:] (?P<a>[A-Z0-9\"“][^,?]*?),? or (?P<b>[^?]+)\?$",
    re.IGNORECASE,
)

LONG = 20  # words
LONGEST_COMPARISON = 400  # characters of a question that compares two things
_TABLE = tomllib.loads(Path(__file__).with_name("other_words.toml").read_text("utf-8"))
"""Words that people use for those that texts tell facts with."""
OTHER_WORDS: dict[str, str] = {**_TABLE["verbs"], **_TABLE["nouns"], **_TABLE["others"]}
_WORD_WITH_ARTICLE = re.compile(r"(?:(?<![\w’'-])(?P<article>[Aa])n? )?(?<![\w’'-])(?P<word>[a-z]+)(?![\w’'-])")


def keywords(question: str) -> list[str]:
    """Names in full, then the other words that carry meaning, in order."""
    names = names_in(question)
    named = {word for name in names for word in words(name)}
    rest = [word for word in WORD.findall(question) if word.lower() not in STOP and word.lower() not in named]
    return list(dict.fromkeys([*names, *rest]))


def said_once(question: str) -> str:
    """The question as it is, but no sentence a second time: a reply that repeats itself is taken for a loop.

    >>> said_once("Who made it? Who made it? Who made it?")
    'Who made it?'
    """
    parts = sentences(question)
    once = dict.fromkeys(parts)
    return question if len(once) == len(parts) else " ".join(once)


def rephrased(question: str, count: int, most_characters: int = 0) -> list[str]:
    """Return up to `count` other wordings of the question; with a limit, those are cut after the
    last word that fits."""
    plain, words_of = question.strip(" ?"), keywords(question)
    if most_characters:
        texts = [" ".join(words_of[:6]), " ".join(words_of), plain]
        wordings = [
            text if len(text) <= most_characters else text[: most_characters + 1].rpartition(" ")[0] for text in texts
        ]
    else:
        wordings = [f"Do you know {plain[:1].lower()}{plain[1:]}?", f"{' '.join(words_of)}?", f"{plain}, please?"]
    return [text for text in dict.fromkeys(wordings) if text and text != question.strip()][:count]


def varied(question: str, count: int) -> list[str]:
    """Return up to `count` searches: the question's parts, its keywords, and what it names."""
    parts = sub_questions(question)
    searches = [*(parts if len(parts) > 1 else []), " ".join(keywords(question)), core(question), *names_in(question)]
    return list(dict.fromkeys(text for text in searches if text))[:count]


def core(question: str) -> str:
    """The names and the first words that carry meaning, six at most."""
    return " ".join(keywords(question)[:6])


def rewritings(question: str) -> list[str]:
    """Return those of DMQR-RAG that fit how the question looks."""
    if len(words(question)) > LONG:
        return ["core"]
    return ["keywords"] if len(names_in(question)) > 1 else []


def sub_questions(question: str) -> list[str]:
    """The clauses that each ask something by name, or a choice of two as a question about each; else the question."""
    either = EITHER.match(question.strip()) if len(question) <= LONGEST_COMPARISON else None
    if either:
        return [f"{either['lead']}: {either[side].strip(' “”' + chr(34))}?" for side in ("a", "b")]
    parts = [part.strip(" ,;") for part in CLAUSE.split(question)]
    if len(parts) < 2 or not all(names_in(part.partition(" ")[2]) for part in parts):
        return [question.strip()]
    return [f"{part[:1].upper()}{part[1:].rstrip('?')}?" for part in parts]


def in_other_words(question: str, avoid: Collection[str]) -> str:
    """Return the question with other words for those of `avoid` that the table has; as it is where it has none of them.

    Names and numbers stay. Each word is put for one of the same form, so the sentence stays whole.

    >>> in_other_words("When was the film directed by Tim Burton released?", ["film", "directed", "released"])
    'When was the movie directed by Tim Burton released?'
    """
    avoided = {word.lower() for word in avoid}

    def put(match: re.Match[str]) -> str:
        word, article = match["word"], match["article"]
        if word not in avoided or word not in OTHER_WORDS:
            return match[0]
        other = OTHER_WORDS[word]
        if article is None:
            return other
        return f"{article}{'n' if other[0] in 'aeio' else ''} {other}"

    return _WORD_WITH_ARTICLE.sub(put, question)
