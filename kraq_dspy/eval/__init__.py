"""Measures how good answers, questions and retrieval are, and whether a difference is more than chance.

`metrics` are pure functions of gold and predicted values, one kind a file; `metrics.for_dspy` has them in the form that
DSPy takes. `rows` keeps every question's result, `statistics` compares them, `datasets` supplies the questions,
`judging` asks a language model and says how far to believe it.
"""
