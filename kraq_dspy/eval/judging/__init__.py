"""Lets language models judge answers, and measures how far they agree with people."""
