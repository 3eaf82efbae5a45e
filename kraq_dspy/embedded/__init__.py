"""Reads and writes text by rules, without a model; everything that `make_lm("embedded")` does stands here."""
