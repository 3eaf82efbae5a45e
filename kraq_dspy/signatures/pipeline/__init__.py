"""Holds the steps of the KRAQ pipeline."""
