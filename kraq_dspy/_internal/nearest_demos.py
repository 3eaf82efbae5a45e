"""Shows a predictor those of many demonstrations that are nearest to its input."""

from collections.abc import Mapping, Sequence
from typing import Any

import dspy

from kraq_dspy._internal.dspy_internals import set_attribute_by_name
from kraq_dspy.errors import ConfigError
from kraq_dspy.ports import Embedder, Vectors


class NearestDemos(dspy.Predict):
    """Holds a predictor and takes its place in a program; `demos` is a pool, of which each call shows the `nearest`.

    The nearest demonstration to the input is shown last. Unlike `dspy.KNNFewShot`, which asks the model again for
    demonstrations at every call and cannot be saved, the pool is made once. Safe for threads.

        program.answer = NearestDemos(program.answer, examples, 3, embedder)
    """

    def __init__(self, predictor: dspy.Predict, demos: Sequence[Any], nearest: int, embedder: Embedder) -> None:
        if nearest < 1:
            raise ValueError(f"nearest is {nearest}; it must be 1 or more.")
        predictor = held(predictor)
        super().__init__(predictor.signature)
        self.lm, predictor.lm = predictor.lm, None
        self.predictor = predictor
        self.demos = list(demos)
        self.nearest = nearest
        self.embedder = embedder
        fields = list(predictor.signature.input_fields)
        self.vectors: Vectors = embedder.encode_queries([_text(demo, fields) for demo in demos])

    def forward(self, **inputs: Any) -> dspy.Prediction:
        return self.predictor(**self._shown(inputs), **inputs)

    async def aforward(self, **inputs: Any) -> dspy.Prediction:
        return await self.predictor.acall(**self._shown(inputs), **inputs)

    def chosen(self, inputs: Mapping[str, Any]) -> list[Any]:
        """The demonstrations for these inputs; never one with the same inputs, which would be its answer."""
        if not len(self.vectors):
            return []
        fields = list(self.signature.input_fields)
        text = _text(inputs, fields)
        [query] = self.embedder.encode_queries([text])
        order = (self.vectors @ query).argsort(kind="stable")[::-1]
        others = [int(place) for place in order if _text(self.demos[place], fields) != text]
        return [self.demos[place] for place in reversed(others[: self.nearest])]

    def _shown(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """What the held predictor takes from this one at a call."""
        own_model = {} if self.lm is None else {"lm": self.lm}
        return {"demos": self.chosen(inputs), "signature": self.signature, **own_model}


def held(predictor: dspy.Predict) -> dspy.Predict:
    """The predictor that a NearestDemos holds, with its model and signature; another predictor as it is."""
    if not isinstance(predictor, NearestDemos):
        return predictor
    predictor.predictor.lm, predictor.predictor.signature = predictor.lm, predictor.signature
    return predictor.predictor


def put(program: dspy.Module, name: str, predictor: dspy.Predict) -> None:
    """Let `predictor` take the place in the program that `named_predictors` calls `name`.

    Raises ConfigError for a program that is a predictor itself, and so has no such place.
    """
    if isinstance(program, dspy.Predict):
        raise ConfigError(
            "Demonstrations chosen by nearness need a module that holds the predictor; this is one itself."
        )
    set_attribute_by_name(program, name, predictor)


def _text(values: Mapping[str, Any], fields: Sequence[str]) -> str:
    return "\n".join(str(values[name]) for name in fields if name in values)
