"""Declares options in dataclasses, each once; pydantic checks values against them, this file says what it finds.

Settings derive from `Checked`; their ranges stand in the annotations:

    >>> @dataclasses.dataclass(frozen=True)
    ... class ChunkSettings(Checked):
    ...     section = "chunks"
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
from collections.abc import Mapping
from functools import cache, cached_property
from types import NoneType, UnionType
from typing import Annotated, Any, ClassVar, Literal, Union, get_args, get_origin, get_type_hints

from annotated_types import Ge, Le
from pydantic import TypeAdapter, ValidationError

from kraq_dspy.errors import ConfigError

Positive = Annotated[int, Ge(1)]
Count = Annotated[int, Ge(0)]
NotNegative = Annotated[float, Ge(0)]
Share = Annotated[float, Ge(0), Le(1)]


@dataclasses.dataclass(frozen=True, slots=True)
class OneOf:
    """Marks a text that is one of a few which stand in a tuple: `device: Annotated[str, OneOf(DEVICES)]`."""

    values: tuple[str, ...]


class Word(str):
    """A value as it stands on a command line; `Option.read` turns it into what the option holds."""


_WORDS: dict[Any, str] = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}


@dataclasses.dataclass(frozen=True)
class Option:
    """One option as it was declared. `kinds` are the types of which any value fits within the bounds, `choices` the
    values that fit beside them. `counts` says of what in an index it takes so many: "passages", "questions", "reports"
    or "levels"."""

    name: str
    kinds: tuple[Any, ...]
    choices: tuple[Any, ...]
    default: Any
    help: str = ""
    least: float | None = None
    most: float | None = None
    counts: str = ""

    @property
    def is_required(self) -> bool:
        return self.default is dataclasses.MISSING

    @property
    def takes(self) -> str:
        """Type, range and choices in words: "a whole number, 1 or more"."""
        words = " or ".join(_WORDS.get(kind, kind.__name__) for kind in self.kinds if kind is not NoneType)
        if self.most is not None:
            words += f" from {self.least:g} to {self.most:g}"
        elif self.least is not None:
            words += f", {self.least:g} or more"

        if not self.choices:
            return words
        listed = ", ".join(map(str, self.choices))
        return f"{words}, or {listed}" if words else f"one of {listed}"

    @property
    def expected(self) -> str:
        """This is `takes`, with "or none" if nothing may be given."""
        return f"{self.takes}, or none" if NoneType in self.kinds else self.takes

    def is_default(self, value: Any) -> bool:
        """Whether the value is the declared one; `True` is not 1."""
        return type(value) is type(self.default) and bool(value == self.default)

    def checked(self, value: Any) -> Any:
        """The value, a whole number as a number if that is asked for. Raises ValueError for one that does not fit;
        a text is no number here."""
        if dataclasses.is_dataclass(value) and type(value) in self.kinds:
            return value  # checked when it was made
        return self._adapter.validate_python(value, strict=True)

    def require(self, argument: str, value: Any) -> None:
        """Check an argument of a constructor. Raises TypeError for a value of another type and ValueError for one out
        of the range; both name the `argument`."""
        if self.is_default(value):
            return  # most are
        try:
            self.checked(value.item() if hasattr(value, "item") else value)  # a number of NumPy's as one of Python's
        except ValidationError as error:
            aside = f": {self.help[0].lower()}{self.help[1:].rstrip('.')}" if self.help else ""
            expected = f"expected {self.expected}{aside}."
            if any(fault["type"] in _OUT_OF_RANGE for fault in error.errors()):
                raise ValueError(f"{argument} is {value}; {expected}") from None
            raise TypeError(f"{argument} is {value!r:.80} ({type(value).__name__}); {expected}") from None

    def read(self, owner: str, value: Any) -> Any:
        """The value in its type, of a `Word` too. Raises ConfigError that names `owner` and the option."""
        try:
            return self._of_word(value) if isinstance(value, Word) else self.checked(value)
        except ValidationError:
            shown = str(value) if isinstance(value, Word) else repr(value)
            raise ConfigError(f"{owner}: the option {self.name!r} is {shown}; expected {self.expected}.") from None

    def _of_word(self, word: Word) -> Any:
        if NoneType in self.kinds and word.strip().lower() == "none":
            return None
        return self._adapter.validate_strings(str(word), strict=True)

    @cached_property
    def _adapter(self) -> TypeAdapter[Any]:
        bounds: list[Ge | Le] = []
        if self.least is not None:
            bounds.append(Ge(self.least))
        if self.most is not None:
            bounds.append(Le(self.most))

        fitting: list[Any] = [Literal[self.choices]] if self.choices else []
        for kind in self.kinds:
            fitting.append(Annotated[kind, *bounds] if bounds and kind in (int, float) else kind)
        return type_adapter(Union[*fitting])


def option(
    default: Any = dataclasses.MISSING,
    help: str = "",
    *,
    least: float | None = None,
    most: float | None = None,
    counts: str = "",
) -> Any:
    """Declare a field of a dataclass of options: `k: int = option(15, "Passages in all.", least=1)`.

    Args:
        default: the default value; an option without a default is required.
        help: what the option does, for help and reference.
        least: the least number allowed.
        most: the largest number allowed.
        counts: the noun that a number counts, for messages (`Option`).

    Returns:
        The field.

    >>> option(15, "Passages in all.", least=1).default
    15
    """
    about = {"help": help, "least": least, "most": most, "counts": counts}
    return dataclasses.field(default=default, metadata=about)


def options_of(declared: Any) -> Mapping[str, Option]:
    """The options of a dataclass by name, in their order."""
    return _declared(declared)


def require_options(declared: Any, /, **values: Any) -> None:
    """Check arguments of a constructor against the options that `declared` has of these names: each range stands once.

    Raises TypeError for a value of another type and ValueError for one out of the range; both name the argument and say
    what is expected.

    >>> @dataclasses.dataclass(frozen=True)
    ... class CombinedOptions:
    ...     k: int = option(15, "Passages in all.", least=1)
    >>> require_options(CombinedOptions, k=0)
    Traceback (most recent call last):
    ValueError: k is 0; expected a whole number, 1 or more: passages in all.
    """
    known = options_of(declared)
    for name, value in values.items():
        known[name].require(name, value)


_OUT_OF_RANGE = frozenset(("greater_than_equal", "less_than_equal", "literal_error", "finite_number"))


@cache
def _declared(declared: Any) -> Mapping[str, Option]:
    hints = get_type_hints(declared, include_extras=True)
    return {field.name: _option_of(field, hints[field.name]) for field in dataclasses.fields(declared)}


def _option_of(field: "dataclasses.Field[Any]", annotation: Any) -> Option:
    kinds: list[Any] = []
    choices: list[Any] = []
    about = dict(field.metadata)
    for part, marks in _parts(annotation):
        listed = next((mark.values for mark in marks if isinstance(mark, OneOf)), ())
        if get_origin(part) is Literal:
            listed = get_args(part)
        choices += listed
        kinds += [] if listed else [part]

        for mark in marks:
            if isinstance(mark, Ge):
                about["least"] = mark.ge
            elif isinstance(mark, Le):
                about["most"] = mark.le
    return Option(field.name, tuple(kinds), tuple(choices), field.default, **about)


def _parts(annotation: Any) -> list[tuple[Any, tuple[Any, ...]]]:
    """The types of which one may be, each with what is marked on it: `Positive | None` is two."""
    if get_origin(annotation) in (Union, UnionType):
        return [part for each in get_args(annotation) for part in _parts(each)]
    if get_origin(annotation) is Annotated:
        kind, *marks = get_args(annotation)
        return [(part, (*inner, *marks)) for part, inner in _parts(kind)]
    return [(annotation, ())]


@dataclasses.dataclass(frozen=True)
class Checked:
    """Checks the values of a frozen dataclass that derives from it: types are strict (no text for a number), and what
    does not fit is a ConfigError. `section` is put before the name of each key: "chunks.tokens is -5; ..."."""

    section: ClassVar[str] = ""

    def __post_init__(self) -> None:
        for name, each in options_of(type(self)).items():
            value = getattr(self, name)
            if each.is_default(value):
                continue  # most are, and a first check of a type costs milliseconds
            try:
                object.__setattr__(self, name, each.checked(value))
            except ValidationError:
                key = f"{self.section}.{name}" if self.section else name
                raise ConfigError(f"{key} is {value!r}; it must be {each.takes}.") from None


@cache
def type_adapter(kind: Any) -> TypeAdapter[Any]:
    """What checks, reads and writes values of a type; to make one costs more than to use it."""
    return TypeAdapter(kind)
