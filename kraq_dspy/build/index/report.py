"""Says what a build did."""

from dataclasses import dataclass
from pathlib import Path

from kraq_dspy._internal.display import Shown
from kraq_dspy.records import Failure, Usage, usage_by_stage


@dataclass(frozen=True)
class DocumentChanges:
    """How many documents came, changed and went, against what the index held before."""

    added: int = 0
    changed: int = 0
    removed: int = 0


@dataclass(frozen=True)
class BuildReport(Shown):
    """What a build did. `usage` is what this run asked of models, by stage; `failures` are open ones, to be retried.

    `stale_answers` counts prepared answers whose documents this run changed or removed.
    """

    path: Path
    counts: dict[str, int]
    failures: tuple[Failure, ...]
    usage: dict[str, Usage]
    seconds: float
    models: dict[str, str]
    problems: tuple[str, ...] = ()
    stale_answers: int = 0
    documents: DocumentChanges = DocumentChanges()


def usage_since(before: dict[tuple[str, str], Usage], now: dict[tuple[str, str], Usage]) -> dict[str, Usage]:
    """What a ledger (by stage and model) grew by, by stage; stages without a call are left out."""
    spent = usage_by_stage({key: usage - before.get(key, Usage()) for key, usage in now.items()})
    return {stage: usage for stage, usage in spent.items() if usage.calls}
