"""Measures how good answers, questions and retrieval are, and whether a difference is more than chance.

Metrics are pure functions of gold and predicted values, one kind a file: `answers`, `labels`, `generation`,
`retrieval`, `diversity`, `questions`, `coverage`, `latency`. `metrics` has them in the form that DSPy takes. `rows`
keeps every question's result, `statistics` compares them, `datasets` supplies the questions, `judges` ask a language
model and `judge_agreement` says how far to believe it.
"""
