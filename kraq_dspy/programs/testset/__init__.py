"""Writes the questions of a test set: what they are asked of, how each kind is asked, and what makes a passage gold."""
