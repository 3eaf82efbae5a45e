"""Lists the words that the reading of English knows by heart; they stand in `words.toml`."""

import tomllib
from pathlib import Path

from kraq_dspy.language.vocabulary import PEOPLE

_WORDS = {
    name: frozenset(words.split())
    for name, words in tomllib.loads(Path(__file__).with_name("words.toml").read_text("utf-8")).items()
}

FILLERS = _WORDS["fillers"]
VAGUE = FILLERS | _WORDS["vague"]
POINTING = _WORDS["pointing"]
FIGURES = PEOPLE | _WORDS["figures"]
STUDIED = _WORDS["studied"]
INTRANSITIVE = _WORDS["intransitive"]
PHRASES = _WORDS["phrases"]
DETERMINERS = _WORDS["determiners"]
