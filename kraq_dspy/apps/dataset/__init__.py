"""Hands an index's questions on as a data set: rows, splits that share no document, and the forms of other tools."""
