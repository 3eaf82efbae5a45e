"""Tells a whole name from a piece of one ("Ten Years" of "Ten Years After"), and gives a name its article."""

import re
from functools import lru_cache

from kraq_dspy.embedded.asking.templates import without_asides
from kraq_dspy.embedded.names import has_capitals, is_name, without_words
from kraq_dspy.language.vocabulary import OPENERS, STOP

_GOES_ON = re.compile(r" ?[-–] ?\w| [A-Z0-9]|\. ?[A-Z]| & ")
_LEADS = re.compile(r"(?P<word>[A-Z][\w’'.]{0,60}|&) ?[-–]? ?$")
_OF_A_NATION = re.compile(r"(?:[a-z]an|ish|ese|French|Greek|Dutch|Welsh|Czech|Swiss|Thai)$")
_TOLD_TO_DO = re.compile(
    r"(?:about|add|adjusts?|change|check|choose|click|connect|create|edit|enter|go|how|launch|make|move|open|perform|press"
    r"|read|recording|remove|run|see|select|sets?|turn|use|using|view|watch)\b|\w+ing ",
    re.IGNORECASE,
)
"""First words of headings and menus that say what to do."""
_ODD = re.compile(r"[()]|n['’]t\b| (?:Go|Make|Move|Select|Use)$")
"""What no name has, or has only if the next sentence ran into it."""
_AFTER_A_NAME = rf"(?=\s*$| ?[,.;:!?\"“]| ?['’]s?\b| (?:{'|'.join(sorted(STOP))})\b)"


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
        and not _only_says_of_what_kind(name, sentence[match.end() :])
        for match in re.finditer(rf"(?<!\w){re.escape(name)}(?!\w)", sentence)
    )


def _is_apart(before: str, after: str) -> bool:
    """Whether neither the word before nor the one after belongs to the name between them."""
    leading = _LEADS.search(before)
    is_led = leading is not None and leading["word"] not in OPENERS
    return not is_led and _GOES_ON.match(after) is None


def _only_says_of_what_kind(name: str, after: str) -> bool:
    """Whether the word of a nation or a place stands before what is from there: "Jamaican singer"."""
    following = re.match(r" ([a-z]+)", after)
    return _OF_A_NATION.search(name) is not None and following is not None and following[1] not in STOP


def may_be_asked_about(name: str, text: str) -> bool:
    """Whether a name is that of a thing: no heading that says what to do, no word that the text writes small, too.

    >>> text = "The Smart Hub of Watching TV. Underneath, select VOL."
    >>> [may_be_asked_about(name, text) for name in ("Smart Hub", "VOL", "Watching TV", "Underneath", "Hub Make")]
    [True, True, False, False, False]
    """
    if not has_capitals(name):
        return True
    words = name.split()
    tells_what_to_do = _TOLD_TO_DO.match(name) or _ODD.search(name)
    if tells_what_to_do or not is_name(name) or not without_words([name], text):
        return False
    return len(words) > 1 or _is_used_as_a_name(name, text)


def _is_used_as_a_name(word: str, text: str) -> bool:
    """Whether a word has its capital within a sentence, or is told to be something: no heading, no mere beginning."""
    within_or_told = rf"[\w,;] {re.escape(word)}\b|(?:^|[.!?] ){re.escape(word)} (?:is|are|was|were)\b"
    return re.search(within_or_told, text, re.MULTILINE) is not None


@lru_cache(maxsize=4096)
def with_article(name: str, text: str) -> str:
    """Return the name with "the" before it where the text mostly writes it so.

    >>> with_article("Netherlands", "It is in the Netherlands."), with_article("Ada", "The Ada compiler met Ada.")
    ('the Netherlands', 'Ada')
    """
    if name.startswith(("The ", "the ")):
        return name
    led = re.findall(rf"(\b[Tt]he )?(?<!\w){re.escape(name)}{_AFTER_A_NAME}", without_asides(text))
    return f"the {name}" if led and sum(map(bool, led)) * 2 > len(led) else name
