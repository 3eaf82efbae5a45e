"""Measures of answers, retrieval, questions and extractions: pure functions of gold and predicted values."""
