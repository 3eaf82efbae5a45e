"""Reads options of programs and retrievers, which frozen dataclasses declare, and refuses what does not fit.

@dataclass(frozen=True)
class CombinedOptions:
    k: int = option(15, "Passages in all.", least=1)
"""

import dataclasses
from collections.abc import Iterable, Mapping
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from kraq_dspy.errors import ConfigError, did_you_mean


class Word(str):
    """A value as it stands on a command line; `read_options` turns it into what the option holds."""


@dataclasses.dataclass(frozen=True, slots=True)
class Option:
    """One option as it was declared. `flag` is how the command line spells it; `kinds` are the types that it takes;
    `counts` says of what in an index it takes so many: "passages", "questions", "reports" or "levels"."""

    name: str
    kinds: tuple[Any, ...]
    default: Any
    help: str
    least: float | None
    most: float | None
    choices: tuple[Any, ...]
    flag: str
    counts: str

    @property
    def is_required(self) -> bool:
        return self.default is dataclasses.MISSING

    @property
    def expected(self) -> str:
        """In words: "a whole number, 1 or more"."""
        names = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}
        words = " or ".join(names[kind] for kind in self._free_kinds if kind is not NoneType)
        if self.least is not None and self.most is not None:
            words += f" from {self.least:g} to {self.most:g}"
        elif self.least is not None:
            words += f", {self.least:g} or more"
        if self.choices:
            listed = ", ".join(map(str, self.choices))
            words = f"{words}, or {listed}" if words else f"one of {listed}"
        return f"{words}, or none" if NoneType in self.kinds else words

    @property
    def _free_kinds(self) -> tuple[Any, ...]:
        """The types of which any value fits, not `choices` alone."""
        return tuple(kind for kind in self.kinds if kind not in map(type, self.choices))

    def read(self, owner: str, value: Any) -> Any:
        """The value in its type. Raises ConfigError that names `owner` and the option."""
        read = self._from_text(value) if isinstance(value, Word) else value
        if float in self.kinds and type(read) is int:
            read = float(read)
        fits = type(read) in self._free_kinds or read in self.choices
        if fits and isinstance(read, int | float) and not isinstance(read, bool):
            fits = (self.least is None or read >= self.least) and (self.most is None or read <= self.most)
        if not fits:
            shown = str(value) if isinstance(value, Word) else repr(value)
            raise ConfigError(f"{owner}: the option {self.name!r} is {shown}; expected {self.expected}.")
        return read

    def _from_text(self, text: str) -> Any:
        """The text itself where it is no value of the option."""
        plain = text.strip()
        if plain.lower() == "none" and NoneType in self.kinds:
            return None
        if bool in self.kinds:
            return {"true": True, "yes": True, "false": False, "no": False}.get(plain.lower(), plain)
        for kind in (int, float):
            if kind in self.kinds:
                try:
                    return kind(plain)
                except ValueError:
                    continue
        return str(text)


def option(
    default: Any = dataclasses.MISSING,
    help: str = "",
    *,
    least: float | None = None,
    most: float | None = None,
    flag: str = "",
    counts: str = "",
) -> Any:
    """A field of a dataclass of options. Numbers below `least` or above `most` are refused; `flag` is the command
    line's word for it where that is not the field's name; `counts` as in `Option`."""
    facts = {"help": help, "least": least, "most": most, "flag": flag, "counts": counts}
    return dataclasses.field(default=default, metadata=facts)


@cache
def options_of(kind: Any) -> Mapping[str, Option]:
    """The options of a dataclass by name, in their order."""
    hints = get_type_hints(kind)
    declared = {}
    for field in dataclasses.fields(kind):
        hint, facts = hints[field.name], field.metadata or option().metadata
        parts = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
        choices = tuple(value for part in parts if get_origin(part) is Literal for value in get_args(part))
        kinds = tuple(part for part in parts if get_origin(part) is not Literal) + tuple(
            {type(each) for each in choices}
        )
        flag = facts["flag"] or f"--{field.name.replace('_', '-')}"
        declared[field.name] = Option(field.name, kinds, field.default, choices=choices, **{**facts, "flag": flag})
    return declared


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
