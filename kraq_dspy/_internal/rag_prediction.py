"""Defines the prediction of a program: DSPy's own, which its tools can vote on, write as JSON and show."""

import dataclasses
from collections.abc import Callable, Mapping, Set
from typing import Any

import dspy
from pydantic import BaseModel

from kraq_dspy._internal.display import as_html

ANSWER = "answer"
_EVIDENCE = ("context", "passages")
REFUSAL = "refusal"
"""The `source` of a prediction that says that the documents do not answer."""
REFUSED = "The documents do not answer this question."


class RagPrediction(dspy.Prediction):
    """A `dspy.Prediction` whose `answer` comes last, since DSPy's `majority` votes on the last field.

    >>> prediction = RagPrediction(answer="Oslo", notes=("found at once",))
    >>> list(prediction.keys()), prediction.toDict()
    (['notes', 'answer'], {'answer': 'Oslo', 'notes': ['found at once']})
    """

    @classmethod
    def of(cls, prediction: dspy.Prediction) -> "RagPrediction":
        """The same fields, completions and usage; the prediction itself if it is one already."""
        if isinstance(prediction, cls):
            return prediction
        copied = cls(**dict(prediction.items()))
        copied._completions = prediction._completions
        copied._lm_usage = prediction._lm_usage
        return copied

    def __getattr__(self, name: str) -> Any:
        """The fields; without a field of that name, `context` and `passages` are the texts of the `hits`, as DSPy's
        metrics of evidence read them."""
        fields = self.__dict__.get("_store", {})
        if name in _EVIDENCE and name not in fields and "hits" in fields:
            return [hit.chunk.passage for hit in fields["hits"]]
        return super().__getattr__(name)

    def keys(self, include_dspy: bool = False) -> list[str]:
        names = list(super().keys(include_dspy))
        if ANSWER in names:
            names.remove(ANSWER)
            names.append(ANSWER)
        return names

    def values(self, include_dspy: bool = False) -> list[Any]:
        return [self._store[name] for name in self.keys(include_dspy)]

    def items(self, include_dspy: bool = False) -> list[tuple[str, Any]]:
        return [(name, self._store[name]) for name in self.keys(include_dspy)]

    def toDict(self) -> dict[str, Any]:  # noqa: N802 (DSPy's name)
        """The fields as JSON has them: records as dictionaries, tuples and sets as lists."""
        return {name: as_json(value) for name, value in self._store.items()}

    def _repr_html_(self) -> str:
        return as_html(self)


def as_json(value: Any, record: Callable[[Any], Any] = lambda value: None) -> Any:
    """The value in the types of JSON; what has none is its text. `record` gives records another form; None for none.

    >>> as_json({"seas": {"North Sea"}, "depth": (1, 2.5)})
    {'seas': ['North Sea'], 'depth': [1, 2.5]}
    """
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if hasattr(value, "toDict"):
        return value.toDict()
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        own = {each.name: getattr(value, each.name) for each in dataclasses.fields(value)}
        return record(value) or as_json(own, record)
    if isinstance(value, Mapping):
        return {str(name): as_json(each, record) for name, each in value.items()}
    if isinstance(value, list | tuple | Set):
        each_in_order = sorted(value, key=str) if isinstance(value, Set) else value
        return [as_json(each, record) for each in each_in_order]
    if hasattr(value, "tolist"):  # an array, or a number of numpy's
        return value.tolist()
    return str(value)
