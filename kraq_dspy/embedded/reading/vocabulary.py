"""Lists the words that the reading of English knows by heart; they stand in `words.toml`."""

import re
import tomllib
from pathlib import Path

from kraq_dspy.language.vocabulary import GENERIC_HEADINGS, PEOPLE

_WORDS = {
    name: frozenset(words.split())
    for name, words in tomllib.loads(Path(__file__).with_name("words.toml").read_text("utf-8")).items()
}

FILLERS = _WORDS["fillers"]
VAGUE = FILLERS | _WORDS["vague"]
BEASTS = _WORDS["beasts"]
FIGURES = PEOPLE | BEASTS | _WORDS["figures"]
FEMALE = _WORDS["female"]
STUDIED = _WORDS["studied"]
INTRANSITIVE = _WORDS["intransitive"]
PHRASES = _WORDS["phrases"]
DETERMINERS = _WORDS["determiners"]
LIGHT = _WORDS["light"]
AT_HAND = _WORDS["at_hand"]
KNOWN = _WORDS["known"]
AFFECTING = _WORDS["affecting"]
CAUSING = frozenset(verb.replace("_", " ") for verb in _WORDS["causing"])
CHANGING = _WORDS["changing"]
USING = _WORDS["using"]
SHARING = _WORDS["sharing"]
KEEPING = _WORDS["keeping"]
UNASKED = _WORDS["unasked"]
TELLING = _WORDS["telling"]
SHOWING = _WORDS["showing"]

SECTIONS = _WORDS["sections"] | GENERIC_HEADINGS
_NUMBER = re.compile(r"(?<![\s#.])[\s#.]++\d+[a-z]?$|(?<![\s#.\d])\d+[a-z]?$|:$")


def names_a_part(name: str) -> bool:
    """Whether a name is that of a part of a text, and of nothing that the text tells.

    >>> [name for name in ("Description", "Meeting 11", "Report 44", "Apollo 11") if names_a_part(name)]
    ['Description', 'Meeting 11', 'Report 44']
    """
    return _NUMBER.sub("", name.strip()).casefold() in SECTIONS
