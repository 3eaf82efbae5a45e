"""Lists the words that the embedded model knows by heart, of English before all; they stand in `words.toml`."""

import re
import tomllib
from pathlib import Path
from typing import Any

_WORDS = tomllib.loads(Path(__file__).with_name("words.toml").read_text("utf-8"))

MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
MONTH = f"(?:{'|'.join(MONTHS)})"


def _set(name: str) -> frozenset[str]:
    return frozenset(_WORDS[name].split())


STOP = _set("stop")
OPENERS = _set("openers") | {word.capitalize() for word in STOP}
COMMON = _set("common")
LEADERS = _set("leaders")
POINTING = _set("pointing")
GENERAL = _set("general")
NO_NAMES = _set("no_names")
KIND_OF_NOUN: dict[str, str] = {noun: kind for kind, nouns in _WORDS["nouns"].items() for noun in nouns.split()}
FUNCTION_WORDS = _set("function_words")
FUNCTION_LETTERS = frozenset(_WORDS["function_letters"].strip())
PEOPLE = _set("people") | {noun for noun, kind in KIND_OF_NOUN.items() if kind == "person"}
PROCEDURES = _set("procedures")
GENERIC_HEADINGS = _set("generic_headings") | set(_WORDS["generic_phrases"])
DONE_BY: dict[str, str] = _WORDS["done_by"]
DOES: dict[str, str] = {
    f"{verb[:-1]}ies" if re.search(r"[^aeiou]y$", verb) else f"{verb}{'es' if verb.endswith('go') else 's'}": verb
    for verb in _WORDS["does"].split()
}
LANGUAGES: dict[str, dict[str, Any]] = _WORDS["languages"]
