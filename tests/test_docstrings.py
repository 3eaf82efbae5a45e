"""Every public class and function with more than one argument says what each is, and what a function returns."""

import dataclasses
import importlib
import inspect
import re
from collections.abc import Iterator
from typing import Any

import pytest

PLACES = (
    "kraq_dspy",
    "kraq_dspy.apps",
    "kraq_dspy.eval",
    "kraq_dspy.extend",
    "kraq_dspy.finetune",
    "kraq_dspy.indexing",
    "kraq_dspy.optimize",
    "kraq_dspy.programs",
    "kraq_dspy.retrievers",
    "kraq_dspy.testing",
    "kraq_dspy.workspace",
)
VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def callables(place: str) -> Iterator[tuple[str, Any]]:
    """The public classes and functions of more than one argument, with their names."""
    module = importlib.import_module(place)
    for name in module.__all__:
        value = getattr(module, name)
        is_ours = (inspect.isclass(value) or inspect.isfunction(value)) and value.__module__.startswith("kraq_dspy")
        if is_ours and not is_protocol(value) and len(arguments(value)) > 1:
            yield name, value


def is_protocol(value: Any) -> bool:
    return bool(getattr(value, "_is_protocol", False)) or (inspect.isclass(value) and issubclass(value, Exception))


def arguments(value: Any) -> list[str]:
    try:
        parameters = inspect.signature(value).parameters.values()
    except ValueError:
        return []
    own = value.__annotations__ if hasattr(value, "model_fields") else None  # pydantic adds those of the base
    return [
        parameter.name
        for parameter in parameters
        if parameter.kind not in VARIADIC and (own is None or parameter.name in own)
    ]


def described(value: Any) -> Iterator[str]:
    """The arguments that the docstring describes, in its sections; of a record also in prose, or below the field."""
    for section in re.findall(r"(?m)^(?:Args|Attributes):\n((?:    .*\n?)+)", inspect.getdoc(value) or ""):
        yield from re.findall(r"(?m)^    (\w+): ", section)
    if dataclasses.is_dataclass(value) and not callable(getattr(value, "find", None)):
        yield from re.findall(r"`(\w+)`", inspect.getdoc(value) or "")
        source = inspect.getsource(value if inspect.isclass(value) else type(value))
        yield from re.findall(r'(?m)^    (\w+): .*(?:\n        .*|\n    \).*)*\n    """', source)


def lacking(name: str, value: Any) -> list[str]:
    found = set(described(value))
    lost = [argument for argument in arguments(value) if argument not in found]
    if inspect.isfunction(value) and inspect.signature(value).return_annotation not in (None, "None"):
        lost += [] if re.search(r"(?m)^(?:Returns|Yields):$", inspect.getdoc(value) or "") else ["Returns"]
    return lost


@pytest.mark.parametrize("place", PLACES)
def test_a_docstring_says_what_each_argument_is(place: str) -> None:
    found = dict(callables(place))
    assert found
    assert {name: lost for name, value in found.items() if (lost := lacking(name, value))} == {}


def test_what_is_not_described_is_seen() -> None:
    def add(first: int, second: int) -> int:
        """Add two numbers.

        Args:
            first: a number.
        """
        return first + second

    assert lacking("add", add) == ["second", "Returns"]
