"""Answers a question that was answered before with the answer that was prepared (QA search paper)."""
