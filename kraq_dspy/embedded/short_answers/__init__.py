"""Reads one sentence for one question: what is asked, which values the sentence has, and which of them is meant."""
