"""Holds the numbers that a command and the function behind it share: all of `exam` that `kraq --help` loads."""

TESTSET_QUESTIONS = 200
"""Questions of a made test set."""
