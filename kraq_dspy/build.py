"""Keeps the former name of `kraq_dspy.indexing`."""

from kraq_dspy._internal.deprecation import warn_of
from kraq_dspy.indexing import *  # noqa: F403

warn_of("kraq_dspy.build", "1.0", "kraq_dspy.indexing")
