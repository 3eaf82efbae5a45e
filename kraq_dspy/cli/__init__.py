"""The program `kraq`: one file a command, in the folders of its help; heavy imports wait until a command runs."""

from kraq_dspy.cli.main import main

__all__ = ["main"]
