"""Keeps how many records a complete state has, counted once by its writer: among a million chunks it takes seconds."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from kraq_dspy._internal.files import replaced
from kraq_dspy.asset.store.own_files import damage_text
from kraq_dspy.asset.store.states import writing_to
from kraq_dspy.errors import IndexStateError

FILE = "sizes.json"


@dataclass(frozen=True, slots=True)
class Sizes:
    """`counts` are those of the records by table name, `partition` the numbers of communities by level, `left_out`
    those of web pages that lost their boilerplate ("documents") and of its "lines"."""

    counts: dict[str, int]
    partition: dict[int, int]
    left_out: dict[str, int]


def read_sizes(path: Path | None) -> Sizes | None:
    """None for a state without the file. Raises IndexStateError."""
    if path is None:
        return None
    try:
        fields = json.loads(path.read_text())
        partition = {int(level): size for level, size in fields["partition"].items()}
        return Sizes(dict(fields["counts"]), partition, dict(fields.get("left_out", {})))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise IndexStateError(damage_text(path, str(error))) from error


def write_sizes(home: Path, sizes: Sizes) -> None:
    """Raises IndexStateError."""
    with writing_to(home), replaced(home / FILE) as draft:
        draft.write_text(json.dumps(asdict(sizes)))


def partition_sizes(communities: dict[tuple[int, int], int]) -> dict[int, int]:
    """By level, from the numbers of communities by level and by whether they are leaves, which stand for their entities
    on all deeper levels too."""
    return {
        level: sum(size for (its, is_leaf), size in communities.items() if its == level or (its < level and is_leaf))
        for level in sorted({level for level, _ in communities})
    }
