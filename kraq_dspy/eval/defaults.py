"""Holds the numbers that a command and the function behind it share: all of `eval` that `kraq --help` loads."""

NEAR = 0.6
"""The cosine from which two questions ask alike."""
ABOUT = 0.5
"""The cosine from which a passage is about a question."""
RETRIEVED = 10
"""Passages that a retriever is asked for, where retrieval is measured."""
RATED_PASSAGES = 20
"""Passages on a sheet that people rate."""
CHUNK_SIZES = (300, 150, 600)
"""Tokens of a chunk that `kraq select` tries."""
NUMBERS_OF_PASSAGES = (5, 10, 20)
"""Passages for a question that `kraq select` tries."""
CONTEXT = 4000
"""Most tokens of passages that an answer may be read from, on average."""
MINUTES = 10.0
"""The time of one run of `kraq select`."""
TO_LABEL = 10
"""Human questions that somebody labels."""
