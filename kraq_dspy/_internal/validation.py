"""Checks the fields of frozen dataclasses with pydantic, and says what is wrong in one line of the user's words.

@checked("chunks")
class ChunkSettings:
    tokens: Positive = 300

ChunkSettings(tokens=-5)  # ConfigError: chunks.tokens is -5; it must be 1 or more.
ChunkSettings(token=5)  # ConfigError: chunks.token is not known; did you mean 'tokens'?
"""

import dataclasses
import difflib
import math
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from numbers import Real
from types import NoneType, UnionType
from typing import Annotated, Any, TypeVar, Union, dataclass_transform, get_args, get_origin

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError, model_validator
from pydantic.dataclasses import dataclass
from pydantic.fields import FieldInfo
from pydantic_core import core_schema

from kraq_dspy.errors import ConfigError

Positive = Annotated[int, Field(ge=1)]
NotNegative = Annotated[float, Field(ge=0)]
AboveZero = Annotated[float, Field(gt=0)]
Share = Annotated[float, Field(ge=0, le=1)]

T = TypeVar("T")


@dataclasses.dataclass(frozen=True)
class OneOf:
    """Marks a text that is one of a few: `precision: Annotated[str, OneOf(("auto", "fp32"))]`."""

    values: tuple[str, ...]

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> core_schema.CoreSchema:
        return core_schema.literal_schema(list(self.values))


class Joined:
    """Marks a text that may be given as a list of texts, which are joined with commas."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> core_schema.CoreSchema:
        return core_schema.no_info_before_validator_function(_joined, handler(source))


def _joined(value: Any) -> Any:
    is_list = isinstance(value, list | tuple) and value and all(isinstance(text, str) for text in value)
    return ",".join(value) if is_list else value


_WORDS: dict[Any, str] = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}


@dataclass_transform(frozen_default=True, field_specifiers=(Field, dataclasses.field))
def checked(section: str = "") -> Callable[[type[T]], type[T]]:
    """Makes a frozen dataclass with slots; its types are strict (no text for a number), its errors ConfigErrors.

    `section` is put before the name of each key: "chunks.tokens is -5; ...".
    """

    def decorate(cls: type[T]) -> type[T]:
        def translate(_: type[T], value: Any, validate: Callable[[Any], T]) -> T:
            try:
                return validate(value)
            except ValidationError as error:
                if not error.errors()[0]["loc"]:  # not a field but the whole is wrong: for whoever holds it to say
                    raise
                raise ConfigError(_in_plain_words(validated, section, error)) from None

        as_validator: Any = classmethod(translate)
        cls._translate = model_validator(mode="wrap")(as_validator)  # type: ignore[attr-defined]
        validated: Any = dataclass(
            frozen=True, slots=True, config=ConfigDict(strict=True, extra="forbid", defer_build=True)
        )(cls)
        return validated  # type: ignore[no-any-return]

    return decorate


@cache
def type_adapter(kind: Any) -> TypeAdapter[Any]:
    """What checks, reads and writes values of a type; to make one costs more than to use it."""
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


def require_numbers(**numbers: float) -> None:
    """Raises TypeError for what is no number; the message names it."""
    for name, number in numbers.items():
        if not isinstance(number, Real) or isinstance(number, bool):  # NumPy's too
            raise TypeError(f"{name} is {number!r:.80} ({type(number).__name__}); expected a number.")


def require_between(least: float, most: float, expected: str, /, **numbers: float) -> None:
    """Raises TypeError for what is no number, ValueError for one out of the range; both name it."""
    require_numbers(**numbers)
    for name, number in numbers.items():
        if not least <= number <= most:
            raise ValueError(f"{name} is {number}; expected {expected}.")


def require_share(of: str, /, **shares: float) -> None:
    """As `require_between`, for a number above 0 and at most 1."""
    require_between(math.ulp(0.0), 1, f"{of}, above 0 and at most 1", **shares)


def suggestion(name: str, known: Iterable[str]) -> str:
    """The end of a message about an unknown name: "did you mean 'tokens'?", or all that are known."""
    known = list(known)
    near = difflib.get_close_matches(name, known, n=1)
    return f"did you mean {near[0]!r}?" if near else f"known: {', '.join(known)}."


def fields_of(cls: type) -> dict[str, FieldInfo]:
    """The fields of a checked class, with their types, defaults and bounds."""
    fields: dict[str, FieldInfo] = cls.__pydantic_fields__  # type: ignore[attr-defined]
    return fields


def type_in_words(field: FieldInfo) -> str:
    """What a field takes, as "a whole number" or '"auto", "fp32" or "bf16"'."""
    for mark in field.metadata:
        if isinstance(mark, OneOf):
            *others, last = [f'"{value}"' for value in mark.values]
            return f"{', '.join(others)} or {last}"
        if isinstance(mark, Joined):
            return "text, or a list of texts"
    kinds = [each for each in _alternatives(field.annotation) if each is not NoneType]
    return " or ".join(_WORDS.get(kind, getattr(kind, "__name__", str(kind))) for kind in kinds)


def bounds_in_words(field: FieldInfo) -> str:
    """The range of a field, as "1 or more" or "from 0 to 1"; empty where it has none."""
    bounds: dict[str, float] = {}
    for mark in [*field.metadata, *_marks(field.annotation)]:
        bounds |= {name: getattr(mark, name) for name in ("ge", "gt", "le", "lt") if hasattr(mark, name)}
    match bounds:
        case {"ge": low, "le": high}:
            return f"from {low} to {high}"
        case {"ge": low, "lt": high}:
            return f"{low} or more and below {high}"
        case {"gt": low, "lt": high}:
            return f"between {low} and {high}"
        case {"ge": low}:
            return f"{low} or more"
        case {"gt": low}:
            return f"above {low}"
    return ""


def _in_plain_words(cls: type, section: str, error: ValidationError) -> str:
    first = error.errors()[0]
    key, value, fields = str(first["loc"][0]), first["input"], fields_of(cls)
    name = f"{section}.{key}" if section else key
    if key not in fields:
        return f"{name} is not known; {suggestion(key, fields)}"
    expected, bounds = type_in_words(fields[key]), bounds_in_words(fields[key])
    if first["type"].startswith(("greater_than", "less_than")):
        expected, bounds = bounds, ""
    return f"{name} is {value!r}; it must be {expected}{f', {bounds}' if bounds else ''}."


def _alternatives(annotation: Any) -> Iterator[Any]:
    if get_origin(annotation) in (Union, UnionType):
        for each in get_args(annotation):
            yield from _alternatives(each)
    elif get_origin(annotation) is Annotated:
        yield from _alternatives(get_args(annotation)[0])
    else:
        yield annotation


def _marks(annotation: Any) -> Iterator[Any]:
    """What annotates the alternatives of a union: `Positive | None` keeps its bounds inside."""
    for each in get_args(annotation) if get_origin(annotation) in (Union, UnionType) else ():
        for mark in getattr(each, "__metadata__", ()):
            yield from mark.metadata if isinstance(mark, FieldInfo) else [mark]
