"""Holds the commands that measure and show the papers' tables: `kraq eval`."""
