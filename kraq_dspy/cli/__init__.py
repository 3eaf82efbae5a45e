"""`kraq ...`: one file for each group of commands; heavy imports happen inside the commands, so help is instant."""

from kraq_dspy.cli.main import main

__all__ = ["main"]
