"""Turns a statement with one part left out, a cloze, into a question of its own language."""
