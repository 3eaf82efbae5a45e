"""Runs `kraq` as `python -m kraq_dspy`."""

from kraq_dspy.apps.cli import main

main()
