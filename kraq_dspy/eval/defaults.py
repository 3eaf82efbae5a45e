"""Holds the numbers that a command and the function behind it share: all of `eval` that `kraq --help` loads."""

NEAR = 0.6
"""The cosine from which two questions ask alike."""
ABOUT = 0.5
"""The cosine from which a passage is about a question."""
RETRIEVED = 10
"""Passages that a retriever is asked for, where retrieval is measured."""
TESTSET_QUESTIONS = 200
"""Questions of a made test set."""
RATED_PASSAGES = 20
"""Passages on a sheet that people rate."""
