"""The steps that make rows for fine-tuning."""
