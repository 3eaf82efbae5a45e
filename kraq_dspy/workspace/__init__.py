"""Opens an index for work: programs and retrievers by name. What they are is declared in `programs` and `retrievers`.

`Workspace` is imported when it is first used: the declarations alone are read in no time.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kraq_dspy.workspace.workspace import Workspace

__all__ = ["Workspace"]


def __getattr__(name: str) -> Any:
    if name != "Workspace":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from kraq_dspy.workspace.workspace import Workspace

    return Workspace
