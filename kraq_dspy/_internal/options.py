"""Declares options in dataclasses, each once, and checks values against them: settings, options of programs, arguments.

Settings are classes with `@checked`; their bounds stand in the annotations:

    >>> @checked("chunks")
    ... class ChunkSettings:
    ...     tokens: Positive = 300
    >>> ChunkSettings(tokens=-5)
    Traceback (most recent call last):
    kraq_dspy.errors.ConfigError: chunks.tokens is -5; it must be a whole number, 1 or more.

Options of programs and retrievers are fields made by `option`, which also hold what the command line says of them:

    >>> @dataclasses.dataclass(frozen=True)
    ... class CombinedOptions:
    ...     k: int = option(15, "Passages in all.", least=1)
    >>> options_of(CombinedOptions)["k"].expected
    'a whole number, 1 or more'
"""

import dataclasses
import difflib
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from numbers import Real
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, dataclass_transform, get_args, get_origin, get_type_hints

from pydantic import TypeAdapter

from kraq_dspy.errors import ConfigError

T = TypeVar("T")


@dataclasses.dataclass(frozen=True, slots=True)
class Bounds:
    """The range of a number: from `least` to `most`."""

    least: float | None = None
    most: float | None = None

    def hold(self, number: float) -> bool:
        return (self.least is None or number >= self.least) and (self.most is None or number <= self.most)

    def __str__(self) -> str:
        """Write the bounds as "1 or more" or "from 0 to 1"; empty without bounds."""
        if self.least is None:
            return ""
        return f"{self.least:g} or more" if self.most is None else f"from {self.least:g} to {self.most:g}"


Positive = Annotated[int, Bounds(least=1)]
Count = Annotated[int, Bounds(least=0)]
NotNegative = Annotated[float, Bounds(least=0)]
Share = Annotated[float, Bounds(least=0, most=1)]


@dataclasses.dataclass(frozen=True, slots=True)
class OneOf:
    """Marks a text that is one of a few: `precision: Annotated[str, OneOf(("auto", "fp32"))]`."""

    values: tuple[str, ...]


class Word(str):
    """A value as it stands on a command line; `Option.read` turns it into what the option holds."""


_WORDS: dict[Any, str] = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}


@dataclasses.dataclass(frozen=True, slots=True)
class Option:
    """One option as it was declared. `kinds` are the types that it takes;
    `counts` says of what in an index it takes so many: "passages", "questions", "reports" or "levels"."""

    name: str
    kinds: tuple[Any, ...]
    default: Any
    help: str
    bounds: Bounds
    choices: tuple[Any, ...]
    counts: str

    @property
    def is_required(self) -> bool:
        return self.default is dataclasses.MISSING

    @property
    def takes(self) -> str:
        """Type, range and choices in words: "a whole number, 1 or more"."""
        words = " or ".join(_WORDS.get(kind, kind.__name__) for kind in self._free_kinds if kind is not NoneType)
        words += f"{' ' if self.bounds.most is not None else ', '}{self.bounds}" if str(self.bounds) else ""
        if self.choices:
            listed = ", ".join(map(str, self.choices))
            words = f"{words}, or {listed}" if words else f"one of {listed}"
        return words

    @property
    def expected(self) -> str:
        """This is `takes`, with "or none" where nothing may be given."""
        return f"{self.takes}, or none" if NoneType in self.kinds else self.takes

    @property
    def _free_kinds(self) -> tuple[Any, ...]:
        """The types of which any value fits, not `choices` alone."""
        return tuple(kind for kind in self.kinds if kind not in map(type, self.choices))

    def fits(self, value: Any) -> bool:
        if value in self.choices:
            return True
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return any(_is_of(value, kind) for kind in self._free_kinds) and (not is_number or self.bounds.hold(value))

    def read(self, owner: str, value: Any) -> Any:
        """The value in its type. Raises ConfigError that names `owner` and the option."""
        read = self.converted(self._from_text(value) if isinstance(value, Word) else value)
        if not self.fits(read):
            shown = str(value) if isinstance(value, Word) else repr(value)
            raise ConfigError(f"{owner}: the option {self.name!r} is {shown}; expected {self.expected}.")
        return read

    def converted(self, value: Any) -> Any:
        """A whole number as a number where the option takes that alone."""
        return float(value) if float in self.kinds and type(value) is int and int not in self.kinds else value

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


def _is_of(value: Any, kind: Any) -> bool:
    if kind is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if kind in (int, bool):
        return type(value) is kind
    if get_origin(kind) is dict:
        return isinstance(value, dict) and all(isinstance(one, get_args(kind)[1]) for one in value.values())
    return isinstance(value, kind)


def option(
    default: Any = dataclasses.MISSING,
    help: str = "",
    *,
    least: float | None = None,
    most: float | None = None,
    counts: str = "",
) -> Any:
    """A field of a dataclass of options: `k: int = option(15, "Passages in all.", least=1)`.

    Numbers below `least` or above `most` are refused; `counts` as in `Option`.

    >>> option(15, "Passages in all.", least=1).default
    15
    """
    facts = {"help": help, "bounds": Bounds(least, most), "counts": counts}
    return dataclasses.field(default=default, metadata=facts)


def options_of(kind: Any) -> Mapping[str, Option]:
    """The options of a dataclass by name, in their order."""
    return _declared(kind)


@functools.cache
def _declared(kind: Any) -> Mapping[str, Option]:
    hints = get_type_hints(kind, include_extras=True)
    declared = {}
    for field in dataclasses.fields(kind):
        facts = field.metadata or option().metadata
        kinds, marks = _parts(hints[field.name])
        choices = [value for part in kinds if get_origin(part) is Literal for value in get_args(part)]
        choices += [value for mark in marks if isinstance(mark, OneOf) for value in mark.values]
        plain = [part for part in kinds if get_origin(part) is not Literal]
        declared[field.name] = Option(
            field.name,
            (*plain, *dict.fromkeys(type(each) for each in choices if type(each) not in plain)),
            field.default,
            facts["help"],
            next((mark for mark in marks if isinstance(mark, Bounds)), facts["bounds"]),
            tuple(choices),
            facts["counts"],
        )
    return declared


def _parts(annotation: Any) -> tuple[list[Any], list[Any]]:
    """The types of which one may be, and what is marked on them: `Positive | None` has its bounds inside."""
    if get_origin(annotation) in (Union, UnionType):
        parts = [_parts(each) for each in get_args(annotation)]
        return [kind for kinds, _ in parts for kind in kinds], [mark for _, marks in parts for mark in marks]
    if get_origin(annotation) is Annotated:
        inner, *marks = get_args(annotation)
        kinds, others = _parts(inner)
        return kinds, [*marks, *others]
    return [annotation], []


@dataclass_transform(frozen_default=True, field_specifiers=(dataclasses.field,))
def checked(section: str = "") -> Callable[[type[T]], type[T]]:
    """Makes a frozen dataclass whose values are checked: types are strict (no text for a number), and what
    does not fit is a ConfigError. `section` is put before the name of each key: "chunks.tokens is -5; ..."."""

    def decorate(cls: type[T]) -> type[T]:
        made: Any = dataclasses.dataclass(frozen=True)(cls)
        plain = made.__init__

        @functools.wraps(plain)
        def check_and_set(self: Any, *values: Any, **named: Any) -> None:
            options = options_of(made)
            if len(values) > len(options):
                raise TypeError(f"{cls.__name__} takes {len(options)} values, not {len(values)}.")
            given = {**dict(zip(options, values, strict=False)), **named}
            plain(self, **dict(_checked(section, options, given)))

        made.__init__ = check_and_set
        return made  # type: ignore[no-any-return]

    return decorate


def _checked(section: str, options: Mapping[str, Option], given: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, value in given.items():
        name = f"{section}.{key}" if section else key
        if key not in options:
            raise ConfigError(f"{name} is not known; {suggestion(key, options)}")
        read = options[key].converted(value)
        if not options[key].fits(read):
            raise ConfigError(f"{name} is {value!r}; it must be {options[key].takes}.")
        yield key, read


@cache
def type_adapter(kind: Any) -> TypeAdapter[Any]:
    """Return what checks, reads and writes values of a type; to make one costs more than to use
    it."""
    return TypeAdapter(kind)


def require_counts(of: str = "", **counts: int) -> None:
    """Raises TypeError for a count that is no whole number, ValueError for one below 1; both name it."""
    for name, count in counts.items():
        if not isinstance(count, int) or isinstance(count, bool):
            raise TypeError(
                f"{name} is {count!r:.80} ({type(count).__name__}); expected a whole number{of and ' of '}{of}."
            )
        if count < 1:
            raise ValueError(f"{name} is {count}; expected 1 or more{of and ' '}{of}.")


def require_between(least: float, most: float, expected: str, /, **numbers: float) -> None:
    """Raises TypeError for what is no number, ValueError for one out of the range; both name it."""
    for name, number in numbers.items():
        if not isinstance(number, Real) or isinstance(number, bool):  # NumPy's too
            raise TypeError(f"{name} is {number!r:.80} ({type(number).__name__}); expected a number.")
        if not least <= number <= most:
            raise ValueError(f"{name} is {number}; expected {expected}.")


def suggestion(name: str, known: Iterable[str]) -> str:
    """The end of a message about an unknown name: "did you mean 'tokens'?", or all that are known."""
    known = list(known)
    near = difflib.get_close_matches(name, known, n=1)
    return f"did you mean {near[0]!r}?" if near else f"known: {', '.join(known)}."
