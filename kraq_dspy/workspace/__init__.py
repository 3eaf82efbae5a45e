"""Opens an index for work: programs and retrievers by name. What they are is declared in `programs` and `retrievers`.

`Workspace` is imported when it is first used: the declarations alone are read in no time.
"""

from typing import TYPE_CHECKING

from kraq_dspy._internal.lazy import lazy_names

if TYPE_CHECKING:  # for type checkers and editors; the names that are there are those below
    from kraq_dspy.workspace.asking import Request as Request
    from kraq_dspy.workspace.workspace import Workspace as Workspace

__getattr__, __dir__, __all__ = lazy_names(
    __name__, {"kraq_dspy.workspace.asking": ("Request",), "kraq_dspy.workspace.workspace": ("Workspace",)}
)
