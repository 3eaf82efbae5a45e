"""Says where a question asks for more than the index has."""

from typing import TYPE_CHECKING

from kraq_dspy.apps.cli.shared.terminal import note
from kraq_dspy.programs.shared.options import options_of

if TYPE_CHECKING:
    from kraq_dspy.workspace import Workspace
    from kraq_dspy.workspace.specs import ProgramChoice


def note_scarce(space: "Workspace", choice: "ProgramChoice") -> None:
    """A note for each option that somebody set to more than there is of what it counts; defaults are only limits."""
    for name, declared in options_of(choice.spec.options).items():
        value = getattr(choice.options, name)
        if declared.counts and isinstance(value, int) and value != declared.default:
            there, what = _limit(space, declared.counts)
            if value > there:
                note(f"{name} is {value:,}; the index has {what}.")


def _limit(space: "Workspace", counted: str) -> tuple[int, str]:
    from kraq_dspy.records import Chunk, Community, Summary

    if counted == "levels":
        deepest = max((community.level for community in space.index.all(Community)), default=0)
        return deepest, f"no level below {deepest}"
    if counted == "questions":
        there = len(space.index.questions())
    else:
        there = space.index.count({"passages": Chunk, "reports": Summary}[counted])
    return there, f"{there:,} {counted}"
