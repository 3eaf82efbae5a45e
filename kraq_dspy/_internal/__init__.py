"""Holds plumbing that no user names."""
