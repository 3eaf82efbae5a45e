"""Says where a question asks for more than the index has."""

from typing import TYPE_CHECKING

from kraq_dspy.cli.shared.terminal import note
from kraq_dspy.programs.options import options_of

if TYPE_CHECKING:
    from kraq_dspy.workspace import Workspace
    from kraq_dspy.workspace.specs import ProgramChoice


def note_scarce(space: "Workspace", choice: "ProgramChoice") -> None:
    """A note for each option that somebody set to more than there is of what it counts; defaults are only limits."""
    declared = options_of(choice.spec.options)
    for name, program in (("k", None), ("n", "combined"), ("level", None)):
        value = getattr(choice.options, name, None)
        if isinstance(value, int) and value != declared[name].default and program in (None, choice.spec.name):
            there, what = _limit(space, name)
            if value > there:
                note(f"{name} is {value:,}; the index has {what}.")


def _limit(space: "Workspace", name: str) -> tuple[int, str]:
    from kraq_dspy.records import Chunk, Community

    if name == "k":
        there = space.index.count(Chunk)
        return there, f"{there:,} passages"
    if name == "n":
        there = len(space.index.questions())
        return there, f"{there:,} questions"
    deepest = max((community.level for community in space.index.all(Community)), default=0)
    return deepest, f"no level below {deepest}"
