"""Holds the commands for an index's prepared answers: `kraq catalogue`."""
