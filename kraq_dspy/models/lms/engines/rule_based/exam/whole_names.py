"""Tells a whole name from a piece of one, and how a text leads a name in: "Ten Years" is a piece of "Ten Years After"."""

import re
from functools import lru_cache

from kraq_dspy.language.names import has_capitals
from kraq_dspy.language.vocabulary import OPENERS, STOP

_GOES_ON = re.compile(r" ?[-–] ?\w| [A-Z0-9]| & ")
_LEADS = re.compile(r"(?P<word>[A-Z][\w’'.]*|&) ?[-–]? ?$")
_AFTER_A_NAME = rf"(?=\s*$|[,.;:!?)]|['’]s?\b| (?:{'|'.join(sorted(STOP))})\b)"


def stands_whole(name: str, sentence: str) -> bool:
    """Whether the sentence has the name by itself, and not only as a piece of a longer one.

    Scripts without capitals do not show where a name ends: there it counts wherever it stands.

    >>> stands_whole("Ten Years", "He sang for Ten Years After."), stands_whole("Atari 8", "an Atari 8-bit computer")
    (False, False)
    >>> stands_whole("Atari", "He worked at Atari.")
    True
    """
    if name not in sentence:
        return False
    if not has_capitals(sentence):
        return True
    return any(
        _is_apart(sentence[: match.start()], sentence[match.end() :])
        for match in re.finditer(rf"(?<!\w){re.escape(name)}(?!\w)", sentence)
    )


def _is_apart(before: str, after: str) -> bool:
    """Whether neither the word before nor the one after belongs to the name between them."""
    leading = _LEADS.search(before)
    is_led = leading is not None and leading["word"] not in OPENERS
    return not is_led and _GOES_ON.match(after) is None


@lru_cache(maxsize=4096)
def with_article(name: str, text: str) -> str:
    """Return the name with "the" before it where the text mostly writes it so.

    >>> with_article("Netherlands", "It is in the Netherlands."), with_article("Ada", "The Ada compiler met Ada.")
    ('the Netherlands', 'Ada')
    """
    if name.startswith(("The ", "the ")):
        return name
    led = re.findall(rf"(\b[Tt]he )?(?<!\w){re.escape(name)}{_AFTER_A_NAME}", text)
    return f"the {name}" if led and sum(map(bool, led)) * 2 > len(led) else name
