"""Keeps the former name of `kraq_dspy.indexing` for one version."""

import warnings

from kraq_dspy.indexing import *  # noqa: F403

warnings.warn(
    "kraq_dspy.build is called kraq_dspy.indexing now; the old name goes with the next version.",
    DeprecationWarning,
    stacklevel=2,
)
