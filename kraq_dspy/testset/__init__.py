"""Makes a test set from an index: rows with a question, its answer and the passages that answer it.

`kinds` declares each kind of question: what it is asked of, the step that asks, what is wrong with it, and its row.
`making` leads from an index to a `Testset`; `review` and `upkeep` look after one that is there.
"""

TESTSET_QUESTIONS = 200
"""Questions of a synthetic test set."""
