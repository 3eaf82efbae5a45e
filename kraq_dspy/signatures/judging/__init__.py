"""Holds the steps of judges."""
