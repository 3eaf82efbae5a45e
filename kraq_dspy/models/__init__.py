"""Holds language models and sentence encoders."""
