"""The steps of judges."""
