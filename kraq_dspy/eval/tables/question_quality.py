"""Rows of Table 1: each reference question, the generated one nearest to it, and how alike they are."""

import dataclasses
from collections.abc import Iterator, Sequence

import numpy as np

from kraq_dspy.config import RoleSettings, Settings
from kraq_dspy.errors import ConfigError
from kraq_dspy.eval.datasets import Example
from kraq_dspy.eval.metrics.bertscore import BertScorer
from kraq_dspy.eval.metrics.questions import question_relevance
from kraq_dspy.eval.rows import Row
from kraq_dspy.eval.tables.table import System
from kraq_dspy.ports import Embedder, Vectors

RELEVANCE = "relevance"
_BLOCK = 256  # pairs scored before their rows are written


def settings_of(system: System, settings: Settings) -> Settings | None:
    """The settings that make the system's questions; None where the other generator it asks for is the same model."""
    if unknown := set(system.options) - {"generator"}:
        raise ConfigError(f"{system.name!r}: unknown option {min(unknown)!r}; a source of questions takes `generator`.")
    if "generator" not in system.options:
        return settings
    instead = settings.role(system.options["generator"])
    if instead == settings.role("generator"):
        return None
    roles: dict[str, RoleSettings] = {**settings.roles, "generator": instead}
    return dataclasses.replace(settings, roles=roles)


def rows(
    name: str,
    examples: Sequence[Example],
    generated: Sequence[str],
    embedder: Embedder,
    scorer: BertScorer,
    metrics: Sequence[str],
) -> Iterator[Row]:
    """A row for each reference question, as blocks are scored. `metrics` are "relevance" and "relevance@TAU".

    Raises EvaluationError when there are no generated questions.
    """
    taus = {metric: _threshold(metric) for metric in metrics}
    known = _KnownVectors(embedder, generated)
    for start in range(0, len(examples), _BLOCK):
        block = examples[start : start + _BLOCK]
        relevance = question_relevance([each.question for each in block], generated, known, scorer)
        for example, pair, f1 in zip(block, relevance.pairs, relevance.f1, strict=True):
            scores = {metric: f1 if tau is None else float(f1 >= tau) for metric, tau in taus.items()}
            yield Row(
                example.id,
                name,
                answer=pair.generated,
                metrics=scores,
                extra={"question": example.question, "f1": f1, "cosine": pair.cosine, "type": example.type},
            )


class _KnownVectors:
    """The embedder, with the generated questions encoded once for all blocks."""

    def __init__(self, embedder: Embedder, texts: Sequence[str]) -> None:
        self._embedder = embedder
        self.name, self.dimension = embedder.name, embedder.dimension
        distinct = list(dict.fromkeys(texts))
        self._known = dict(zip(distinct, embedder.encode_queries(distinct), strict=True)) if distinct else {}

    def encode_queries(self, texts: Sequence[str]) -> Vectors:
        fresh = [text for text in texts if text not in self._known]
        if fresh:
            self._known.update(zip(fresh, self._embedder.encode_queries(fresh), strict=True))
        return np.stack([self._known[text] for text in texts])

    def encode_passages(self, texts: Sequence[str]) -> Vectors:
        return self._embedder.encode_passages(texts)


def _threshold(metric: str) -> float | None:
    name, _, tau = metric.partition("@")
    try:
        if name == RELEVANCE:
            return float(tau) if tau else None
    except ValueError:
        pass
    raise ConfigError(f"There is no metric {metric!r} of questions; there are: relevance, relevance@0.70 and the like.")
