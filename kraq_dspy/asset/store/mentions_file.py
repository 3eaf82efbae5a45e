"""Keeps beside an index's database what its graph was made from, so that a change need not read every extraction."""

from typing import TYPE_CHECKING

import numpy as np

from kraq_dspy._internal.files import replaced
from kraq_dspy.asset.graph.build import ResolvedMentions
from kraq_dspy.asset.store.states import writing_to

if TYPE_CHECKING:
    from kraq_dspy.asset.store.index import Index

FILE = "mentions.rows"
_FORM = 1  # to be raised with every change of what is written


def keep_mentions(index: "Index", resolved: ResolvedMentions) -> None:
    """The file is of use only to who knows that the index's records are of the same graph."""
    with writing_to(index.home), replaced(index.home / FILE) as draft, open(draft, "wb") as file:
        np.save(file, np.array(_FORM))
        resolved.write(file)


def open_mentions(index: "Index") -> ResolvedMentions | None:
    """None where there are none, or those of another version."""
    path = index.home / FILE
    if not path.exists():
        return None
    with open(path, "rb") as file:
        return ResolvedMentions.read(file) if np.load(file) == _FORM else None
