"""Answers from questions and passages in question-answer form: QA-RAG (Roy et al., 2024)."""

from kraq_dspy.programs.qa_rag.program import QARAG

__all__ = ["QARAG"]
