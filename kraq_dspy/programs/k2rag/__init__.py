"""Answers from a summarised corpus, a graph's account of it and sub-questions (Markondapatnaikuni et al., 2025)."""
