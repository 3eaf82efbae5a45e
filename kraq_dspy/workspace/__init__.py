"""An index opened for work: programs and retrievers by name."""

from kraq_dspy.workspace.workspace import Workspace

__all__ = ["Workspace"]
