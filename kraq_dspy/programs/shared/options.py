"""Reads options of programs and retrievers, which frozen dataclasses declare, and refuses what does not fit.

@dataclass(frozen=True)
class CombinedOptions:
    k: int = option(15, "Passages in all.", least=1)
"""

from collections.abc import Iterable, Mapping
from typing import Any

from kraq_dspy._internal.options import Option as Option
from kraq_dspy._internal.options import Word as Word
from kraq_dspy._internal.options import option as option
from kraq_dspy._internal.options import options_of as options_of
from kraq_dspy.errors import ConfigError, did_you_mean


def read_options(owner: str, kind: Any, values: Mapping[str, Any]) -> Any:
    """An instance of the dataclass `kind` with the given values, checked.

    Raises ConfigError for an unknown name, a value of another type or out of its range, and a required one that lacks.
    `owner` begins the message: "The program 'combined'".
    """
    known: Mapping[str, Option] = options_of(kind)
    for name in values:
        if name not in known:
            has = f"its options: {', '.join(known)}" if known else "it has none"
            raise ConfigError(f"{owner} has no option {name!r}{did_you_mean(name, known)}; {has}.")
    for each in known.values():
        if each.is_required and each.name not in values:
            raise ConfigError(f"{owner} needs the option {each.name!r}: {each.help}")
    return kind(**{name: known[name].read(owner, value) for name, value in values.items()})


def words_of(flag: str, assignments: Iterable[str]) -> dict[str, Word]:
    """["walk=0.5"] as {"walk": "0.5"}. Raises ConfigError, which names the `flag`, for what is no NAME=VALUE."""
    words = {}
    for assignment in assignments:
        name, separator, value = assignment.partition("=")
        if not separator or not name.strip():
            raise ConfigError(f"{flag} is {assignment!r}; expected NAME=VALUE, such as k=10.")
        words[name.strip().replace("-", "_")] = Word(value)
    return words
