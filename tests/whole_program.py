"""The program `kraq` with all its commands, whatever a command line names."""

from kraq_dspy.apps.cli.program import make_app

app = make_app()
