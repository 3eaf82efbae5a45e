"""Asks questions of the statements of a passage in German, French, Chinese or Japanese, in its own language."""

import re
from collections.abc import Callable, Mapping, Sequence

from kraq_dspy.embedded.asking.clozes import chinese, french, german, japanese
from kraq_dspy.embedded.asking.clozes.cloze import Cloze
from kraq_dspy.language.text import parted, sentences
from kraq_dspy.language.told import language_of

_TAG = re.compile(r"(?:\\u003C|<)/?[A-Za-z][^<>\\]{0,200}(?:\\u003E|>)")
"""Marks of web pages that stand in a text, in JSON written as numbers."""
LONGEST = 400
"""Characters of a sentence that is read."""


def _each(asked_of: Callable[[str, str], list[Cloze]]) -> Callable[[Sequence[str], str], list[Cloze]]:
    """Asking of every sentence by itself. The title stands for a pronoun where the first sentence begins with it."""

    def asked_in(parts: Sequence[str], title: str) -> list[Cloze]:
        is_about_title = bool(parts) and bool(title) and parts[0].startswith(title)
        return [cloze for part in parts for cloze in asked_of(part, title if is_about_title else "")]

    return asked_in


_ASKING: Mapping[str, Callable[[Sequence[str], str], list[Cloze]]] = {
    "de": _each(german.asked_of),
    "fr": _each(french.asked_of),
    "zh": chinese.asked_in,
    "ja": japanese.asked_in,
}


ASKED_IN = frozenset(_ASKING)
"""The languages whose statements are asked, but for English."""


def clozes_in(passage: str) -> list[Cloze]:
    """Every question that a statement of the passage answers, in reading order; none in other languages.

    >>> [cloze.answer for cloze in clozes_in("Karl Voss baute die Brücke von Brandvik im Jahr 1931.")]
    ['1931', 'Karl Voss']
    """
    title, text = parted(passage)
    text = _TAG.sub("", text.replace("\\n", "\n"))
    asked_in = _ASKING.get(language_of(text))
    if asked_in is None:
        return []
    return asked_in([part for part in sentences(text) if len(part) <= LONGEST], title)
