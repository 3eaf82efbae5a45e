"""Holds the steps that make rows for fine-tuning."""
