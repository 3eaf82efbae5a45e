"""Holds what one question is asked of, and a question on its way to a row."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kraq_dspy.records import Chunk, content_id


@dataclass(frozen=True, slots=True)
class Material:
    """What one question is asked of. `inputs` are those of the step that asks for this `kind`; `names` are what the
    question must not give away."""

    id: str
    kind: str
    inputs: Mapping[str, Any]
    chunks: tuple[Chunk, ...]
    names: tuple[str, ...] = ()
    community_id: str | None = None
    community_level: int = -1


@dataclass(frozen=True)
class AskedQuestion:
    """A question on its way to a row, with the names of the `checks` that it passed. `worded_by` names the model that
    put it in words, where another one had asked it."""

    material: Material
    question: str
    answers: tuple[str, ...]
    checks: tuple[str, ...] = ()
    worded_by: str = ""

    @property
    def id(self) -> str:
        return content_id(self.material.id, self.question)


def row_id(kind: str, question: str) -> str:
    """The id of a row, which depends on its kind and its question alone."""
    return content_id("testset", kind, question)[:16]
