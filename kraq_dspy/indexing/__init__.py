"""Makes, changes and prepares indexes.

from kraq_dspy.indexing import abuild_index
"""

from typing import TYPE_CHECKING

from kraq_dspy._internal.lazy import lazy_names

if TYPE_CHECKING:  # for type checkers and editors; the names that are there are those below
    from kraq_dspy.indexing.index.build import abuild_index as abuild_index, build_index as build_index
    from kraq_dspy.indexing.index.change import (
        add_documents as add_documents,
        remove_documents as remove_documents,
        resume_index as resume_index,
        update_index as update_index,
    )
    from kraq_dspy.indexing.index.exchange import export_index as export_index
    from kraq_dspy.indexing.index.report import (
        BuildOptions as BuildOptions,
        BuildReport as BuildReport,
        DocumentChanges as DocumentChanges,
    )

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "kraq_dspy.indexing.index.build": ("abuild_index", "build_index"),
        "kraq_dspy.indexing.index.change": ("add_documents", "remove_documents", "resume_index", "update_index"),
        "kraq_dspy.indexing.index.exchange": ("export_index",),
        "kraq_dspy.indexing.index.report": ("BuildOptions", "BuildReport", "DocumentChanges"),
    },
)
