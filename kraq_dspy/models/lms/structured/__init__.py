"""Turns signatures into prompts, and replies into typed values."""
