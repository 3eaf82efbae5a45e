"""Holds what all commands use: option groups, the open index, what is printed and how a run is interrupted."""
