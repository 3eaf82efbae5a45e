"""Makes an exam from an index: rows with a question, its answer and the passages that answer it.

`kinds` has a file for each kind of question: what it is asked of, the step that asks, what is wrong with it, and its
row. `making` leads from an index to a `Testset`; `review` and `upkeep` look after one that is there.
"""
