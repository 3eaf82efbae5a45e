"""Shows a predictor those of many demonstrations that are nearest to its input."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import dspy

from kraq_dspy.ports import Embedder, Vectors


class NearestDemos(dspy.Predict):
    """A `dspy.Predict` whose `demos` are a pool: each call shows the `nearest` ones to its input, the nearest last.

    `near(predictor, ...)` makes one of a predictor that is there. Unlike `dspy.KNNFewShot`, which asks the model again
    for demonstrations at every call and cannot be saved, the pool is made once. Safe for threads.
    """

    nearest: int
    embedder: Embedder
    vectors: Vectors  # of the demos' inputs, rows L2-normalised

    def forward(self, **kwargs: Any) -> dspy.Prediction:
        return super().forward(demos=self.chosen(kwargs), **kwargs)

    async def aforward(self, **kwargs: Any) -> dspy.Prediction:
        return await super().aforward(demos=self.chosen(kwargs), **kwargs)

    def chosen(self, inputs: Mapping[str, Any]) -> list[Any]:
        """The demonstrations for these inputs; never one with the same inputs, which would be its answer."""
        if not len(self.vectors):
            return []
        text = _text(inputs, list(self.signature.input_fields))
        [query] = self.embedder.encode_queries([text])
        order = (self.vectors @ query).argsort(kind="stable")[::-1]
        fields = list(self.signature.input_fields)
        others = [int(place) for place in order if _text(self.demos[place], fields) != text]
        return [self.demos[place] for place in reversed(others[: self.nearest])]


def near(predictor: dspy.Predict, demos: Sequence[Any], nearest: int, embedder: Embedder) -> None:
    """Turn the predictor into a NearestDemos over these demonstrations, where it is."""
    if nearest < 1:
        raise ValueError(f"nearest is {nearest}; it must be 1 or more.")
    fields = list(predictor.signature.input_fields)
    if not isinstance(predictor, NearestDemos):
        kind: Any = type(predictor)
        predictor.__class__ = mixed(NearestDemos, kind)
    predictor.demos = list(demos)
    predictor.nearest = nearest
    predictor.embedder = embedder
    predictor.vectors = embedder.encode_queries([_text(demo, fields) for demo in demos])


def unlearned(predictor: dspy.Predict) -> None:
    """The predictor without demonstrations, and without choosing among them."""
    if isinstance(predictor, NearestDemos):
        predictor.__class__ = type(predictor).__mro__[2]
        del predictor.nearest, predictor.embedder, predictor.vectors
    predictor.demos = []


@cache
def mixed(first: Any, kind: Any) -> Any:
    """The class `kind` with what `first` does before it; `kind` may be a predictor of any sort."""
    return type(kind)(f"{first.__name__}{kind.__name__}", (first, kind), {"__module__": kind.__module__})


def _text(values: Mapping[str, Any], fields: Sequence[str]) -> str:
    return "\n".join(str(values[name]) for name in fields if name in values)
