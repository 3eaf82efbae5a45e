"""Asks in other words than a text: a table of words that people use for those that texts tell facts with."""

import re
import tomllib
from collections.abc import Collection
from pathlib import Path

_TABLE = tomllib.loads(Path(__file__).with_name("other_words.toml").read_text("utf-8"))
OTHER_WORDS: dict[str, str] = {**_TABLE["verbs"], **_TABLE["nouns"], **_TABLE["others"]}
_WORD = re.compile(r"(?:(?<![\w’'-])(?P<article>[Aa])n? )?(?<![\w’'-])(?P<word>[a-z]+)(?![\w’'-])")


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

    return _WORD.sub(put, question)
