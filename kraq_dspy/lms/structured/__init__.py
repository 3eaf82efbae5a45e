"""Signatures as prompts, and replies as typed values."""
